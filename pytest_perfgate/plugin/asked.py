"""What a test asked of its fixture, on its way to whoever answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from math import isfinite
from typing import Any, NamedTuple

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.problem import Finding, Problem
from pytest_perfgate.model.samples import Discard, Samples, Stop
from pytest_perfgate.model.work import Work


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
class Asked:
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
        said = None if self.check is None else self.check(result)
        if not agreed(said):
            shown = repr(said) if isinstance(said, (str, bytes)) or not str(said).strip() else str(said)
            what = f"check= returned {shown[:60]} for what the call returned"
            unclear = "" if "False" in shown else "let it return True or False, such as bool(...all()), or raise"
            raise PerfgateError("check-failed", what, mend=unclear, place=str(self.key))

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
        for _ in repeat(None, self.schedule.warmups):
            self.prepare()
            run()

    def timed(self) -> Callable[[], Any]:
        """The call and nothing around it."""
        if self.setup is not None:
            return Prepared(self.fn, self.args, self._made, self.setup)
        return partial(self.fn, *self.args) if self.args else self.fn

    def kept(self) -> Kept:
        """The call, which keeps what it returned last: for ``check`` to see the output of a timed call."""
        call = self.timed()
        return KeptPrepared(call) if isinstance(call, Prepared) else Kept(call)


def repeated(call: Callable[[], Any], times: int) -> Callable[[], Any]:
    """The call so many times over; what the last one returned."""

    def run() -> Any:
        result = None
        for _ in repeat(None, times):
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


class Kept:
    """A call and its last result."""

    __slots__ = ("call", "last")

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.last: Any = None

    def __call__(self) -> Any:
        self.last = None
        self.last = self.call()
        return self.last


class KeptPrepared(Kept):
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


def agreed(said: Any) -> bool:
    """Whether a check is content: it says yes, or says nothing and did not raise.

    One truth of numpy, torch or CuPy is one; a number or a whole array says neither yes nor no, so it is no yes.
    """
    if said is None or isinstance(said, bool):
        return said is not False
    one = str(getattr(said, "dtype", "")) in {"bool", "torch.bool"} and getattr(said, "shape", None) == ()
    return one and bool(said)


@dataclass
class Brought:
    """Samples or metrics that the test has taken by itself: a region, a record, an artifact."""

    key: CaseKey
    kind: str
    durations: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    """Processor time beside each entry of a region."""
    work: Work | None = None
    limits: tuple[str, ...] = ()
    metrics: MetricSet = field(default_factory=MetricSet)
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()

    def samples(self) -> tuple[Samples, ...]:
        """One process's samples; none where nothing was timed. What is no number is counted, never averaged."""
        if not self.durations:
            return ()
        finite = tuple(duration for duration in self.durations if isfinite(duration))
        lost = len(self.durations) - len(finite)
        what = f"{lost} of {len(self.durations)} samples are no number"
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
