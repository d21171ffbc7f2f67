"""Chooses a timer by the call's properties, and times short calls by many of them in one graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from statistics import median
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pytest_perfgate.adapters.timers.bench import Rules, TimedCall, queue_availability, queue_of
from pytest_perfgate.adapters.timers.event_pairs import (
    TRIALS,
    EmptyPair,
    allocate,
    calibrated,
    chunk_of,
    idle_pairs,
    queued,
)
from pytest_perfgate.adapters.timers.events import PairedSampling
from pytest_perfgate.model.device import Availability, SupportsBind, SupportsWait
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Cache, Plan
from pytest_perfgate.model.values import array_value, value

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Samples
    from pytest_perfgate.model.ports import Call, Runtime, Timer


_OUT = ("cupti-busy", "cupti-dropped", "cupti-unproved", "timer-deadlock", "timer-too-coarse")
"""Errors of a timer that gave no times, so that the next one may replace it, with a note."""

MARGIN, STAYS = 1.25, 1.05
"""Events are chosen for calls longer than the first multiple of the shortest that they can time, and kept down to the
second, so that no later refusal or choice changes the timer."""

EXACT = 0.005
"""Events are chosen before CUPTI where they are off by at most this part, half of what a timer may be off."""

TRIAL_PAIRS = 32
"""Pairs in flight, enough to show whether the host launches fast enough."""


@value
class TimerChoice:
    """The timers in order of preference, with the reason."""

    names: tuple[str, ...]
    why: str


_BATCH = "a larger input, or several calls in one sample: calls=N, or iterations=N of benchmark.pedantic"


class AutoTimer:
    """Uses the first fitting timer; the samples have its name, which is part of the identity."""

    name = "auto"

    def __init__(self, rules: Rules, timers: Sequence[Timer]) -> None:
        self._rules = rules
        self._timers = {timer.name: timer for timer in timers}

    def leave_out(self, name: str) -> None:
        """Exclude a timer that does not work, as ``ci/gpu-check`` does after its proof failed."""
        self._timers.pop(name, None)

    def availability(self, runtime: Runtime) -> Availability:
        usable = [name for name, timer in self._timers.items() if timer.availability(runtime).usable]
        return Availability(
            name=self.name,
            usable=bool(usable),
            why="" if usable else f"no timer works with the {runtime.name} runtime",
            version=", ".join(usable),
        )

    def measure(self, call: Call, plan: Plan, runtime: Runtime, setup: Call | None = None) -> Samples:
        choice = self.choice(call, plan, runtime, setup)
        passed: list[str] = []
        coarse = None
        for name in choice.names:
            availability = self._timers[name].availability(runtime) if name in self._timers else None
            if availability and availability.usable:
                try:
                    samples = self._timers[name].measure(call, plan, runtime, setup)
                except PerfgateError as error:
                    if error.code.name not in _OUT:
                        raise
                    coarse = error if error.code.name == "timer-too-coarse" else coarse
                    passed.append(f"not {name}: {error.code.title}")
                    continue
                text = "; ".join([f"{name}: {choice.why}", *passed])
                return replace(samples, notes=(("timer", text), *samples.notes))
            passed.append(f"not {name}: {availability.why if availability else 'not there'}")
        if coarse is not None:
            raise coarse
        what = f"{choice.why}; {'; '.join(passed)}"
        if "short" not in choice.why:
            raise PerfgateError("timer-unsuited", what)
        raise PerfgateError("timer-too-coarse", what, fix=_BATCH)  # neither of the timers that its code names is here

    def choice(self, call: Call, plan: Plan, runtime: Runtime, setup: Call | None = None) -> TimerChoice:
        """Return which timers fit this call, from a short trial."""
        if not isinstance(runtime, SupportsWait):
            return TimerChoice(names=("host",), why=f"the {runtime.name} runtime works on the host")
        bench = TimedCall(call=call, plan=plan, runtime=queue_of(runtime, self.name), rules=self._rules, setup=setup)
        calls = bench.batch()
        bench.once()
        empty = calibrated(bench)
        queued(bench, allocate(bench.runtime, TRIALS), calls)
        trial, dry = queued(bench, allocate(bench.runtime, TRIAL_PAIRS), calls)
        fitting = chosen(median(trial) * calls, empty, dry, plan.earlier_timer, in_turns=plan.in_turns)
        return preferring(fitting, plan.earlier_timer)


def preferring(choice: TimerChoice, earlier_timer: str) -> TimerChoice:
    """Put the earlier timer first; any but events can time what events can, and events sometimes refuse."""
    if not earlier_timer or earlier_timer == "events" or choice.names == ("host",):
        return choice
    others = tuple(name for name in choice.names if name != earlier_timer)
    return TimerChoice(names=(earlier_timer, *others), why=f"{choice.why}; taken for this call before")


def chosen(
    duration: float, empty: EmptyPair, dry: bool, earlier_timer: str = "", *, in_turns: bool = False
) -> TimerChoice:
    """Return timers for a call too short for events, for a slow host, or for the usual case."""
    times = duration / (empty.overhead + empty.resolution)
    text = f"a sample takes {duration / 1e3:.4g} µs, {times:.0f} times the overhead and resolution of an event pair"
    if duration < empty.shortest * (STAYS if earlier_timer == "events" else MARGIN):
        return TimerChoice(names=("cupti", "graph"), why=f"{text}, too short for it")
    if dry:
        # Only events time a call that synchronises itself. The warm-up of this process found out; its turns need not.
        synchronises = earlier_timer == "events" and in_turns
        others = ("events", "blocking", "graph") if synchronises else ("blocking", "graph", "events")
        why = f"{text}, but the host launches more slowly than the device works"
        return TimerChoice(names=("cupti", *others), why=why)
    off = empty.uncertain / duration
    if earlier_timer == "events" or off <= EXACT:
        return TimerChoice(names=("events", "cupti", "graph"), why=text)
    return TimerChoice(names=("cupti", "events", "graph"), why=f"{text}; events may read {off * 100:.1f} % too long")


MOST_CALLS = 1000

FIRST_CALLS = 20

LEAST_NS = 200_000.0


@array_value
class Recording:
    """A captured graph and its number of calls."""

    replay: Call
    calls: int
    buffers: int


class GraphTimer:
    """The time of a graph of N calls, divided by N, without launches of the host in between."""

    name = "graph"

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._captured: WeakSet[Any] = WeakSet()
        """Runtimes that have captured a graph: torch empties its allocator's cache each time, so once is enough."""

    def availability(self, runtime: Runtime) -> Availability:
        availability = queue_availability(self.name, runtime)
        if not availability.usable or runtime in self._captured:
            return availability
        try:
            runtime.capture(_no_action)
        except PerfgateError as error:
            return Availability(name=self.name, usable=False, why=error.what, fix=error.fix)
        self._captured.add(runtime)
        return availability

    def measure(self, call: Call, plan: Plan, runtime: Runtime, setup: Call | None = None) -> Samples:
        bench = TimedCall(call=call, plan=plan, runtime=queue_of(runtime, self.name), rules=self._rules, setup=setup)
        turns = rotation(bench)
        pairs = PairedSampling(bench, self.name)
        idle = None if plan.in_turns else median(idle_pairs(bench))
        recording = recorded(bench, turns, pairs.empty)
        calls, replays = recording.calls, _replays(bench, recording.replay)
        replays.once()
        trial, _ = queued(replays, allocate(bench.runtime, TRIALS))
        pairs.accept([total / calls for total in trial], calls, replays)
        events = allocate(bench.runtime, chunk_of(median(trial)))
        durations = pairs.sampled(lambda: [total / calls for total in queued(replays, events)[0]])
        gap = None if idle is None else max(0.0, idle - median(durations))
        near = "its calls follow each other at once: 1 to 7 % off the device's own records on an H100"
        graph = f"{calls} calls over {recording.buffers} buffers"
        return pairs.samples(gap, more=(("graph", graph), ("agreement", near)))


