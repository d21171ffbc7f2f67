"""What a call touches: objects of a kind in its closure, its arguments, its globals."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

DEPTH = 6


def touched(call: Any, kind: type[T] | tuple[type[T], ...]) -> tuple[T, ...]:
    """Every object of this kind within reach of a call, in the order found, each once."""
    found: dict[int, T] = {}
    _look(call, kind, found, set(), DEPTH)
    return tuple(found.values())


def _look(thing: Any, kind: Any, found: dict[int, Any], seen: set[int], depth: int) -> None:
    if id(thing) in seen or depth < 0:
        return
    seen.add(id(thing))
    if isinstance(thing, kind):
        found[id(thing)] = thing
        return
    for part in _parts(thing):
        _look(part, kind, found, seen, depth - 1)


def _parts(thing: Any) -> Iterator[Any]:
    if isinstance(thing, Mapping):
        yield from thing.values()
    elif isinstance(thing, (list, tuple, set)):
        yield from thing
    elif isinstance(thing, functools.partial):
        yield from (thing.func, thing.args, thing.keywords)
    else:
        yield from _of_function(thing)


def _of_function(thing: Any) -> Iterator[Any]:
    """Closure cells, defaults and named globals of a function; the object of a method; fields of an object."""
    yield from (getattr(thing, name) for name in ("__self__", "__wrapped__") if hasattr(thing, name))
    function = getattr(thing, "__func__", thing)
    code = getattr(function, "__code__", None)
    if code is not None:
        yield from (cell.cell_contents for cell in function.__closure__ or () if _bound(cell))
        yield from function.__defaults__ or ()
        names = function.__globals__
        yield from (names[name] for name in code.co_names if name in names)
    elif not isinstance(thing, (type, str, bytes, int, float)) and not _module(thing):
        yield from getattr(thing, "__dict__", {}).values()
        yield from (getattr(thing, name, None) for name in getattr(type(thing), "__slots__", ()))


def _bound(cell: Any) -> bool:
    """A name that is not bound yet has an empty cell."""
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _module(thing: Any) -> bool:
    return type(thing).__name__ == "module"
