"""Numbers as a locale writes them: which mark stands before the decimals is seen on the page as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SPACES = re.compile(r"(?<=\d)[\s'\u2019](?=\d{3}(?:\D|$))")
"""What separates thousands without being a comma or a point: any space, an apostrophe."""
_NUMERAL = re.compile(r"[+-]?[\d.,]*\d[\d.,]*(?:[eE][+-]?\d+)?%?")
_COMMA_DECIMAL = re.compile(
    r"[+-]?(?:\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}|\d+,(?!\d{3}$)\d+|(?:0|\d{4,}),\d+)"
)
_POINT_DECIMAL = re.compile(
    r"[+-]?(?:\d{1,3}(?:,\d{2,3})+\.\d+|\d{1,3}(?:,\d{3}){2,}|\d+\.(?!\d{3}$)\d+|(?:0|\d{4,})\.\d+)"
)

_POINT_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+,\d+")


def bare(cell: str | None) -> str:
    """The numeral that a cell starts with: without its instances in brackets, and thousands that spaces separate."""
    return _SPACES.sub("", (cell or "").partition(" (")[0].strip())


_POINT_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+")


def decimal_comma(cells: Iterable[str | None], whole: Iterable[str | None] = ()) -> bool:
    """Whether more of these numerals can only be read with a decimal comma than with a decimal point.

    ``whole`` are those of them that are told in a unit without parts: a point in ``117.344`` ns separates thousands.
    """
    texts = [bare(cell) for cell in cells]
    commas = sum(1 for text in texts if _COMMA_DECIMAL.fullmatch(text))
    commas += sum(1 for cell in whole if _POINT_GROUPS.fullmatch(bare(cell)))
    return commas > sum(1 for text in texts if _POINT_DECIMAL.fullmatch(text))


def with_point(cell: str) -> str:
    """A numeral of a page with decimal commas, written with a point; anything else as it is."""
    text = bare(cell)
    return text.replace(".", "").replace(",", ".") if _NUMERAL.fullmatch(text) else cell


def parse_numeral(cell: str | None) -> float | None:
    """``4,963,609.19`` is a number, whatever separates its thousands; ``1.234,56`` reads in one way only."""
    text = bare(cell)
    try:
        return float(with_point(text) if _POINT_THOUSANDS.fullmatch(text) else text.replace(",", ""))
    except ValueError:
        return None
