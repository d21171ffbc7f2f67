"""The arguments of a measured call, and what it returns to the test."""

from __future__ import annotations

import gc
import itertools
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_perfgate.model.device import SupportsInputs
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Discard, Reading, Samples, Stop
from pytest_perfgate.model.metric import Finding, MetricSet, Problem

if TYPE_CHECKING:
    from pytest_perfgate.model.device import Device
    from pytest_perfgate.model.plan import CaseKey
    from pytest_perfgate.model.values import Work


class Schedule(NamedTuple):
    """How often a suite of pytest-benchmark wants a call to run."""

    samples: int = 0
    """The least number of samples."""
    iterations: int = 1
    """The least number of calls for one sample."""
    warmups: int = 0
    """Warm-up runs of so many iterations each."""


FREE = Schedule()  # the suite states nothing: perfgate's own rule decides


@dataclass
class MeasuredCall:
    """One ``perfgate(fn, …)``."""

    key: CaseKey
    fn: Callable[..., Any]
    args: tuple[Any, ...] = ()
    setup: Callable[[], Any] | None = None
    work: Work | None = None
    check: Callable[[Any], Any] | None = None
    calls: int = 1
    limits: tuple[str, ...] = ()
    schedule: Schedule = FREE
    _inputs: list[Any] = field(default_factory=list)

    def once(self) -> Any:
        """Call it once, setup first, and let ``check`` see what it returned."""
        result = self.called()
        self.judge(result)
        return result

    def judge(self, result: Any) -> None:
        """Let ``check`` see what a call returned."""
        check = self.check.on_inputs(self.inputs) if isinstance(self.check, SupportsInputs) else self.check
        answer = None if check is None else check(result)
        if not agreed(answer):
            shown = repr(answer) if isinstance(answer, (str, bytes)) or not str(answer).strip() else str(answer)
            what = f"check= returned {shown[:60]} for what the call returned"
            unclear = "" if "False" in shown else "let it return True or False, such as bool(...all()), or raise"
            raise PerfgateError("check-failed", what, fix=unclear, place=str(self.key))

    def called(self) -> Any:
        """Call it once, setup first."""
        self.prepare()
        return self.timed()()

    def prepare(self) -> Any:
        """Run the set-up of a timed call, outside of its time, and return what it made."""
        if self.setup is not None:
            self._inputs[:] = as_arguments(self.setup())
        return tuple(self._inputs)

    def sample(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """Return the call, repeated as often as one sample requires at least."""
        return repeated(call, self.schedule.iterations) if self.schedule.iterations > 1 else call

    def warm_up(self) -> None:
        """Run the untimed warm-up calls that were requested, each after its set-up."""
        run = self.sample(self.timed())
        for _ in itertools.repeat(None, self.schedule.warmups):
            self.prepare()
            run()

    def inputs(self) -> tuple[Any, ...]:
        """Return the arguments of the function, made anew if there is a set-up."""
        return (*self.prepare(), *self.args)

    def timed(self) -> Callable[[], Any]:
        """Return the bare call, without set-up and check."""
        if self.setup is not None:
            return Prepared(self.fn, self.args, self._inputs, self.setup)
        return partial(self.fn, *self.args) if self.args else self.fn

    def with_last_result(self) -> LastResult:
        """Return the call wrapped to keep its last result, so that ``check`` can see the output of a timed call."""
        call = self.timed()
        return LastPreparedResult(call) if isinstance(call, Prepared) else LastResult(call)


def require_callables(**callables: Any) -> None:
    """Raise if an argument that runs around a call is not callable."""
    for name, thing in callables.items():
        if thing is not None and not callable(thing):
            fix = f"{name}=lambda: ..." if name == "setup" else f"{name}=lambda result: ..."
            raise PerfgateError("call-wrong", f"{name}= must be a callable, got {thing!r:.60}", fix=fix)


def repeated(call: Callable[[], Any], times: int) -> Callable[[], Any]:
    """Return a call that runs this one so many times and returns the last result."""

    def run() -> Any:
        result = None
        for _ in itertools.repeat(None, times):
            result = call()
        return result

    return run


def as_arguments(returned: Any) -> tuple[Any, ...]:
    """Return the result of a set-up as arguments: a tuple as several, ``None`` as no argument."""
    return () if returned is None else (returned if isinstance(returned, tuple) else (returned,))


class Prepared:
    """A call on what its set-up last returned, or bound to one such return value."""

    __slots__ = ("args", "fn", "inputs", "setup")

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], made: list[Any], setup: Any) -> None:
        self.fn, self.args, self.inputs, self.setup = fn, args, made, setup

    def __call__(self) -> Any:
        return self.fn(*self.inputs, *self.args)

    def bind(self, inputs: Any) -> Callable[[], Any]:
        """Return the call bound to these inputs, as a graph with rotating buffers needs it."""
        return partial(self.fn, *as_arguments(inputs), *self.args)


