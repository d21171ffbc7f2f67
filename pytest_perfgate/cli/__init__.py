"""The command line: one file a command, each imported when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    from pytest_perfgate.cli.dispatch import dispatch

    return dispatch(list(sys.argv[1:] if argv is None else argv))
