"""Calls across the border to libraries: optional imports, timeouts of drivers, reachable objects."""

from __future__ import annotations

import functools
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial, wraps
from importlib import import_module
from itertools import islice
from operator import itemgetter
from types import CodeType, FunctionType, ModuleType
from typing import Any, Generic, ParamSpec, TypeVar

from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError

BORDER: tuple[type[Exception], ...] = (ImportError, RuntimeError, AssertionError, OSError, KeyError)
"""Errors of libraries without a driver or device; amdsmi raises a KeyError at import."""


def quiet_import(name: str) -> Any:
    """Import a library without its warnings, which a project's filters would turn into our failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module(name)


def with_warning(ask: Callable[[], Any]) -> tuple[Any, str]:
    """Return an answer and the first sentence of a warning; no filter turns it into an error."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        answer = ask()
    return answer, str(warned[0].message).partition(". ")[0].strip() if warned else ""


def probe_availability(name: str, version: Callable[[], str], *, also: Any = (), fix: str) -> Availability:
    """Return whether an instrument works; known failures and a silent driver become the reason."""
    try:
        return Availability(name=name, usable=True, version=version())
    except PerfgateError as silent:
        if silent.code.name != "driver-silent":
            raise
        return Availability(name=name, usable=False, why=silent.what, fix=silent.fix)
    except Exception as error:
        if not isinstance(error, (*BORDER, *foreign(also))):
            raise
        return Availability(name=name, usable=False, why=sentence(error), fix=fix)


def foreign(also: Any) -> tuple[type[Exception], ...]:
    """Return a library's own errors, looked up late, because importing it may be what fails."""
    try:
        extra = also() if callable(also) else also
    except BORDER:
        return ()
    return tuple(extra)


def faults(also: Any) -> tuple[type[Exception], ...]:
    """Return the errors that a library raises when the device fails a request."""
    return (RuntimeError, *foreign(also))


def sentence(error: BaseException) -> str:
    """Return the first line of an error with its class; also the next one if the first only announces it."""
    text, *more = [line.strip() for line in str(error).strip().splitlines()] or [""]
    if text.endswith(":") and more:
        text = f"{text} {more[0]}"
    kind = type(error).__name__
    return f"{kind}: {text}" if text else kind


START_S = 60.0
"""Seconds for a library's start, which may have to wake every card of a machine."""

PATIENCE_S = 10.0
"""Seconds for any other call."""

P = ParamSpec("P")

T = TypeVar("T")

_here = threading.local()

_silent: dict[str, str] = {}


def why_disabled(library: str) -> str:
    """Return why a library is no longer called in this process; "" if it has always answered."""
    return _silent.get(library, "")


@contextmanager
def expendable() -> Iterator[None]:
    """Mark that this thread may wait for ever; its callers wait with a timeout."""
    _here.expendable = True
    try:
        yield
    finally:
        _here.expendable = False


def with_timeout(library: str, what: str, ask: Callable[[], T], patience_s: float | None = None) -> T:
    """Return the answer; raise after a timeout, and never call the library again."""
    if getattr(_here, "expendable", False):
        return ask()
    if why_disabled(library):
        raise PerfgateError("driver-silent", why_disabled(library))
    patience_s = PATIENCE_S if patience_s is None else patience_s
    question = _DriverQuestion(ask)
    thread = threading.Thread(target=question.run, name=f"perfgate-{library}", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # at exit Python 3.12 starts no threads; clocks are still reset
        return ask()
    thread.join(patience_s)
    if thread.is_alive():
        _silent[library] = f"{library} did not answer within {patience_s:g} s, asked for {what}"
        raise PerfgateError("driver-silent", why_disabled(library))
    return question.result()


class _DriverQuestion(Generic[T]):
    """A call to a driver in progress."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._answer: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        with expendable():
            try:
                self._answer.append(self._ask())
            except BaseException as error:  # noqa: BLE001 - passed on to the caller
                self._error = error

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._answer[0]


def time_limited(method: Callable[P, T]) -> Callable[P, T]:
    """Give a method a timeout; its object names its ``maker``'s library, and the ``failures`` of a lost device."""

    @wraps(method)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        owner: Any = args[0]
        try:
            return with_timeout(owner.maker, method.__name__, partial(method, *args, **kwargs))
        except getattr(owner, "failures", ()) as error:
            raise PerfgateError("device-lost", f"{owner.maker} stopped answering: {error}") from error

    return limited


DEPTH = 6

MOST = 10_000
"""The most objects that are visited, without plain numbers and texts."""

_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None)})


def reachable_objects(call: Any, kind: type[T] | tuple[type[T], ...]) -> tuple[T, ...]:
    """Return the reachable objects of this kind, each once, in the order of names in the call; large tables are cut.

    The search is breadth-first, so that near objects fit its limit. The result is ordered by names: a queue in a field
    of the kernel named first precedes a nearer one that is named later, because a runtime times the first queue of the
    call.
    """
    objects: list[tuple[tuple[int, ...], T]] = []
    visited: dict[int, Any] = {}  # keeps visited objects alive, so that their addresses are not reused
    level: list[tuple[tuple[int, ...], Any]] = [((), call)]
    for _ in range(DEPTH + 1):
        inner: list[tuple[tuple[int, ...], Any]] = []
        for path, thing in level:
            if id(thing) in visited:
                continue
            visited[id(thing)] = thing
            if _is(thing, kind):
                objects.append((path, thing))
            else:
                parts = islice(_until_error(_parts(thing)), max(0, MOST - len(visited) - len(inner)))
                inner.extend(((*path, index), part) for index, part in enumerate(parts))
        level = inner
    return tuple(thing for _, thing in sorted(objects, key=itemgetter(0)))


def _is(thing: Any, kind: Any) -> bool:
    try:
        return isinstance(thing, kind)
    except Exception:  # noqa: BLE001 - any code of the user's
        return False


def _until_error(parts: Iterator[Any]) -> Iterator[Any]:
    """Yield parts until the object raises."""
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
    """Yield a table's items that are not plain numbers or texts, of which there may be millions."""
    if not _PLAIN.issuperset(map(type, things)):
        yield from (thing for thing in things if type(thing) not in _PLAIN)


def _of_function(thing: Any) -> Iterator[Any]:
    """Yield closure cells, defaults and named globals of a function, the object of a method, or an object's fields."""
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
        call = getattr(type(thing), "__call__", None)  # noqa: B004 - its code is examined
        if isinstance(call, FunctionType):
            yield call


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that a function uses, with those of inner functions and comprehensions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _globals(space: Mapping[str, Any], names: Sequence[str]) -> Iterator[Any]:
    """Yield the values of names; of a module also its data under one of the names, but not its functions."""
    for value in (space[name] for name in names if name in space):
        yield value
        if _module(value):
            inside = (vars(value)[inner] for inner in names if inner in vars(value))
            yield from (part for part in inside if not callable(part) and not _module(part))


def _weights(thing: Any) -> Iterator[Any]:
    """Yield parameters and buffers of torch's modules at any depth."""
    torch: Any = sys.modules.get("torch")
    module: Any = getattr(getattr(torch, "nn", None), "Module", None)
    if module is not None and isinstance(thing, module):
        yield from (*thing.parameters(), *thing.buffers())


def _field(thing: Any, name: str) -> Any:
    """Return a field; None if the object raises."""
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - any code of the user's
        return None


def _bound(cell: Any) -> bool:
    """Return whether a cell has a value: the cell of an unbound name is empty."""
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _module(thing: Any) -> bool:
    return isinstance(thing, ModuleType)
