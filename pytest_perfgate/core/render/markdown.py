"""Documents as Markdown."""

from __future__ import annotations

import re
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

_MARKUP = re.compile(r"<(?=[A-Za-z/!?])|(?<=\S)\*|\*(?=\S)")


def render_markdown(document: Document, level: int = 1) -> str:
    """The document as GitHub-flavoured Markdown."""
    lines = [f"{'#' * level} {document.title}"]
    lines += ["", document.subtitle] if document.subtitle else []
    for block in document.blocks:
        lines += ["", *_block(block, level + 1)]
    return "\n".join(lines) + "\n"


def _block(block: Block, level: int) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield harmless(block.text)
    elif isinstance(block, Bullets):
        yield from (f"{f'{n}.' if block.ordered else '-'} {harmless(item)}" for n, item in enumerate(block.items, 1))
    elif isinstance(block, Code):
        fence = "`" * max(3, _longest_run(block.text) + 1)
        yield from (f"{fence}{block.language}", block.text.rstrip("\n"), fence)
    elif isinstance(block, Link):
        yield f"[{block.text}](#{block.anchor})"
    elif isinstance(block, Picture):
        yield f"*{block.alt}*"
    elif isinstance(block, Table):
        yield from _table(block)
    else:
        yield from _section(block, level)


def _section(section: Section, level: int) -> Iterator[str]:
    if section.anchor:
        yield from (f'<a id="{section.anchor}"></a>', "")
    yield f"{'#' * min(level, 6)} {section.title}"
    for block in section.blocks:
        yield ""
        yield from _block(block, level + 1)


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield from (f"**{table.title}**", "")
    yield f"| {' | '.join(escape(heading(column)) for column in table.columns)} |"
    yield f"|{'|'.join('---:' if is_number(column) else '---' for column in table.columns)}|"
    for row in shown_rows(table):
        yield f"| {' | '.join(map(escape, row))} |"
    for line in (left_out(table), table.note):
        if line:
            yield from ("", line)


def harmless(text: str) -> str:
    """Prose whose template arguments and pointers are not taken for tags and emphasis."""
    return _MARKUP.sub(lambda found: f"\\{found.group()}", text)


def escape(text: str) -> str:
    """Text that stays one cell and makes no markup of its own."""
    for char in "\\`*_[]<>|":
        text = text.replace(char, "\\" + char)
    return " ".join(text.split())


def _longest_run(text: str) -> int:
    run = longest = 0
    for char in text:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return longest