class LastResult:
    """A call that keeps its last result."""

    __slots__ = ("call", "last")

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.last: Any = None

    def __call__(self) -> Any:
        self.last = None
        self.last = self.call()
        return self.last


class LastPreparedResult(LastResult):
    """A call with a set-up that keeps its last result."""

    __slots__ = ()

    def bind(self, inputs: Any) -> Callable[[], Any]:
        """Return the call bound to these inputs; every bound call sets the last result."""
        assert isinstance(self.call, Prepared)
        call = self.call.bind(inputs)

        def run() -> Any:
            self.last = call()
            return self.last

        return run


def agreed(answer: Any) -> bool:
    """Return whether a check passed: it returned true, or returned None without raising.

    A scalar truth value of numpy, torch or CuPy counts as a bool; a number or an array does not, and fails.
    """
    if answer is None or isinstance(answer, bool):
        return answer is not False
    dtype, shape = str(getattr(answer, "dtype", "")), getattr(answer, "shape", None)
    return dtype in {"bool", "torch.bool"} and shape == () and bool(answer)


@dataclass
class Brought:
    """Samples or metrics that the test took itself: a region, a record, an artifact."""

    key: CaseKey
    kind: str
    durations: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)  # processor time of each entry of a region
    work: Work | None = None
    limits: tuple[str, ...] = ()
    metrics: MetricSet = field(default_factory=MetricSet)
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    readings: tuple[Reading, ...] = ()
    device: Device | None = None

    def samples(self) -> tuple[Samples, ...]:
        """Return the samples of one process, or none if nothing was timed; infinities and NaNs are only counted."""
        if not self.durations:
            return ()
        finite = tuple(filter(isfinite, self.durations))
        lost = len(self.durations) - len(finite)
        what = f"{lost} of {len(self.durations)} samples are not numbers"
        return (
            Samples(
                durations=finite,
                timer=self.kind,
                stop=Stop.COUNT if self.kind == "region" else Stop.RECORDED,
                cpu=tuple(self.cpu),
                discarded=(Discard(reason="not a number", count=lost),) if lost else (),
                problems=(Problem(code="bad-timing", what=what, retry=False),) if lost else (),
            ),
        )


Metrics = Callable[["CaseKey"], MetricSet | None]

Reason = Callable[["CaseKey"], str]
"""Returns why a call has no measurement, as far as it is known."""


class MetricMissing(PerfgateError, AttributeError):
    """A metric that this call does not have. It is an AttributeError too, so that ``hasattr`` returns False."""


class View:
    """``view.result`` is what the call returned; ``view.time`` and any other metric by its name.

    Times are nanoseconds, fractions 0 to 1. Reading a metric that was not measured is an error.
    """

    def __init__(self, key: CaseKey, result: Any = None, *, metrics: Metrics, reason: Reason = lambda _: "") -> None:
        self.key, self.result, self._metrics, self._reason = key, result, metrics, reason

    def __getattr__(self, name: str) -> float:
        if name.startswith("_"):
            raise AttributeError(name)
        metrics = self._metrics(self.key)
        if metrics is None:
            raise MetricMissing("not-measured", f"{name} of {self.key} was read, and this run measures nothing")
        matching = metrics.find(name)
        if not matching:
            raise _missing(name, metrics, str(self.key), self._reason(self.key))
        return matching[0].value

    def __repr__(self) -> str:
        return f"<perfgate {self.key}>"


