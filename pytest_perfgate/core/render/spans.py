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


def about(amount: float) -> str:
    """An estimate: ``about 1 min 10 s``, and of a moment ``under 1 s``."""
    return span(amount) if amount < 1 else f"about {span(amount)}"
