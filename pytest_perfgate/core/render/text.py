"""Renders documents as text for a terminal of any width."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from pytest_perfgate.core.render.words import display_width, plural, quantity, shown, signed, significant
from pytest_perfgate.model.metric import (
    Block,
    Bullets,
    Cell,
    Code,
    Column,
    Document,
    Link,
    Paragraph,
    Picture,
    Section,
    Table,
)
from pytest_perfgate.model.values import TIME_UNITS, Dimension, regex

INDENT = 4
"""The indentation of code lines."""

WIDEST = 60

_WORD = 30
_CHANGES = frozenset({"slowdown", "relative", "expected", "shift"})  # columns of numbers with a sign

_LOG, _FAR = 100, 200
"""The width without a terminal, where a longer line is not broken; beyond which none is readable there either."""

_TIED, _BETWEEN = "\u00a0", " \u00a0"

_UNIT = regex(
    r"(?<=\d) (?=(?:%|[nµm]?s|[KMGT]i?B(?:/s)?|[kMGT]?FLOPS?)(?![\w/]))|(?<=can) (?=detect)|(?<=detect) (?=[+\d])"
)
"""The space between a figure and its unit, and in front of what a run can detect."""


def render_text(document: Document, width: int = 100, room: int = 0) -> str:
    """Return the document in fixed-width text; tables may use more ``room`` than sentences."""
    lines = [document.title, "=" * display_width(document.title)]
    lines += wrapped(document.subtitle, max(width, room))
    for block in document.blocks:
        lines += ["", *_block(block, width, max(width, room), 1)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _block(block: Block, width: int, room: int, depth: int) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield from wrapped(block.text, width) or [""]
    elif isinstance(block, Bullets):
        for number, item in enumerate(block.items, 1):
            yield from wrapped(item, width, f"{number}. " if block.ordered else "- ")
    elif isinstance(block, Code):
        yield from (" " * INDENT + line for line in block.text.splitlines())
    elif isinstance(block, Link):
        yield block.text
    elif isinstance(block, Picture):
        caption, *bars = picture_lines(block, room)
        yield from (*wrapped(caption, width), *bars)
    elif isinstance(block, Table):
        yield from _fitted(block.filled, width, room)
    else:
        yield from _section(block, width, room, depth)


_GLYPHS = "█▒░·▓▚"
"""Characters for the parts of a bar, distinguished by density."""

_LEAST = 40
"""The least width for bars."""


def picture_lines(drawn: Picture, room: int) -> Iterator[str]:
    """Yield the sentence, and bars if they fit: labels to the left, lengths, text to the right."""
    from pytest_perfgate.core.render.charts import with_shorter_sparkline

    if not drawn.bars or room < _LEAST:
        yield f"[{drawn.alt}]"
        return
    yield drawn.alt
    label = min(room // 3, max((display_width(bar.label) for bar in drawn.bars if bar.parts or bar.text), default=0))
    beside = max(display_width(bar.text) for bar in drawn.bars)
    wide = room - label - beside - 4 if any(bar.parts for bar in drawn.bars) else 0
    used = [at for at in range(len(drawn.key)) if any(len(bar.parts) > at and bar.parts[at] > 0 for bar in drawn.bars)]
    if wide >= 10 and len(drawn.key) > 1:
        yield "  ".join(f"{_GLYPHS[at]} {drawn.key[at]}" for at in used)
    for bar in drawn.bars:
        if not bar.parts and not bar.text:
            yield bar.label
            continue
        name = bar.label if display_width(bar.label) <= label else f"{bar.label[: label - 1]}…"
        lengths = f"{_lengths(bar.parts, wide)}  " if wide >= 10 else ""
        text = with_shorter_sparkline(bar.text, label + beside + 2 - room)
        yield f"{name}{' ' * (label - display_width(name))}  {lengths}{text}"


def _lengths(parts: Sequence[float], wide: int) -> str:
    """Return parts of a line in their characters; ends are rounded, so that parts never exceed the line."""
    text, reach = "", 0.0
    for glyph, part in zip(_GLYPHS, parts):
        reach += part
        text += glyph * (round(min(reach, 1.0) * wide) - len(text))
    return text + " " * (wide - len(text))


def _section(section: Section, width: int, room: int, depth: int) -> Iterator[str]:
    yield section.title
    yield ("-" if depth == 1 else "·") * display_width(section.title)
    for number, block in enumerate(section.blocks):
        if number:
            yield ""
        yield from _block(block, width, room, depth + 1)


def table_lines(table: Table, widest: int = WIDEST) -> Iterator[str]:
    """Yield a table with aligned columns, numbers to the right; long names keep both ends."""
    yield from (table.title,) if table.title else ()
    yield from _rows(table, widest)
    yield from filter(None, (left_out(table), table.note))


def _fitted(table: Table, width: int, room: int) -> Iterator[str]:
    """Yield one line for each row; if too wide, with texts in lines of their own, then with named figures."""
    # Sentences above and below are wrapped, and do not change this form.
    lines = list(_rows(table)) if table.rows or not table.note else []
    if not fits_width(lines, room) and table.rows:
        ways = [(columns, heads) for heads in (1, 2) for columns in _stacked_columns(table, room)]
        forms = [list(_stacked_figures(table, room, *way)) for way in ways]
        narrow = (room != _LOG or not fits_width(lines, _FAR)) and any(map(is_number, table.columns))
        in_words = [list(_in_words(table, width))] if narrow else []
        lines = next((form for form in forms if fits_width(form, room)), next(iter(in_words), lines))
    yield from wrapped(table.title, width)
    yield from lines
    for text in filter(None, (left_out(table), table.note)):
        yield from wrapped(text, width)


def _rows(table: Table, widest: int = WIDEST) -> Iterator[str]:
    rows = [_clipped(row, widest) for row in shown_rows(table)]
    yield from _aligned([[heading(column) for column in table.columns], *rows], table.columns)


def fits_width(lines: Iterable[str], width: int) -> bool:
    """Return whether no line is wider than so many columns."""
    return all(display_width(line) <= width for line in lines)


_WRAP = partial(textwrap.wrap, break_long_words=False, break_on_hyphens=False)


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """Return lines broken between words, and never between a figure and its unit."""
    rest = rest or " " * len(first)
    lines = _WRAP(_UNIT.sub(_TIED, text), width, initial_indent=first, subsequent_indent=rest)
    return [line.replace(_TIED, " ") for line in lines]


def _stacked_columns(table: Table, room: int) -> Iterator[list[int]]:
    """Yield which columns are placed above the figures: the longest one of text, or all of them."""
    rows = shown_rows(table)
    texts = [at for at, column in enumerate(table.columns) if not is_number(column)]
    named = [at for at in texts if at < len(table.columns) - 1]
    longest = max(named, key=lambda at: max(len(row[at]) for row in rows), default=-1)
    long = longest >= 0 and max(len(row[longest]) for row in rows) >= _WORD
    yield from ([longest],) if long else ()
    yield from (texts,) if long or room != _LOG else ()


def _stacked_figures(table: Table, width: int, above: Sequence[int], heads: int) -> Iterator[str]:
    """Yield figures below their full name, with heads of one line or two; rows of one name share it."""
    beside = [at for at in range(len(table.columns)) if at not in above]
    columns, rows = [table.columns[at] for at in beside], shown_rows(table)
    figures = [_clipped([row[at] for at in beside]) for row in rows]
    parts = [(heading(c).rpartition(" ") if heads > 1 else ("", "", heading(c))) for c in columns]
    names = [[part[0] for part in parts]] * (heads - 1) + [[part[2] for part in parts]]
    lines = [f"  {line}" for line in _aligned([*names, *figures], columns, heads)]
    yield from wrapped(", ".join(heading(table.columns[at]) for at in above), width)
    yield from filter(str.strip, lines[: heads + 1])
    last: list[str] = []
    for row, line in zip(rows, lines[heads + 1 :]):
        name = [row[at] for at in above]
        yield from _named(row, above, width) if name != last else ()
        yield from filter(str.strip, [line])
        last = name


def _in_words(table: Table, width: int) -> Iterator[str]:
    """Yield each row in a few lines, with each figure after its name, if no columns fit."""
    for row in shown_rows(table):
        texts = [at for at, column in enumerate(table.columns) if not is_number(column)]
        yield from _named(row, texts, width)
        pairs = ((heading(c), text) for text, c in zip(row, table.columns) if is_number(c) and text != c.absent)
        figures = " · ".join(f"{name}: {text}".replace(" ", _TIED) for name, text in pairs)
        yield from (f"  {line}" for line in wrapped(figures, width - 2))


def _named(row: Sequence[str], above: Sequence[int], width: int) -> list[str]:
    """Return the texts of a row in a line or two; one wider than the page keeps both ends."""
    text = _BETWEEN.join(clip(row[at], widest=max(width, WIDEST)) for at in above if row[at])
    lines = wrapped(text, width, rest=" " * INDENT)
    return lines[:1] + [" " * INDENT + line.strip() for line in lines[1:]]


def _aligned(rows: Sequence[list[str]], columns: Sequence[Column], heads: int = 1) -> Iterator[str]:
    """Yield a line for each row, the heads first, with a rule below them."""
    widths = [max(map(display_width, cells)) for cells in zip(*rows)]
    right = [is_number(column) for column in columns]
    lines = [_row(row, widths, right) for row in rows]
    yield from (*lines[:heads], "  ".join("-" * width for width in widths), *lines[heads:])


def _row(cells: list[str], widths: list[int], right: list[bool]) -> str:
    spaces = (" " * (width - display_width(cell)) for cell, width in zip(cells, widths))
    return "  ".join(space + cell if number else cell + space for cell, space, number in zip(cells, spaces, right))


def _clipped(row: Sequence[str], widest: int = WIDEST) -> list[str]:
    return [clip(text, last=at == len(row) - 1, widest=widest) for at, text in enumerate(row)]


def clip(text: str, *, last: bool = False, widest: int = WIDEST) -> str:
    """Return a shortened name with both ends, and of a test without the start of its path."""
    # A sentence in the last column stays whole, since nothing follows it and its end may matter most.
    text = text if text.isprintable() else "".join(c if c.isprintable() else "�" for c in text)
    if len(text) <= widest or (last and "::" not in text and max(map(len, text.split()), default=0) <= _WORD):
        return text
    file = text.find("::")
    if file > 0:
        folder = text.rfind("/", 0, file)
        fits = folder > 0 and len(text) - folder < widest
        text = f"…{text[folder:] if fits else text[file:]}"
    return text if len(text) <= widest else f"{text[: widest - 21]}…{text[-20:]}"


_UNITS = {**TIME_UNITS, "%": 0.01}


def cell_text(cell: Cell, column: Column) -> str:
    if cell is None or is_absent(cell):
        return column.absent
    if isinstance(cell, str):
        return cell
    if column.unit:
        return f"{cell:.0f}" if column.unit == "ns" else significant(cell / _UNITS.get(column.unit, 1.0), column.digits)
    if column.dimension is Dimension.FRACTION and column.name in _CHANGES:
        return signed(cell)
    return quantity(cell, column.dimension, column.digits)


def is_absent(cell: Cell) -> bool:
    """Return whether a cell has neither a number nor a text."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def heading(column: Column) -> str:
    """Return the name with the unit of the column; a name such as ``busy_ns`` is ``busy``: its cells have a unit."""
    if column.unit and not column.name.endswith(f"_{column.unit}"):
        return f"{column.name} ({column.unit})"
    return column.name if column.unit else column.name.removesuffix("_ns")


