"""Spans of time as people write and read them on the command line."""

from __future__ import annotations

import re
from typing import Any

from pytest_perfgate.core.render.spans import about, span
from pytest_perfgate.model.errors import PerfgateError

__all__ = ["about", "seconds", "span"]

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0, "min": 60.0, "h": 3600.0}
_SPAN = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*([a-zµ]*)\s*\Z")


def seconds(given: Any, place: str) -> float:
    """Seconds from a number or from a text such as ``500 ms``."""
    found = _SPAN.match(str(given))
    if found is None or found.group(2) not in _SECONDS or float(found.group(1)) <= 0:
        raise PerfgateError("option-wrong", f"{given!r} is no time such as '500 ms'", place=place)
    return float(found.group(1)) * _SECONDS[found.group(2)]
