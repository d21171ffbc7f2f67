"""Sizes that a library counted in numbers of its own: 32 bits overflow where a product of sizes does not."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_PLAIN = frozenset({int, float, str, bool, type(None)})


def exact(count: Callable[P, T]) -> Callable[P, T]:
    """The same work from Python's own numbers, which have no end."""

    @wraps(count)
    def counted(*args: P.args, **given: P.kwargs) -> T:
        if _PLAIN.issuperset(map(type, args)) and _PLAIN.issuperset(map(type, given.values())):
            return count(*args, **given)
        return count(*map(plain, args), **{name: plain(value) for name, value in given.items()})

    return counted


def plain(value: Any) -> Any:
    """A number, or numbers, of numpy and the like as Python's; anything else as it is."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, (tuple, list)):
        return tuple(map(plain, value))
    listed = getattr(value, "tolist", None)
    return listed() if callable(listed) and hasattr(value, "shape") and not isinstance(value, type) else value
