"""Spans of time that a person waits, as people say them."""

from __future__ import annotations


def span(amount: float) -> str:
    """``1 min 10 s`` of seconds."""
    if amount < 1:
        return "under 1 s"
    whole = round(amount)
    hours, minutes, seconds = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