def recorded(bench: TimedCall, turns: Sequence[Call], empty: EmptyPair) -> Recording:
    """Record as many calls as a pair of events can time, and at least as many as there are buffers."""
    calls = max(bench.plan.calls, len(turns), FIRST_CALLS)
    one, many = _time(bench, turns, 1), _time(bench, turns, calls)
    if many - one < empty.resolution:
        raise PerfgateError(
            "timer-broken",
            f"a graph of {calls} calls took {many:.0f} ns and one of a single call {one:.0f} ns: "
            "the work was not captured",
            fix="let the call launch on the current stream",
        )
    per_call = (many - one) / (calls - 1)
    calls = max(bench.plan.calls, len(turns), min(ceil(max(empty.shortest, LEAST_NS) / per_call), MOST_CALLS))
    return Recording(replay=_capture_graph(bench, turns, calls), calls=calls, buffers=len(turns))


def _time(bench: TimedCall, turns: Sequence[Call], calls: int) -> float:
    """Return the time of a graph of so many calls."""
    replays = _replays(bench, _capture_graph(bench, turns, calls))
    replays.once()
    return median(queued(replays, allocate(bench.runtime, TRIALS))[0])


def _capture_graph(bench: TimedCall, turns: Sequence[Call], calls: int) -> Call:
    return bench.runtime.capture(_in_turn([turns[at % len(turns)] for at in range(calls)]))


def rotation(bench: TimedCall) -> list[Call]:
    """Return the call bound to each of its buffers: one when warm, more than twice the cache when cold."""
    if bench.plan.cache is not Cache.COLD:
        bench.ready()
        return [bench.call]
    call: object = bench.call
    if bench.setup is None or not isinstance(call, SupportsBind):
        raise PerfgateError("cache-cold-batch", 'timer="graph" with a cold cache and no setup=')
    first = bench.setup()
    count = _buffers(bytes_of(first), bench.runtime.device().cache_bytes)
    return [call.bind(arguments) for arguments in (first, *(bench.setup() for _ in range(count - 1)))]


def _buffers(size: int, cache: float | None) -> int:
    """Return how many sets of inputs exceed twice the last cache."""
    if not size or not cache:
        missing = "the size of what setup= returns" if not size else "the size of the last cache"
        raise PerfgateError("cache-cold-batch", f"{missing} is not known")
    count = ceil(2 * cache / size) + 1
    if count > MOST_CALLS:
        raise PerfgateError("cache-cold-batch", f"{count} buffers of {size} bytes would be needed")
    return count


def bytes_of(thing: Any) -> int:
    """Return the bytes of the arrays in a set-up's result."""
    if isinstance(thing, Mapping):
        return sum(bytes_of(part) for part in thing.values())
    if isinstance(thing, (list, tuple)):
        return sum(bytes_of(part) for part in thing)
    return int(getattr(thing, "nbytes", 0))


def _in_turn(calls: Sequence[Call]) -> Call:
    def run() -> None:
        for call in calls:
            call()

    return run


def _replays(bench: TimedCall, replay: Call) -> TimedCall:
    """Return a bench for replays, which are not flushed and need no inputs: rotating buffers keep them cold."""
    return replace(bench, call=replay, setup=None, plan=replace(bench.plan, cache=Cache.WARM, calls=0))


def _no_action() -> None:
    """Do nothing: a call without work."""
