"""The command line: each command's module is imported when it is called."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

_SELDOM = 200_000
"""New objects before garbage collection; with Python's default of 700 it took a fifth of the start."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    usual = gc.get_threshold()
    gc.set_threshold(_SELDOM, *usual[1:])
    try:
        from pytest_perfgate.cli.dispatch import dispatch

        return dispatch(list(sys.argv[1:] if argv is None else argv))
    finally:
        if argv is None:
            gc.freeze()  # the process ends, so a last search for garbage is useless
        gc.set_threshold(*usual)


_UNKNOWN = 80


def terminal_columns() -> int:
    """Return the width of the terminal, as ``shutil`` does, whose import takes a fiftieth of a command's start."""
    named = os.environ.get("COLUMNS", "")
    if named.isdecimal() and int(named):
        return int(named)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or _UNKNOWN  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN
