"""What a call asks and returns."""

from __future__ import annotations

import gc
import itertools
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import suppress
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
    """What a suite of pytest-benchmark says of how often a call runs."""

    samples: int = 0
    """At least."""
    iterations: int = 1
    """Calls behind one sample, at least."""
    warmups: int = 0
    """Runs of so many iterations before anything is timed."""


FREE = Schedule()
"""Nothing was said: perfgate's own rule decides."""


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
    _made: list[Any] = field(default_factory=list)

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
        """What runs before each timed call, outside of the time; what it made."""
        if self.setup is not None:
            self._made[:] = spread(self.setup())
        return tuple(self._made)

    def sample(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """The call as often as one sample asks for at least."""
        return repeated(call, self.schedule.iterations) if self.schedule.iterations > 1 else call

    def warm_up(self) -> None:
        """The untimed runs that were asked for, each with its set-up."""
        run = self.sample(self.timed())
        for _ in itertools.repeat(None, self.schedule.warmups):
            self.prepare()
            run()

    def inputs(self) -> tuple[Any, ...]:
        """What the function is given, made anew where a set-up makes it."""
        return (*self.prepare(), *self.args)

    def timed(self) -> Callable[[], Any]:
        """The call and nothing around it."""
        if self.setup is not None:
            return Prepared(self.fn, self.args, self._made, self.setup)
        return partial(self.fn, *self.args) if self.args else self.fn

    def kept(self) -> LastResult:
        """The call, which keeps what it returned last: for ``check`` to see the output of a timed call."""
        call = self.timed()
        return LastPreparedResult(call) if isinstance(call, Prepared) else LastResult(call)


def insist_on_callables(**given: Any) -> None:
    """What runs around a call is itself a call, or is not given."""
    for name, thing in given.items():
        if thing is not None and not callable(thing):
            fix = f"{name}=lambda: ..." if name == "setup" else f"{name}=lambda result: ..."
            raise PerfgateError("call-wrong", f"{name}= must be a callable, got {thing!r:.60}", fix=fix)


def repeated(call: Callable[[], Any], times: int) -> Callable[[], Any]:
    """The call so many times over; what the last one returned."""

    def run() -> Any:
        result = None
        for _ in itertools.repeat(None, times):
            result = call()
        return result

    return run


def spread(made: Any) -> tuple[Any, ...]:
    """What a set-up returned, as the arguments that it stands for."""
    return () if made is None else made if isinstance(made, tuple) else (made,)


class Prepared:
    """A call on what its set-up made last, or bound to one making of it."""

    __slots__ = ("args", "fn", "made", "setup")

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], made: list[Any], setup: Any) -> None:
        self.fn, self.args, self.made, self.setup = fn, args, made, setup

    def __call__(self) -> Any:
        return self.fn(*self.made, *self.args)

    def bind(self, made: Any) -> Callable[[], Any]:
        """The call on these inputs for good, as a graph needs it that rotates buffers."""
        return partial(self.fn, *spread(made), *self.args)


class LastResult:
    """A call and its last result."""

    __slots__ = ("call", "last")

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.last: Any = None

    def __call__(self) -> Any:
        self.last = None
        self.last = self.call()
        return self.last


class LastPreparedResult(LastResult):
    """The same of a call with a set-up."""

    __slots__ = ()

    def bind(self, made: Any) -> Callable[[], Any]:
        """Bound to these inputs; the result of any of them may be the last."""
        assert isinstance(self.call, Prepared)
        call = self.call.bind(made)

        def run() -> Any:
            self.last = call()
            return self.last

        return run


def agreed(answer: Any) -> bool:
    """Whether a check passed: it returned true, or returned None without raising.

    One truth of numpy, torch or CuPy is one; a number or a whole array says neither yes nor no, so it is no yes.
    """
    if answer is None or isinstance(answer, bool):
        return answer is not False
    one = str(getattr(answer, "dtype", "")) in {"bool", "torch.bool"} and getattr(answer, "shape", None) == ()
    return one and bool(answer)


@dataclass
class Brought:
    """Samples or metrics that the test has taken by itself: a region, a record, an artifact."""

    key: CaseKey
    kind: str
    durations: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)  # of the processor, by entry of a region
    work: Work | None = None
    limits: tuple[str, ...] = ()
    metrics: MetricSet = field(default_factory=MetricSet)
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    readings: tuple[Reading, ...] = ()
    device: Device | None = None

    def samples(self) -> tuple[Samples, ...]:
        """One process's samples; none where nothing was timed. What is no number is counted, never averaged."""
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

Fate = Callable[["CaseKey"], str]
"""The reason why a call has no measurement, as far as it is known."""


class MetricMissing(PerfgateError, AttributeError):
    """A number that this call has not: whoever only asks whether there is one (``hasattr``) hears no."""


class View:
    """``view.result`` is what the call returned; ``view.time`` and any other metric by its name.

    Times are nanoseconds, fractions 0 to 1. Reading what was not measured is an error.
    """

    def __init__(self, key: CaseKey, result: Any = None, *, metrics: Metrics, fate: Fate = lambda _: "") -> None:
        self.key, self.result, self._metrics, self._fate = key, result, metrics, fate

    def __getattr__(self, name: str) -> float:
        if name.startswith("_"):
            raise AttributeError(name)
        metrics = self._metrics(self.key)
        if metrics is None:
            raise MetricMissing("not-measured", f"{name} of {self.key} was read, and this run measures nothing")
        matching = metrics.find(name)
        if not matching:
            raise _missing(name, metrics, str(self.key), self._fate(self.key))
        return matching[0].value

    def __repr__(self) -> str:
        return f"<perfgate {self.key}>"


def _missing(name: str, metrics: MetricSet, key: str, fate: str) -> MetricMissing:
    """A name that no metric of this call has: misspelt, or nothing measured it here."""
    from pytest_perfgate.core.metric_kinds import by_name
    from pytest_perfgate.model.errors import nearest, some_of

    names, text = metrics.names(), f"{name} of {key} was not measured"
    if not names:
        why = fate or "it was not measured: it failed, or the call comes later"
        return MetricMissing("not-measured", text, why=why, fix="perfgate report shows its outcome")
    has = f"this call has {some_of(sorted(names))}"
    gap = metrics.missing(name)
    if gap is not None or name in by_name():
        why = gap.why if gap is not None else "no instrument of this call produces it"
        fix = (gap.fix if gap is not None else "") or has
        return MetricMissing("not-measured", text, why=why, fix=fix)
    near = nearest(name, names, 1) or nearest(name, by_name(), 1)
    fix = f"did you mean {near[0]!r}? {has}" if near else has
    return MetricMissing("not-measured", text, why="no metric has that name", fix=fix)


_FUTURE = "a future"

_LIST = "lambda: list(f()), or a loop over it"

_STEPPING = (
    *("accumulate", "batched", "combinations", "combinations_with_replacement", "compress", "dropwhile"),
    *("filterfalse", "groupby", "pairwise", "permutations", "product", "starmap", "takewhile", "zip_longest"),
)
"""Iterators of itertools; some versions of Python lack one or another."""

_STEPS = [step for name, step in vars(itertools).items() if name in _STEPPING]
_WORKING: tuple[Any, ...] = (map, filter, zip, type(iter(int, 1)), *_STEPS)
"""Iterators that work at each step, whatever they go through; ``re.finditer`` calls as ``iter(f, end)`` does."""

_PASSING: tuple[Any, ...] = (enumerate, itertools.chain, itertools.cycle, itertools.islice, type(itertools.tee(())[0]))
"""Those that hand on what is there: lazy where what they go through is."""

_CARRYING: tuple[Any, ...] = (*_PASSING, list, tuple, type(iter([])), type(iter(())))

_PROMISES: tuple[tuple[Any, str, str], ...] = (
    (Coroutine, "a coroutine", "lambda: asyncio.run(f()), or a loop's run_until_complete"),
    (Generator, "a generator", _LIST),
    (AsyncGenerator, "an async generator", "lambda: asyncio.run(g()), where the coroutine g() goes through it"),
    (_WORKING, "an iterator", _LIST),
)

_LAZY = (
    (("add_done_callback",), _FUTURE, "lambda: f().result(), or a loop's run_until_complete"),
    (("__dask_graph__", "compute"), "a graph", "lambda: f().compute()"),
    (("collect_schema", "collect"), "a query", "lambda: f().collect()"),
)
"""Methods that identify classes without an import: futures of any library, dask, polars."""

_LOOKED_AT = 1000
"""How many items of a collection are checked: a longer one holds more of the same."""

_DEEPEST = 8


def refuse_unrun(result: object) -> None:
    """What a call only promised was not measured: its making takes no time."""
    if unrun := _promise(result):
        raise _unrun(f"{unrun[0]} that was never run: only creating it was timed", f"measure {unrun[1]}")
    if type(result) in {list, tuple}:
        _refuse_held(result)


def _refuse_held(results: Any) -> None:
    """Several handed to a pool at once: the first tells; one beside what was done is lazy all the same."""
    looked = results[:_LOOKED_AT]
    waiting = next(filter(None, map(_promise, looked)), None)
    if waiting is None:
        return
    if waiting[0] == _FUTURE and _promise(looked[0]) == waiting:
        text = "futures that were never waited for: only creating them was timed"
        raise _unrun(text, "measure lambda: [one.result() for one in f()]")
    for unrun in looked:
        _closed(unrun)
    text = f"a {type(results).__name__} with {waiting[0]} that was never run: only creating it was timed"
    raise _unrun(text, "make the call run it, or iterate over it, before it returns")


def _unrun(returned: str, fix: str) -> PerfgateError:
    return PerfgateError("call-wrong", f"the call returned {returned}", fix=fix)


def _promise(result: object) -> tuple[str, str] | None:
    """What a thing promises and how that is measured; a thing that raises at being asked promises nothing."""
    try:
        promise = next(_promised(result), None)
    except Exception:  # noqa: BLE001 - anybody's code
        return None
    if promise:
        _closed(result)
    return promise


def _closed(result: object) -> None:
    """Close a coroutine, so that Python does not warn that it was never awaited."""
    with suppress(Exception):
        if isinstance(result, (Coroutine, Generator)):
            result.close()


def _promised(result: object) -> Iterator[tuple[str, str]]:
    yield from ((what, fix) for kind, what, fix in _PROMISES if isinstance(result, kind))
    yield from ((what, fix) for methods, what, fix in _LAZY if _has(result, methods) and not _plain(result))
    if type(result) in _PASSING and _lazy_source(result):
        yield "an iterator", _LIST


def _has(thing: object, methods: Iterable[str]) -> bool:
    return all(callable(getattr(type(thing), method, None)) for method in methods)


def _plain(thing: Any) -> bool:
    """One that could hold a graph of dask and holds none, as a data set of xarray in memory."""
    return _has(thing, ("__dask_graph__",)) and thing.__dask_graph__() is None


def _lazy_source(passing: object, depth: int = _DEEPEST) -> bool:
    """Whether what an iterator hands on comes of one that works at each step; nothing of it is taken."""
    sources = gc.get_referents(passing)[:_LOOKED_AT]
    if any(isinstance(source, (Generator, *_WORKING)) for source in sources):
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
"""How each method of the fixture is called."""
