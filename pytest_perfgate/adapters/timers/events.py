"""Timing by events around each call in a full queue."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING

from pytest_perfgate.adapters.timers.bench import Rules, TimedCall, checked_readings, queue_availability, queue_of
from pytest_perfgate.adapters.timers.event_pairs import (
    SHRUNK,
    TRIALS,
    EventPairs,
    OtherQueues,
    agreement_note,
    allocate,
    calibrated,
    check_plausible,
    chunk_of,
    find_other_work,
    idle_pairs,
    net,
    offset_note,
    queued,
    read,
    record_calls,
    refuse_short,
)
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Samples

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Plan
    from pytest_perfgate.model.ports import Call, Runtime

    Notes = tuple[tuple[str, str], ...]


class EventsTimer:
    """Start and end event directly around the call, created in advance, read after one synchronisation."""

    name = "events"

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def availability(self, runtime: Runtime) -> Availability:
        return queue_availability(self.name, runtime)

    def measure(self, call: Call, plan: Plan, runtime: Runtime, setup: Call | None = None) -> Samples:
        bench = TimedCall(call=call, plan=plan, runtime=queue_of(runtime, self.name), rules=self._rules, setup=setup)
        calls = bench.batch()
        pairs = PairedSampling(bench, self.name)
        trial, _ = queued(bench, allocate(bench.runtime, TRIALS), calls)
        pairs.accept(trial, calls)
        queue = _Queue(bench, allocate(bench.runtime, chunk_of(median(trial) * calls)), calls)
        durations = pairs.sampled(queue.take)
        gap = None if queue.dry else launch_gap(bench, durations)
        return pairs.samples(gap, agreement_note(median(durations), pairs.empty), _dry_note(queue.dry))


class PairedSampling:
    """Samples by events before and after a call; too short ones are refused, and the events' own time is subtracted."""

    def __init__(self, bench: TimedCall, timer: str) -> None:
        self._bench, self._timer = bench, timer
        self.empty = calibrated(bench)
        self._warmth = bench.warm()
        self._outside = OtherQueues()

    def accept(self, trial: Sequence[float], calls: int, watched: TimedCall | None = None) -> None:
        """Refuse a call that a trial shows to be too short, and look for its work on other queues, except in turns."""
        self._calls = calls
        refuse_short(median(trial) * calls, self.empty, self._timer, calls)
        if not self._bench.plan.in_turns:
            self._outside = find_other_work(watched or self._bench)

    def sampled(self, take: Callable[[], list[float]]) -> list[float]:
        """Return samples as they were read; refuse them if they became too short after the trial."""
        self._durations, self._stop = self._bench.sampled(take)
        refuse_short(median(self._durations) * self._calls, self.empty, self._timer, self._calls, SHRUNK)
        return self._durations

    def samples(self, launch_gap: float | None, agreement: Notes = (), more: Notes = ()) -> Samples:
        return Samples(
            durations=net(self._durations, self.empty, self._calls),
            timer=self._timer,
            stop=self._stop,
            batch=self._calls,
            overhead=self.empty.overhead,
            resolution=self.empty.resolution,
            warmups=self._warmth.calls,
            warmup_ns=self._warmth.spent_ns,
            launch_gap=launch_gap,
            problems=self._outside.problems,
            notes=(
                *self._bench.runtime.notes(),
                *self._warmth.notes,
                *offset_note(self.empty),
                *agreement,
                *self._outside.notes,
                *more,
            ),
        )


class _Queue:
    """Chunks of samples, with a count of those in which the device waited for the host."""

    def __init__(self, bench: TimedCall, pairs: EventPairs, calls: int) -> None:
        self._bench, self._pairs, self._calls = bench, pairs, calls
        self._chunks = self._dry = 0

    @property
    def dry(self) -> bool:
        return 2 * self._dry > self._chunks

    def take(self) -> list[float]:
        durations, dry = queued(self._bench, self._pairs, self._calls)
        self._chunks, self._dry = self._chunks + 1, self._dry + dry
        return durations


