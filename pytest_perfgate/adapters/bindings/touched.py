"""What a call touches: objects of a kind in its closure, its arguments, its globals."""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

T = TypeVar("T")

DEPTH = 6
MOST = 10_000
"""Objects that are looked at; plain numbers and texts are none."""
_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None)})


def touched(call: Any, kind: type[T] | tuple[type[T], ...]) -> tuple[T, ...]:
    """Objects of this kind within reach of a call, the nearest first, each once; a huge table ends the search."""
    found: list[T] = []
    seen: dict[int, Any] = {}  # holds what it has seen: the address of an object that is gone is given again
    level = [call]
    for _ in range(DEPTH + 1):
        inner: list[Any] = []
        for thing in level:
            if id(thing) in seen:
                continue
            seen[id(thing)] = thing
            if _is(thing, kind):
                found.append(thing)
            else:
                inner.extend(islice(_told(_parts(thing)), max(0, MOST - len(seen) - len(inner))))
        level = inner
    return tuple(found)


def _is(thing: Any, kind: Any) -> bool:
    try:
        return isinstance(thing, kind)
    except Exception:  # noqa: BLE001 - anybody's code
        return False


def _told(parts: Iterator[Any]) -> Iterator[Any]:
    """Parts until an object raises at being asked for them: such a one has no more."""
    with suppress(Exception):
        yield from parts


def _parts(thing: Any) -> Iterator[Any]:
    if isinstance(thing, Mapping):
        yield from _not_plain(thing.values())
    elif isinstance(thing, (list, tuple, set, frozenset, deque)):
        yield from _not_plain(thing)
    elif isinstance(thing, functools.partial):
        yield from (thing.func, thing.args, thing.keywords)
    else:
        yield from _of_function(thing)


def _not_plain(things: Collection[Any]) -> Iterator[Any]:
    """What a table holds beside plain numbers and texts: of those there may be millions."""
    if not _PLAIN.issuperset(map(type, things)):
        yield from (thing for thing in things if type(thing) not in _PLAIN)


def _of_function(thing: Any) -> Iterator[Any]:
    """Closure cells, defaults and named globals of a function; the object of a method; fields of an object."""
    yield from (part for name in ("__self__", "__wrapped__") if (part := _field(thing, name)) is not None)
    function = _field(thing, "__func__") or thing
    code = _field(function, "__code__")
    if isinstance(code, CodeType):
        yield from (cell.cell_contents for cell in function.__closure__ or () if _bound(cell))
        yield from function.__defaults__ or ()
        yield from (function.__kwdefaults__ or {}).values()
        yield from _globals(function.__globals__, tuple(dict.fromkeys(_names(code))))
    elif not isinstance(thing, (type, str, bytes, int, float)) and not _module(thing):
        yield from _weights(thing)
        yield from getattr(thing, "__dict__", {}).values()
        yield from (_field(thing, name) for name in getattr(type(thing), "__slots__", ()))
        call = getattr(type(thing), "__call__", None)  # noqa: B004 - its code is looked at
        if isinstance(call, FunctionType):
            yield call


def _names(code: CodeType) -> Iterator[str]:
    """Names that a function uses, those of comprehensions and functions inside it as well."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _globals(space: Mapping[str, Any], names: Sequence[str]) -> Iterator[Any]:
    """What the names stand for; of a module the data that it has under one of the names, not its own functions."""
    for found in (space[name] for name in names if name in space):
        yield found
        if _module(found):
            inside = (vars(found)[inner] for inner in names if inner in vars(found))
            yield from (part for part in inside if not callable(part) and not _module(part))


def _weights(thing: Any) -> Iterator[Any]:
    """Parameters and buffers of torch's modules, however deep they lie."""
    torch: Any = sys.modules.get("torch")
    module: Any = getattr(getattr(torch, "nn", None), "Module", None)
    if module is not None and isinstance(thing, module):
        yield from (*thing.parameters(), *thing.buffers())


def _field(thing: Any, name: str) -> Any:
    """Nothing where an object raises whatever it likes at being asked."""
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - anybody's code
        return None


def _bound(cell: Any) -> bool:
    """A name that is not bound yet has an empty cell."""
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _module(thing: Any) -> bool:
    return isinstance(thing, ModuleType)
