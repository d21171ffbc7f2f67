"""Optional imports, driver timeouts, objects in reach (bounded)."""

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
"""What libraries raise when the driver or the device is missing; amdsmi fails at import with a KeyError."""


def quiet_import(name: str) -> Any:
    """A library that may warn at import, which a project's filters would turn into a failure of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module(name)


def quietly(ask: Callable[[], Any]) -> tuple[Any, str]:
    """An answer, and the first sentence of what the library warns of meanwhile; no filter makes an error of that."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        answer = ask()
    return answer, str(warned[0].message).partition(". ")[0].strip() if warned else ""


def probe_availability(name: str, version: Callable[[], str], *, also: Any = (), fix: str = "") -> Availability:
    """Try an instrument; a failure of any of the known kinds becomes its reason, and so does a driver's silence."""
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
    """A library's own errors, asked for late: importing it may be what fails."""
    try:
        extra = also() if callable(also) else also
    except BORDER:
        return ()
    return tuple(extra)


def faults(also: Any) -> tuple[type[Exception], ...]:
    """What a library raises when the device does not do what it was asked for."""
    return (RuntimeError, *foreign(also))


def sentence(error: BaseException) -> str:
    """The first line of an error with its kind, for people; where that only announces the next, both."""
    text, *more = [line.strip() for line in str(error).strip().splitlines()] or [""]
    if text.endswith(":") and more:
        text = f"{text} {more[0]}"
    kind = type(error).__name__
    return f"{kind}: {text}" if text else kind


START_S = 60.0
"""For a library's start, which on a machine of many cards without a resident driver wakes each of them."""

PATIENCE_S = 10.0
"""For anything else."""

P = ParamSpec("P")

T = TypeVar("T")

_here = threading.local()

_silent: dict[str, str] = {}


def silence(library: str) -> str:
    """Why a library is not asked any more in this process; empty where it has always answered."""
    return _silent.get(library, "")


@contextmanager
def expendable() -> Iterator[None]:
    """This thread may wait for ever: whoever needs it waits for so long and no longer."""
    _here.expendable = True
    try:
        yield
    finally:
        _here.expendable = False


def with_timeout(library: str, what: str, ask: Callable[[], T], patience_s: float | None = None) -> T:
    """The answer, or an error once patience is over; from then on the library is not asked again."""
    if getattr(_here, "expendable", False):
        return ask()
    if silence(library):
        raise PerfgateError("driver-silent", silence(library))
    patience_s = PATIENCE_S if patience_s is None else patience_s
    question = _DriverQuestion(ask)
    thread = threading.Thread(target=question.run, name=f"perfgate-{library}", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # at exit Python 3.12 starts no more threads; clocks are put back all the same
        return ask()
    thread.join(patience_s)
    if thread.is_alive():
        _silent[library] = f"{library} did not answer within {patience_s:g} s, asked for {what}"
        raise PerfgateError("driver-silent", silence(library))
    return question.result()


class _DriverQuestion(Generic[T]):
    """A question on its way to a driver."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._answer: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        with expendable():
            try:
                self._answer.append(self._ask())
            except BaseException as error:  # noqa: BLE001 - whoever asked is to have it
                self._error = error

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._answer[0]


def patient(method: Callable[P, T]) -> Callable[P, T]:
    """A method that asks a driver, of an object that names its ``maker``'s library."""

    @wraps(method)
    def asked(*args: P.args, **kwargs: P.kwargs) -> T:
        owner: Any = args[0]
        return with_timeout(owner.maker, method.__name__, partial(method, *args, **kwargs))

    return asked


DEPTH = 6

MOST = 10_000
"""Objects that are looked at; plain numbers and texts are none."""

_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None)})


def reachable_objects(call: Any, kind: type[T] | tuple[type[T], ...]) -> tuple[T, ...]:
    """Objects of this kind within reach, each once, in the order that the call names them; a huge table is cut short.

    The search goes by nearness, so that its budget is spent on what is near. The order is that of the names: a queue
    in a field of a kernel that is named first comes before one that is named later and lies nearer, because the first
    queue is the one that a runtime times.
    """
    objects: list[tuple[tuple[int, ...], T]] = []
    visited: dict[int, Any] = {}  # holds what it has seen: the address of an object that is gone is given again
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
    except Exception:  # noqa: BLE001 - anybody's code
        return False


def _until_error(parts: Iterator[Any]) -> Iterator[Any]:
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
    for value in (space[name] for name in names if name in space):
        yield value
        if _module(value):
            inside = (vars(value)[inner] for inner in names if inner in vars(value))
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