def launch_gap(bench: TimedCall, durations: Sequence[float]) -> float | None:
    """Return how much longer a call takes on an idle queue than the device needs; turns have it of their warm-up."""
    return None if bench.plan.in_turns else max(0.0, median(idle_pairs(bench)) - median(durations))


def _dry_note(dry: bool) -> tuple[tuple[str, str], ...]:
    text = "ran dry: the host launches more slowly than the device works, so these times hold the host's"
    return (("queue", text),) if dry else ()


PATIENCE_S = 2.0

HELD_S = 0.005
"""How long a queue is held to check that holding works."""

PROOFS = 3
"""The number of checks, since a device that is busy with other work can look as if the queue was not held."""


class BlockingTimer:
    """Flush, synchronise, block, start event, call, end event, unblock, synchronise, with a timeout."""

    name = "blocking"

    def __init__(self, rules: Rules, patience_s: float = PATIENCE_S) -> None:
        self._rules = rules
        self._patience = patience_s

    def availability(self, runtime: Runtime) -> Availability:
        availability = queue_availability(self.name, runtime)
        if not availability.usable:
            return availability
        try:
            queue_of(runtime, self.name).block()()
        except PerfgateError as error:
            return Availability(name=self.name, usable=False, why=error.what, fix=error.fix)
        return availability

    def measure(self, call: Call, plan: Plan, runtime: Runtime, setup: Call | None = None) -> Samples:
        bench = TimedCall(call=call, plan=plan, runtime=queue_of(runtime, self.name), rules=self._rules, setup=setup)
        calls = bench.batch()
        pairs = PairedSampling(bench, self.name)
        pair = allocate(bench.runtime, 1)
        if not plan.in_turns:
            self._check_queue(bench, pair)
        pairs.accept([self.blocked(bench, pair, calls) for _ in range(TRIALS)], calls)
        durations = pairs.sampled(lambda: [self.blocked(bench, pair, calls)])
        return pairs.samples(launch_gap(bench, durations), agreement_note(median(durations), pairs.empty))

    def _check_queue(self, bench: TimedCall, pair: EventPairs) -> None:
        """Check that events before and after a wait of the host are close together in a held queue."""
        ((start, end),) = pair
        for _ in range(PROOFS):
            bench.runtime.synchronize()
            watch = _Watch(bench.runtime.block(), self._patience)
            try:
                start.record()
                time.sleep(HELD_S)
                end.record()
            finally:
                watch.release()
            bench.runtime.synchronize()
            (gap,) = read(pair)
            if gap < HELD_S * 1e9 / 2:
                return
        what = f"a queue that was to be held back worked meanwhile: events {gap / 1e6:.3g} ms apart behind the block"
        raise PerfgateError("timer-broken", what, fix='timer="events", or "graph"')

    def blocked(self, bench: TimedCall, pair: EventPairs, calls: int = 1) -> float:
        """Return one sample from a blocked queue, in nanoseconds per call."""
        bench.ready()
        bench.runtime.synchronize()
        begun = bench.clock()
        watch = _Watch(bench.runtime.block(), self._patience)
        try:
            record_calls(*pair[0], bench.call, calls)
        finally:
            watch.release()
        bench.runtime.synchronize()
        if watch.expired:
            raise PerfgateError("timer-deadlock", f"the call did not return within {self._patience:g} s")
        passed = bench.clock() - begun
        (duration,) = checked_readings(read(pair), self.name)
        check_plausible(duration, passed, 1, self.name)
        return duration / calls


class _Watch:
    """Unblocks the queue if the call does not return in time."""

    def __init__(self, unblock: Callable[[], None], patience_s: float) -> None:
        self.expired = False
        self._unblock = unblock
        self._timer = threading.Timer(patience_s, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def release(self) -> None:
        self._timer.cancel()
        if not self.expired:
            self._unblock()

    def _expire(self) -> None:
        self.expired = True
        self._unblock()