def is_number(column: Column) -> bool:
    return column.dimension is not Dimension.TEXT


def shown_rows(table: Table) -> list[list[str]]:
    """Return the visible rows as text."""
    rows = table.rows[: table.limit] if table.limit else table.rows
    return [[shown(partial(cell_text, cell, column), str) for cell, column in zip(row, table.columns)] for row in rows]


def left_out(table: Table) -> str:
    """Return the line on rows that are not shown."""
    more = len(table.rows) - table.limit if table.limit else 0
    return f"... and {plural(more, 'more row')} ({table.rest})" if more > 0 else ""


Line = tuple[str, str, str]
"""Label, mark, text; a repeated label is left out."""


def render_screen(groups: Iterable[tuple[str, Sequence[Line]]], width: int) -> str:
    """Return each group below its title, without empty lines between them."""
    return "\n".join(text for title, lines in groups for text in (title[:width], *_lines(lines, width))) + "\n"


def _lines(lines: Sequence[Line], width: int) -> Iterator[str]:
    label, mark = (max((len(line[at]) for line in lines), default=0) for at in (0, 1))
    last = ""
    for name, sign, text in lines:
        head = f"  {'' if name == last else name:<{label}}  {sign:<{mark}}  "
        last = name
        yield from wrapped(text, width, head)
