"""A fault as a line of somebody else's block: what failed and where the rest stands, not a screen of a build's log."""

from __future__ import annotations

from pytest_perfgate.model.errors import PerfgateError

_OF_PIP = ("subprocess-exited-with-error", "metadata-generation-failed", "failed-wheel-build", "from a subprocess")
"""Pip's own words for somebody else's error."""


def in_short(fault: PerfgateError) -> str:
    """The first line, of what follows the line that calls itself the error, else the last, and where all of it lies."""
    first, *rest = (line.strip() for line in fault.what.strip().splitlines())
    errors = [line for line in rest if "error:" in line.lower() and not any(words in line for words in _OF_PIP)]
    said = [errors[0]] if errors else rest[-1:]
    return "\n".join([first, *said, *([f"all of it: {fault.place}"] if rest and fault.place else [])])
