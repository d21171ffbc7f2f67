"""Numbers of the command line: one that asks for nothing is a mistake in the command."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError


def whole(text: str) -> int:
    """A whole number from 1."""
    if text.strip().isdecimal() and int(text) > 0:
        return int(text)
    raise ArgumentTypeError(f"{text!r} is no whole number from 1")


def above_zero(text: str) -> float:
    found = _finite(text)
    if not found > 0:
        raise ArgumentTypeError(f"{text!r} is no number above zero")
    return found


def from_zero(text: str) -> float:
    found = _finite(text)
    if not found >= 0:
        raise ArgumentTypeError(f"{text!r} is no number from zero")
    return found


def _finite(text: str) -> float:
    """What is no number fails every comparison."""
    try:
        found = float(text)
    except ValueError:
        return math.nan
    return found if math.isfinite(found) else math.nan
