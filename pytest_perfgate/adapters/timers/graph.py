"""A graph of many calls over rotated buffers, replayed as one launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from statistics import median
from typing import TYPE_CHECKING, Any

from pytest_perfgate.adapters.timers.bench import Bench, Rules, queue_availability, queue_of
from pytest_perfgate.adapters.timers.event_pairs import (
    SHRUNK,
    TRIALS,
    Empty,
    allocate,
    calibrated,
    escaped,
    idle_pairs,
    net,
    offset_note,
    queued,
    refuse_short,
)
from pytest_perfgate.adapters.timers.events import chunk_of
from pytest_perfgate.model.capabilities import SupportsBind
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Samples
from pytest_perfgate.model.plan import Cache, Plan
from pytest_perfgate.model.values import array_value

if TYPE_CHECKING:
    from pytest_perfgate.model.ports import Call, Runtime

MOST_CALLS = 1000

FIRST_CALLS = 20

LEAST_NS = 200_000.0


@array_value
class Recording:
    """A captured graph and what is in it."""

    replay: Call
    calls: int
    buffers: int


class GraphTimer:
    """The time of a graph of N calls, divided by N: no launch of the host lies between them."""

    name = "graph"

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def availability(self, runtime: Runtime) -> Availability:
        availability = queue_availability(self.name, runtime)
        if not availability.usable:
            return availability
        try:
            runtime.capture(_nothing)
        except PerfgateError as error:
            return Availability(name=self.name, usable=False, why=error.what, mend=error.mend)
        return availability

    def measure(self, call: Call, plan: Plan, runtime: Runtime, setup: Call | None = None) -> Samples:
        bench = Bench(call=call, plan=plan, runtime=queue_of(runtime, self.name), rules=self._rules, setup=setup)
        turns = rotation(bench)
        empty = calibrated(bench)
        warmth = bench.warm()
        idle = median(idle_pairs(bench))
        recording = recorded(bench, turns, empty)
        replays = _replays(bench, recording.replay)
        replays.once()
        trial, _ = queued(replays, allocate(bench.runtime, TRIALS))
        refuse_short(median(trial), empty, self.name, recording.calls)
        outside = escaped(replays)
        pairs = allocate(bench.runtime, chunk_of(median(trial)))
        durations, stop = bench.sampled(lambda: [total / recording.calls for total in queued(replays, pairs)[0]])
        refuse_short(median(durations) * recording.calls, empty, self.name, recording.calls, SHRUNK)
        return Samples(
            durations=net(durations, empty, recording.calls),
            timer=self.name,
            stop=stop,
            batch=recording.calls,
            overhead=empty.overhead,
            resolution=empty.resolution,
            warmups=warmth.calls,
            warmup_ns=warmth.spent_ns,
            launch_gap=max(0.0, idle - median(durations)),
            problems=outside.problems,
            notes=(
                *bench.runtime.notes(),
                *warmth.notes,
                *offset_note(empty),
                *outside.notes,
                ("graph", f"{recording.calls} calls over {recording.buffers} buffers"),
                ("agreement", "its calls follow each other at once: 1 to 7 % off the device's own records on an H100"),
            ),
        )


def recorded(bench: Bench, turns: Sequence[Call], empty: Empty) -> Recording:
    """As many calls as the pair needs to see them, and at least as many as there are buffers."""
    calls = max(bench.plan.calls, len(turns), FIRST_CALLS)
    one, many = _time(bench, turns, 1), _time(bench, turns, calls)
    if many - one < empty.resolution:
        raise PerfgateError(
            "timer-broken",
            f"a graph of {calls} calls took {many:.0f} ns and one of a single call {one:.0f} ns: "
            "the work was not captured",
            mend="let the call launch on the current stream",
        )
    per_call = (many - one) / (calls - 1)
    calls = max(bench.plan.calls, len(turns), min(ceil(max(empty.shortest, LEAST_NS) / per_call), MOST_CALLS))
    return Recording(replay=_captured(bench, turns, calls), calls=calls, buffers=len(turns))


def _time(bench: Bench, turns: Sequence[Call], calls: int) -> float:
    """What a graph of so many calls takes."""
    replays = _replays(bench, _captured(bench, turns, calls))
    replays.once()
    return median(queued(replays, allocate(bench.runtime, TRIALS))[0])


def _captured(bench: Bench, turns: Sequence[Call], calls: int) -> Call:
    return bench.runtime.capture(_in_turn([turns[at % len(turns)] for at in range(calls)]))


def rotation(bench: Bench) -> list[Call]:
    """The call bound to each of its buffers: one while warm, more than the cache holds twice while cold."""
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
    """How many sets of inputs exceed the last cache twice."""
    if not size or not cache:
        missing = "the size of what setup= returns" if not size else "the size of the last cache"
        raise PerfgateError("cache-cold-batch", f"{missing} is not known")
    count = ceil(2 * cache / size) + 1
    if count > MOST_CALLS:
        raise PerfgateError("cache-cold-batch", f"{count} buffers of {size} bytes would be needed")
    return count


def bytes_of(thing: Any) -> int:
    """Bytes of the arrays in what a set-up returned."""
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


def _replays(bench: Bench, replay: Call) -> Bench:
    """A replay is never flushed and needs no inputs: rotation keeps it cold."""
    return replace(bench, call=replay, setup=None, plan=replace(bench.plan, cache=Cache.WARM, calls=0))


def _nothing() -> None:
    """A call without work."""
