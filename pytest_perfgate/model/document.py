"""Documents: one tree that text, Markdown and HTML are rendered from.

Cells stay numbers with a dimension; only the renderers know about microseconds and percent.
"""

from __future__ import annotations

from typing import Union

from pytest_perfgate.model.quantity import Dimension
from pytest_perfgate.model.values import value

Cell = Union[str, float, int, None]


@value
class Column:
    """A column with what its numbers mean."""

    name: str
    dimension: Dimension = Dimension.TEXT
    unit: str = ""
    """Forces one unit for the whole column (``ns``); empty picks a readable one."""
    digits: int = 4
    absent: str = "not collected"
    """How a cell without a number shows: of a capture, what it did not collect."""


@value
class Table:
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    note: str = ""
    limit: int = 0
    """Rows a person sees; 0 means all. Data formats always carry every row."""
    rest: str = "all of them with --json or --csv"
    """How to see the rows that are left out."""


@value
class Paragraph:
    text: str


@value
class Bullets:
    items: tuple[str, ...]
    ordered: bool = False


@value
class Link:
    """A way to the section of this anchor, with the words that stand for it."""

    text: str
    anchor: str


@value
class Code:
    text: str
    language: str = ""


@value
class Picture:
    """A drawing as SVG, with the sentence that stands for it where no picture can be shown."""

    svg: str
    alt: str


@value
class Section:
    title: str
    blocks: tuple[Union[Paragraph, Bullets, Link, Code, Picture, Table, Section], ...]
    anchor: str = ""


Block = Union[Paragraph, Bullets, Link, Code, Picture, Table, Section]


@value
class Document:
    title: str
    blocks: tuple[Block, ...]
    subtitle: str = ""
