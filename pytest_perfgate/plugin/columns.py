"""How wide the terminal is, so that no line of ours is torn in the middle of a word."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

ANY = 10**6
"""Columns of what is no terminal: a log is searched by its lines."""
_LEAST = 60


def columns(config: pytest.Config) -> int:
    """The terminal's, or any number."""
    out: Any = config.pluginmanager.get_plugin("terminalreporter")
    return max(_LEAST, out._tw.fullwidth) if out is not None and out.isatty else ANY  # noqa: SLF001


def folded(line: str, width: int) -> list[str]:
    """A sentence on as many lines as it takes; a command stays whole, to be pasted."""
    if len(line) <= width or line.lstrip().startswith("next "):
        return [line]
    return textwrap.wrap(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
