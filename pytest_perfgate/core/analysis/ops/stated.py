"""Counts that a user states: every rate is made of them, so they must be counts."""

from __future__ import annotations

import math
from typing import Any

from pytest_perfgate.model.work import Work

_FIGURES = ("flops", "bytes", "items", "working_set")


def stated(name: str, count: Any) -> Any:
    """The count itself; what is negative, not finite or no number at all is refused."""
    fault = count_fault(count)
    if fault:
        raise ValueError(f"{name}={count!r:.60} {fault}")
    return count


def count_fault(count: Any) -> str:
    """What keeps something from being a count; empty where it is one."""
    if isinstance(count, int) and not isinstance(count, bool):
        return "is negative" if count < 0 else ""
    try:
        number = float(count) if not isinstance(count, (str, bytes, bool)) else None
    except (TypeError, ValueError):
        number = None
    if number is None:
        return "is no number"
    if not math.isfinite(number):
        return "is not finite"
    return "is negative" if number < 0 else ""


def work_fault(work: Work) -> str:
    """What is wrong with the figures of an operator's work, such as one of a negative size; empty where nothing is."""
    counts = ((name, getattr(work, name)) for name in _FIGURES)
    found = ((name, count, count_fault(count)) for name, count in counts if count is not None)
    return next((f"its {name} {fault}: {count!r:.60}" for name, count, fault in found if fault), "")
