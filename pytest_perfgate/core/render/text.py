"""Documents for a terminal: fixed width, plain when nobody looks."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator

from pytest_perfgate.core.render.cells import heading, is_number, left_out, shown_rows
from pytest_perfgate.model.document import (
    Block,
    Bullets,
    Code,
    Document,
    Link,
    Paragraph,
    Picture,
    Section,
    Table,
)

_WIDEST = 60
_WORD = 30


def render_text(document: Document, width: int = 100) -> str:
    """The document in fixed-width text."""
    lines = [document.title, "=" * display_width(document.title)]
    lines += [document.subtitle] if document.subtitle else []
    for block in document.blocks:
        lines += ["", *_block(block, width, 1)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def display_width(text: str) -> int:
    """Columns a terminal needs; wide characters take two, combining ones none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _block(block: Block, width: int, depth: int) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield from textwrap.wrap(block.text, width, break_long_words=False, break_on_hyphens=False) or [""]
    elif isinstance(block, Bullets):
        yield from _bullets(block, width)
    elif isinstance(block, Code):
        yield from ("    " + line for line in block.text.splitlines())
    elif isinstance(block, Link):
        yield block.text
    elif isinstance(block, Picture):
        yield f"[{block.alt}]"
    elif isinstance(block, Table):
        yield from table_lines(block)
    else:
        yield from _section(block, width, depth)


def _section(section: Section, width: int, depth: int) -> Iterator[str]:
    yield section.title
    yield ("-" if depth == 1 else "·") * display_width(section.title)
    for number, block in enumerate(section.blocks):
        if number:
            yield ""
        yield from _block(block, width, depth + 1)


def _bullets(bullets: Bullets, width: int) -> Iterator[str]:
    for number, item in enumerate(bullets.items, 1):
        mark = f"{number}. " if bullets.ordered else "- "
        yield from textwrap.wrap(
            item,
            width,
            initial_indent=mark,
            subsequent_indent=" " * len(mark),
            break_long_words=False,
            break_on_hyphens=False,
        )


def table_lines(table: Table) -> Iterator[str]:
    """A table with aligned columns; numbers to the right."""
    rows = [[_clip(text, last=at == len(row) - 1) for at, text in enumerate(row)] for row in shown_rows(table)]
    heads = [heading(column) for column in table.columns]
    widths = [max(map(display_width, column)) for column in zip(heads, *rows)]
    right = [is_number(column) for column in table.columns]
    if table.title:
        yield table.title
    yield _row(heads, widths, right)
    yield "  ".join("-" * width for width in widths)
    for row in rows:
        yield _row(row, widths, right)
    yield from (line for line in (left_out(table), table.note) if line)


def _row(cells: list[str], widths: list[int], right: list[bool]) -> str:
    return "  ".join(
        " " * (w - display_width(c)) + c if r else c + " " * (w - display_width(c))
        for c, w, r in zip(cells, widths, right)
    )


def _clip(text: str, *, last: bool) -> str:
    """Long names keep both ends: template arguments sit in the middle, and of a test its file tells least.

    A sentence at the end of a line stays whole, since nothing stands behind it and its end may be the point.
    """
    text = "".join(c if c.isprintable() else "�" for c in text)
    if len(text) <= _WIDEST or (last and "::" not in text and max(map(len, text.split()), default=0) <= _WORD):
        return text
    file = text.find("::")
    if file > 0:
        folder = text.rfind("/", 0, file)
        fits = folder > 0 and len(text) - folder < _WIDEST
        text = f"…{text[folder:] if fits else text[file:]}"
    if len(text) <= _WIDEST:
        return text
    return text[: _WIDEST - 21] + "…" + text[-20:]