def _missing(name: str, metrics: MetricSet, key: str, reason: str) -> MetricMissing:
    """Return the error for a name that no metric of this call has: it is misspelt, or was not measured here."""
    from pytest_perfgate.core.metric_kinds import by_name
    from pytest_perfgate.model.errors import nearest, some_of

    names, text = metrics.names(), f"{name} of {key} was not measured"
    if not names:
        why = reason or "it was not measured: it failed, or the call comes later"
        return MetricMissing("not-measured", text, why=why, fix="perfgate report shows its outcome")
    has = f"this call has {some_of(sorted(names))}"
    if (gap := metrics.missing(name)) or name in by_name():
        why = gap.why if gap else "no instrument of this call produces it"
        return MetricMissing("not-measured", text, why=why, fix=(gap and gap.fix) or has)
    near = nearest(name, names, 1) or nearest(name, by_name(), 1)
    fix = f"did you mean {near[0]!r}? {has}" if near else has
    return MetricMissing("not-measured", text, why="no metric has that name", fix=fix)


_FUTURE, _LIST = "a future", "lambda: list(f()), or a loop over it"

_PASSING: tuple[Any, ...] = (enumerate, itertools.chain, itertools.cycle, itertools.islice, type(itertools.tee(())[0]))
"""Iterators that only pass on items: they are lazy if their source is."""

_CARRYING: tuple[Any, ...] = (*_PASSING, list, tuple, type(iter([])), type(iter(())))

_PROMISES: tuple[tuple[Any, str, str], ...] = (
    (Coroutine, "a coroutine", "lambda: asyncio.run(f()), or a loop's run_until_complete"),
    (Generator, "a generator", _LIST),
    (AsyncGenerator, "an async generator", "lambda: asyncio.run(g()), where the coroutine g() goes through it"),
    (type(contextmanager(iter)(())).__mro__[1], "a context manager", "a call that enters it: with f(): ..."),
)

_LAZY = (
    (("add_done_callback",), _FUTURE, "lambda: f().result(), or a loop's run_until_complete"),
    (("get", "successful"), _FUTURE, "lambda: f().get()"),
    (("cancel", "cancelled"), "a scheduled call", "a loop's run_until_complete"),
    (("is_completed", "wait"), "communication that was never waited for", "lambda: f().wait()"),
    (("is_alive", "join"), "a thread or process that still works", "a call that joins it"),
    (("poll", "communicate"), "a process that still works", "a call that waits for it"),
    (("executescript", "fetchall"), "a cursor with rows that were never read", "lambda: f().fetchall()"),
    (("__dask_graph__", "compute"), "a graph", "lambda: f().compute()"),
    (("collect_schema", "collect"), "a query", "lambda: f().collect()"),
    (("fetch_blocking",), "a query that still works", "lambda: f().fetch_blocking()"),
    (("__await__",), "an awaitable", "lambda: asyncio.run(g()), where the coroutine g() awaits it"),
)
"""Methods that identify lazy classes without an import: all futures, threads, of sqlite3, torch, dask, polars."""

_LOOKED_AT, _DEEPEST = 1000, 8  # items of a collection, checked for all of them, and sources of an iterator
_STORING = {"builtins", "array", "_collections"}  # of modules whose iterators hand out stored items


def refuse_unrun(result: object) -> None:
    """Refuse a result that was only promised: creating it takes no time, and the work was not measured."""
    if unrun := _lazy_kind(result):
        raise _unrun(unrun[0], f"measure {unrun[1]}")
    if type(result) in {list, tuple, dict, set}:
        _refuse_held(result)


