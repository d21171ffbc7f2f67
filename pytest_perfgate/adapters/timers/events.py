"""Events of the device around each call, in a queue that is kept full."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pytest_perfgate.adapters.timers.bench import Bench, Rules, queue_availability, queue_of
from pytest_perfgate.adapters.timers.pairs import (
    SHRUNK,
    TRIALS,
    Pairs,
    allocate,
    empty_pair,
    escaped,
    idle_pairs,
    queued,
    refuse_short,
)
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.model.ports import Call, Runtime
from pytest_perfgate.model.samples import Samples

CHUNK_NS = 50e6
MOST_PAIRS = 64


class EventsTimer:
    """Start and end event tight around the call, allocated beforehand, read after one synchronisation."""

    name = "events"

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def availability(self, runtime: Runtime) -> Availability:
        return queue_availability(self.name, runtime)

    def measure(self, call: Call, plan: Plan, runtime: Runtime, setup: Call | None = None) -> Samples:
        bench = Bench(call=call, plan=plan, runtime=queue_of(runtime, self.name), rules=self._rules, setup=setup)
        calls = bench.batch()
        warmth = bench.warm()
        empty = empty_pair(bench.runtime)
        trial, _ = queued(bench, allocate(bench.runtime, TRIALS), calls)
        refuse_short(median(trial) * calls, empty, self.name, calls)
        problems = escaped(bench)
        queue = _Queue(bench, allocate(bench.runtime, chunk_of(median(trial) * calls)), calls)
        durations, stop = bench.sampled(queue.take)
        refuse_short(median(durations) * calls, empty, self.name, calls, SHRUNK)
        return Samples(
            durations=tuple(durations),
            timer=self.name,
            stop=stop,
            batch=calls,
            overhead=empty.overhead,
            resolution=empty.resolution,
            warmups=warmth.calls,
            warmup_ns=warmth.spent_ns,
            launch_gap=None if queue.dry else launch_gap(bench, durations),
            problems=problems,
            notes=(*bench.runtime.notes(), *warmth.notes, *_dry_note(queue.dry)),
        )


class _Queue:
    """Chunks of samples, counting in how many the device waited for the host."""

    def __init__(self, bench: Bench, pairs: Pairs, calls: int) -> None:
        self._bench, self._pairs, self._calls = bench, pairs, calls
        self._chunks = self._dry = 0

    @property
    def dry(self) -> bool:
        return 2 * self._dry > self._chunks

    def take(self) -> list[float]:
        durations, dry = queued(self._bench, self._pairs, self._calls)
        self._chunks, self._dry = self._chunks + 1, self._dry + dry
        return durations


def chunk_of(duration: float) -> int:
    """Pairs to keep in flight: some fifty milliseconds of them."""
    return int(max(1.0, min(MOST_PAIRS, CHUNK_NS / duration)))


def launch_gap(bench: Bench, durations: Sequence[float]) -> float:
    """What a call takes on an idle queue beyond what the device needs for it."""
    return max(0.0, median(idle_pairs(bench)) - median(durations))


def _dry_note(dry: bool) -> tuple[tuple[str, str], ...]:
    said = "ran dry: the host launches more slowly than the device works, so these times hold the host's"
    return (("queue", said),) if dry else ()
