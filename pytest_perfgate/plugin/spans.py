"""Spans of time as people write and read them on the command line."""

from __future__ import annotations

from typing import Any

from pytest_perfgate.core.render.spans import about, span
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.quantity import span_seconds

__all__ = ["about", "seconds", "span"]


def seconds(given: Any, place: str) -> float:
    """Seconds from a number or from a text such as ``500 ms``."""
    found = span_seconds(str(given))
    if not found:
        raise PerfgateError("option-wrong", f"{given!r} is no time such as '500 ms'", place=place)
    return found
