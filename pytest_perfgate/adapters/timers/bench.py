"""One call on a device's queue, made ready to be timed: fresh inputs, a cold cache, a warm machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from statistics import median
from typing import NamedTuple, Protocol

from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Cache, Plan
from pytest_perfgate.model.ports import Call, QueueRuntime, Runtime, StoppingRule
from pytest_perfgate.model.samples import Stop
from pytest_perfgate.model.sampling import SAMPLING, Sampling
from pytest_perfgate.model.values import array_value

Clock = Callable[[], float]
_WARM_BATCH = 5
SETTLE_NS = 3e9
"""So long a device is warmed up at most for its clock and its power to settle."""
_LOAD_NS, _MOST_LOAD = 5e6, 500
"""Calls in a row that keep a device busy while it settles: one by one it would idle between them."""
COLD = Cache.COLD
"""Looked up once: to ask the enumeration each time takes as long as a timed call."""


class WarmUp(Protocol):
    """Says when a call is warm; core has the rule."""

    def __call__(self, medians: Sequence[float], calls: int, spent_ns: float, plan: Plan) -> bool: ...


class Warmth(NamedTuple):
    """What warming up came to."""

    calls: int = 0
    spent_ns: float = 0.0
    settled: bool = True

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        """That samples were taken of a device that had not settled."""
        said = f"clock and power had not settled after {self.spent_ns / 1e9:.3g} s"
        return () if self.settled else (("warm-up", said),)


@array_value
class Rules:
    """The pure rules that a timer is given, and the host's clock."""

    stop: StoppingRule
    warm: WarmUp
    clock: Clock = HOST_CLOCK.wall
    sampling: Sampling = SAMPLING
    """Told when sampling begins and ends: only then do the device's clocks count."""


@array_value
class Bench:
    """What is timed, on what, by which plan."""

    call: Call
    plan: Plan
    runtime: QueueRuntime
    rules: Rules
    setup: Call | None = None

    def __post_init__(self) -> None:
        adopt = getattr(self.runtime, "adopt", None)
        if adopt is not None:
            adopt(self.call)

    @property
    def clock(self) -> Clock:
        return self.rules.clock

    @property
    def prepares(self) -> bool:
        """Whether anything is to be done before a call."""
        return self.setup is not None or self.plan.cache is COLD

    def ready(self) -> None:
        """Fresh inputs and, where the plan wants it, a cold cache; none of it is timed."""
        if self.setup is not None:
            self.setup()
        if self.plan.cache is COLD:
            self.runtime.flush()

    def once(self) -> float:
        """One call to its end, as the host sees it."""
        self.ready()
        self.runtime.synchronize()
        begun = self.clock()
        self.call()
        self.runtime.synchronize()
        return self.clock() - begun

    def warm(self) -> Warmth:
        """Warm up, flushing as the measurement will, until the call and the device hold still."""
        if self.plan.warmup_ns <= 0 and self.plan.settle_ns <= 0:
            return Warmth()
        self.rules.sampling.loads += 1
        medians: list[float] = []
        begun, calls, spent = self.clock(), 0, 0.0
        while not (warm := self.rules.warm(medians, calls, spent, self.plan)) or not self._settled(spent):
            medians.append(median(self.once() for _ in range(_WARM_BATCH)))
            calls += _WARM_BATCH + (self._load(medians[-1]) if warm else 0)
            spent = self.clock() - begun
        return Warmth(calls, spent, settled=self.rules.sampling.steady())

    def _settled(self, spent: float) -> bool:
        """Whether the device has settled, or will not."""
        enough = max(SETTLE_NS, self.plan.settle_ns)
        return spent >= enough or (spent >= self.plan.settle_ns and self.rules.sampling.steady())

    def _load(self, typical: float) -> int:
        """Calls in a row, as samples will be taken: how many there were."""
        count = int(max(1.0, min(_MOST_LOAD, _LOAD_NS / max(typical, 1.0))))
        for _ in range(count):
            self.ready()
            self.call()
        self.runtime.synchronize()
        return count

    def sampled(self, take: Callable[[], Sequence[float]]) -> tuple[list[float], Stop]:
        """Samples until the rule says why to stop."""
        durations: list[float] = []
        with self.rules.sampling.region():
            begun, stop = self.clock(), None
            while stop is None:
                durations += take()
                stop = self.rules.stop(durations, self.clock() - begun, self.plan)
        return durations, stop

    def batch(self) -> int:
        """Calls between two events: a batch has one set of inputs, and cannot be cold."""
        calls = 1 if self.setup is not None else max(1, self.plan.calls)
        if calls > 1 and self.plan.cache is COLD:
            raise PerfgateError("cache-cold-batch", f"calls={calls} with a cold cache")
        return calls


def queue_of(runtime: Runtime, timer: str) -> QueueRuntime:
    """The runtime as one with queues, or why this timer cannot use it."""
    found = queue_availability(timer, runtime)
    if not found.usable:
        raise PerfgateError("timer-unsuited", f"timer {timer!r} with runtime {runtime.name!r}: {found.why}")
    return runtime  # type: ignore[return-value]


def queue_availability(timer: str, runtime: Runtime) -> Availability:
    """Whether a timer that needs a device's queue can work with this runtime."""
    if not hasattr(runtime, "wait"):
        return Availability(name=timer, usable=False, why=f"the {runtime.name} runtime has no queue of its own")
    found = runtime.availability()
    return Availability(name=timer, usable=found.usable, why=found.why, mend=found.mend, version=found.version)


def sound(durations: Sequence[float], timer: str) -> Sequence[float]:
    """The readings, if each can be a time."""
    if durations and isfinite(sum(durations)) and not [reading for reading in durations if reading <= 0.0]:
        return durations  # in the timed loop's way: a third of what ``min`` takes
    wrong = [(at, reading) for at, reading in enumerate(durations) if not (isfinite(reading) and reading > 0)]
    if wrong:
        at, reading = wrong[0]
        raise PerfgateError(
            "timer-broken", f"{timer} read {reading:g} ns for sample {at} ({len(wrong)} of {len(durations)} like it)"
        )
    return durations
