"""Documents as one HTML file: opens offline, runs nothing, readable on a phone and without colour."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from pytest_perfgate.core.render.cells import cell_text, heading, is_absent, is_number
from pytest_perfgate.core.render.quantity import ABSENT
from pytest_perfgate.core.render.style import STYLE
from pytest_perfgate.model.document import (
    Block,
    Bullets,
    Cell,
    Code,
    Document,
    Link,
    Paragraph,
    Picture,
    Section,
    Table,
)

_SHOWN = 500
_SHORT = 16
"""A text of this length stands on one line, where a word would otherwise break to save a few letters of width."""
_JOINT, _BREAK = re.compile(r"(?<=::)(?=\w)|(?<=[a-z\d]_)(?=[a-z\d])"), "<wbr>"
"""Where a long name is broken, if it has to be: between its words."""
_OUTCOMES = frozenset(
    {"PASSED", "IMPROVED", "ACCEPTED", "MOVED", "SUSPECT", "UNSTABLE", "UNDECIDED", "UNBASELINED", "NOT MEASURED"}
    | {"INVALID", "REGRESSED", "BROKEN", "NOT APPLICABLE"}
)


def render_html(documents: Document | Sequence[Document]) -> str:
    """One page of one or several documents, with contents where there are many sections."""
    pages = [documents] if isinstance(documents, Document) else list(documents)
    body = "\n".join(line for number, page in enumerate(pages) for line in _document(page, number))
    title = escape(pages[0].title if pages else "perfgate")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        'img-src data:">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _document(document: Document, number: int) -> Iterator[str]:
    yield f"<header><h1>{escape(document.title)}</h1>"
    if document.subtitle:
        yield f'<p class="subtitle">{escape(document.subtitle)}</p>'
    yield "</header>"
    sections = [block for block in document.blocks if isinstance(block, Section)]
    if len(sections) > 3:
        links = (f'<a href="#{_anchor(s, number, i)}">{escape(s.title)}</a>' for i, s in enumerate(sections))
        yield f"<nav>{' '.join(links)}</nav>"
    at = 0
    for block in document.blocks:
        if isinstance(block, Section):
            yield from _section(block, 2, _anchor(block, number, at))
            at += 1
        else:
            yield from _block(block, 2)


def _anchor(section: Section, document: int, number: int) -> str:
    return escape(section.anchor or f"s{document}-{number}", quote=True)


def _block(block: Block, level: int) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield f"<p>{escape(block.text)}</p>"
    elif isinstance(block, Bullets):
        tag = "ol" if block.ordered else "ul"
        yield f"<{tag}>{''.join(f'<li>{escape(item)}</li>' for item in block.items)}</{tag}>"
    elif isinstance(block, Code):
        yield f"<pre><code>{escape(block.text)}</code></pre>"
    elif isinstance(block, Link):
        yield f'<p><a href="#{escape(block.anchor, quote=True)}">{escape(block.text)}</a></p>'
    elif isinstance(block, Picture):
        yield f"<figure>{block.svg}<figcaption>{escape(block.alt)}</figcaption></figure>"
    elif isinstance(block, Table):
        yield from _table(block)
    else:
        yield from _section(block, level, escape(block.anchor, quote=True))


def _section(section: Section, level: int, anchor: str) -> Iterator[str]:
    mark = f' id="{anchor}"' if anchor else ""
    yield f"<section{mark}><h{min(level, 6)}>{escape(section.title)}</h{min(level, 6)}>"
    for block in section.blocks:
        yield from _block(block, level + 1)
    yield "</section>"


def _table(table: Table) -> Iterator[str]:
    """A table that scrolls by itself on a narrow screen; rows past a page's worth fold away."""
    if table.title:
        yield f'<p class="caption">{escape(table.title)}</p>'
    shown = table.limit or _SHOWN
    yield from _rows(table, 0, shown)
    if len(table.rows) > shown:
        yield f"<details><summary>{len(table.rows) - shown:,} more rows</summary>"
        yield from _rows(table, shown, shown + 20 * _SHOWN)
        left = len(table.rows) - shown - 20 * _SHOWN
        yield f"<p class='note'>{left:,} more are in the CSV</p></details>" if left > 0 else "</details>"
    if table.note:
        yield f'<p class="note">{escape(table.note)}</p>'


def _rows(table: Table, first: int, last: int) -> Iterator[str]:
    sides = ["number" if is_number(column) else "text" for column in table.columns]
    heads = "".join(f'<th class="{s}" scope="col">{escape(heading(c))}</th>' for c, s in zip(table.columns, sides))
    yield f'<div class="table"><table><thead><tr>{heads}</tr></thead><tbody>'
    for row in table.rows[first:last]:
        cells = zip(row, table.columns, sides)
        yield f"<tr>{''.join(_cell(cell, cell_text(cell, column), side) for cell, column, side in cells)}</tr>"
    yield "</tbody></table></div>"


def _cell(cell: Cell, text: str, side: str) -> str:
    if is_absent(cell) or text == ABSENT:
        return f'<td class="{side} absent">{escape(text)}</td>'
    if text.upper() in _OUTCOMES:
        kind = text.lower().replace(" ", "-")
        return f'<td class="{side}"><span class="outcome {kind}">{escape(text)}</span></td>'
    if side == "text" and len(text) <= _SHORT:
        return f'<td class="text short">{escape(text)}</td>'
    return f'<td class="{side}">{_JOINT.sub(_BREAK, escape(text)) if side == "text" else escape(text)}</td>'
