"""One screen for a terminal: groups of lines, each with a label, a mark and a text that hangs behind them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

Line = tuple[str, str, str]
"""Label, mark, text; a label that repeats is left out."""


def render_screen(groups: Iterable[tuple[str, Sequence[Line]]], width: int = 100) -> str:
    """Each group below its title, without a line between them."""
    return "\n".join(text for title, lines in groups for text in (title[:width], *_lines(lines, width))) + "\n"


def _lines(lines: Sequence[Line], width: int) -> Iterator[str]:
    label = max((len(name) for name, _, _ in lines), default=0)
    mark = max((len(sign) for _, sign, _ in lines), default=0)
    last = ""
    for name, sign, text in lines:
        head = f"  {'' if name == last else name:<{label}}  {sign:<{mark}}  "
        last = name
        yield from textwrap.wrap(
            text,
            width,
            initial_indent=head,
            subsequent_indent=" " * len(head),
            break_on_hyphens=False,
        )