def _refuse_held(results: Any) -> None:
    """Refuse a collection with lazy items: futures if the first is one, and any other item that was not run."""
    items = results.values() if type(results) is dict else results
    promises = list(map(_lazy_kind, itertools.islice(items, _LOOKED_AT)))
    if not (waiting := next(filter(None, promises), None)):
        return
    if waiting[0].startswith(_FUTURE) and promises[0] == waiting:
        raise _unrun("futures that were never waited for", "measure lambda: [one.result() for one in f()]")
    raise _unrun(f"a {type(results).__name__} with {waiting[0]}", "let the call run it, or iterate over it")


def _unrun(returned: str, fix: str) -> PerfgateError:
    pronoun = "them" if returned.startswith("futures") else "it"
    return PerfgateError("call-wrong", f"the call returned {returned}: only creating {pronoun} was timed", fix=fix)


def _lazy_kind(result: object) -> tuple[str, str] | None:
    """Return the kind of a lazy result and how to measure it; None if it is not lazy, or raises when examined."""
    with suppress(Exception):  # anybody's code
        promise = next(_lazy_kinds(result), None)
        if isinstance(result, (Coroutine, Generator)):  # closed, or Python warns that it was never awaited
            with suppress(Exception):
                result.close()
        return promise
    return None


def _lazy_kinds(result: object) -> Iterator[tuple[str, str]]:
    for kind, what, fix in _PROMISES:
        if isinstance(result, kind):
            yield f"{what} that was never run", fix
    for methods, what, fix in _LAZY:
        if _has(result, methods) and not _done(result):
            yield what if " that " in what else f"{what} that was never run", fix
    if _steps(result) or (type(result) in _PASSING and _lazy_source(result)):
        yield "an iterator that was never run", f"{_LIST}; if the call has done its work, let it return nothing"


def _has(thing: object, methods: Iterable[str]) -> bool:
    return all(callable(getattr(type(thing), method, None)) for method in methods)


def _done(thing: Any) -> bool:
    """Return whether nothing is left to do: a data set of xarray in memory, a thread that ended, no more rows."""
    if _has(thing, ("is_alive",)):
        return not thing.is_alive()
    if _has(thing, ("poll",)):
        return thing.poll() is not None
    if _has(thing, ("fetchone",)):
        return thing.fetchone() is None
    return _has(thing, ("__dask_graph__",)) and thing.__dask_graph__() is None


def _steps(thing: object) -> bool:
    """Return whether a thing computes at each step; iterators over stored values, files and cursors do not."""
    of = type(thing)
    stored = of.__module__ in _STORING and of.__name__.endswith("iterator") and of is not type(iter(int, 1))
    idle = of in (*_PASSING, reversed, itertools.count, itertools.repeat)
    reads = any(_has(thing, (name,)) for name in ("read", "fetchall", "__array__"))
    return isinstance(thing, Iterator) and not (stored or idle or reads)


def _lazy_source(passing: object, depth: int = _DEEPEST) -> bool:
    """Return whether an iterator takes its items from one that computes at each step; no item is taken."""
    sources = gc.get_referents(passing)[:_LOOKED_AT]
    if any(map(_steps, sources)):
        return True
    return depth > 0 and any(_lazy_source(source, depth - 1) for source in sources if type(source) in _CARRYING)


USAGE = {
    "__call__": "perfgate(lambda: multiply(a, b))",
    "region": 'with perfgate.region("forward"): ...',
    "record": 'perfgate.record([12.5, 12.4], "us")',
    "metric": 'perfgate.metric("bytes_sent", 4096, unit="B")',
    "read": 'perfgate.read("trace.json")',
    "note": 'perfgate.note("tile", "64x128")',
    "attach": 'perfgate.attach("kernel.cubin", path)',
    "same": "perfgate(multiply, a, b, check=perfgate.same(as_=reference))",
}
"""An example call of each method of the fixture."""
