"""Values of other libraries as Python's own, on their way into JSON."""

from __future__ import annotations

from typing import Any


def plain(value: Any) -> Any:
    """A number of numpy, or a text of a kind of its own; anything else is nothing that a message holds."""
    if isinstance(value, str):
        return str.__str__(value)
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():
        return item()
    raise TypeError(f"a {type(value).__module__}.{type(value).__name__} is nothing that a record holds")
