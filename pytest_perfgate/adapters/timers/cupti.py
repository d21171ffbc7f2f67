"""CUPTI's kernel records: what the device did for each call, independent of the host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol

from pytest_perfgate.adapters.bindings.cupti import BUFFER
from pytest_perfgate.adapters.timers.bench import (
    Rules,
    TimedCall,
    Undisturbed,
    WarmUpResult,
    checked_readings,
    queue_availability,
    queue_of,
)
from pytest_perfgate.adapters.timers.event_pairs import check_plausible
from pytest_perfgate.adapters.timers.events import launch_gap
from pytest_perfgate.model.device import Availability, SupportsCuda
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Discard, Samples
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Plan
    from pytest_perfgate.model.ports import Call, Runtime

SIZES = (BUFFER, 4 * BUFFER, 16 * BUFFER)

CHUNK = 32


class Recorder(Protocol):
    """The part of the CUPTI binding that a timer needs."""

    def availability(self) -> Availability: ...

    def opened(self, size: int) -> AbstractContextManager[Any]: ...

    def push(self, call: int) -> None: ...

    def pop(self) -> None: ...

    def drain(self) -> Iterable[Any]: ...

    def dropped(self) -> int: ...

    def counts_drops(self, call: Callable[[], object]) -> bool: ...


@value
class CallActivity:
    """The work of the device for one call."""

    busy: float
    span: float
    kernels: int
    streams: int
    alone: float
    """The sum of the kernels' own times: more than busy if streams overlap."""


class RecordsLost(Exception):
    """Records were lost, so that these samples are not a measurement."""

    def __init__(self, what: str, samples: int) -> None:
        self.what, self.samples = what, samples
        super().__init__(what)


class CuptiTimer:
    """The time from the first start to the last end of a call's kernels, found by an id pushed around it."""

    name = "cupti"

    def __init__(self, rules: Rules, recorder: Recorder, unproved: Callable[[], str] | None = None) -> None:
        self._rules = rules
        self._recorder = recorder
        self._elsewhere = unproved
        """Tests the counter of lost records in another process, because the test may crash."""

    def availability(self, runtime: Runtime) -> Availability:
        availability = queue_availability(self.name, runtime)
        if availability.usable and not (isinstance(runtime, SupportsCuda) and runtime.cuda):
            return Availability(name=self.name, usable=False, why=f"{runtime.name} does not run on CUDA")
        return self._recorder.availability() if availability.usable else availability

    def measure(self, call: Call, plan: Plan, runtime: Runtime, setup: Call | None = None) -> Samples:
        bench = TimedCall(call=call, plan=plan, runtime=queue_of(runtime, self.name), rules=self._rules, setup=setup)
        availability = self.availability(runtime)
        if not availability.usable:
            raise PerfgateError("timer-unsuited", f"timer 'cupti' with runtime {runtime.name!r}: {availability.why}")
        warmth = bench.warm()
        discarded: list[Discard] = []
        for size in SIZES:
            try:
                return self._measured(bench, size, warmth, discarded)
            except RecordsLost as lost:  # noqa: PERF203 - at most three turns
                discarded.append(Discard(reason=f"{lost.what} ({size // 1024} KiB buffers)", count=lost.samples))
        raise PerfgateError("cupti-dropped", "; ".join(d.reason for d in discarded))

    def _measured(self, bench: TimedCall, size: int, warmth: WarmUpResult, discarded: Sequence[Discard]) -> Samples:
        activities: list[CallActivity] = []

        def take() -> list[float]:
            chunk = self._chunk(bench, len(activities))
            activities.extend(chunk)
            return [activity.span for activity in chunk]

        with self._recorder.opened(size):
            if why := self._proof_failure(bench):
                raise PerfgateError("cupti-unproved", why)
            (alone,) = self._chunk(bench, 0, 1)
            durations, stop = bench.sampled(take)
            _same_kernels((alone, *activities))
        return Samples(
            durations=tuple(checked_readings(durations, self.name)),
            timer=self.name,
            stop=stop,
            resolution=1.0,
            warmups=warmth.calls,
            warmup_ns=warmth.spent_ns,
            launch_gap=launch_gap(bench, [activity.busy for activity in activities]),
            discarded=tuple(discarded),
            busy=tuple(activity.busy for activity in activities),
            notes=(*bench.runtime.notes(), *warmth.notes, *_notes(activities)),
        )

    def _proof_failure(self, bench: TimedCall) -> str:
        if self._elsewhere is not None:
            return self._elsewhere()
        counts = self._recorder.counts_drops(bench.once)
        return "" if counts else "a record without room was lost, and it was not counted"

    def _chunk(self, bench: TimedCall, first: int, count: int = CHUNK) -> list[CallActivity]:
        """Return the activities of some calls; a single call fits any buffer and shows how many records it leaves."""
        recorder = self._recorder
        ids = range(first + 1, first + 1 + count)
        begun = bench.clock()
        with Undisturbed():
            for call in ids:
                bench.ready()
                recorder.push(call)
                try:
                    bench.call()
                finally:
                    recorder.pop()
        bench.runtime.synchronize()
        passed = bench.clock() - begun
        records = list(recorder.drain())
        lost = recorder.dropped()
        if lost:
            raise RecordsLost(f"{lost} records dropped", first + count)
        activities = [_activity([r for r in records if r.call == call], call) for call in ids]
        of_calls = [r for r in records if r.call in ids]
        if count > 1:  # a lone call is the first after CUPTI started, shows its records, and is no sample
            check_plausible(max(r.end for r in of_calls) - min(r.start for r in of_calls), passed, count, self.name)
        return activities


def _activity(records: Sequence[Any], call: int) -> CallActivity:
    """Return a call's activity: busy is the union of the intervals, span from the first start to the last end."""
    if not records:
        raise PerfgateError("timer-broken", f"call {call} left no kernel record: it launched nothing that CUPTI saw")
    wrong = next((record for record in records if not 0 < record.start < record.end), None)
    if wrong:
        what = f"a kernel of call {call} is stamped from {wrong.start} to {wrong.end} ns: CUPTI has no time for it"
        raise PerfgateError("timer-broken", what)
    busy, reach = 0, 0
    for record in sorted(records, key=lambda r: int(r.start)):
        busy += max(0, record.end - max(record.start, reach))
        reach = max(reach, record.end)
    return CallActivity(
        busy=float(busy),
        span=float(reach - min(r.start for r in records)),
        kernels=len(records),
        streams=len({(r.device, r.stream) for r in records}),
        alone=float(sum(r.end - r.start for r in records)),
    )


def _same_kernels(activities: Sequence[CallActivity]) -> None:
    """Refuse calls that differ in their number of kernels, since lost records would look the same."""
    counts = {activity.kernels for activity in activities}
    if len(counts) > 1:
        raise RecordsLost(f"calls left between {min(counts)} and {max(counts)} records", len(activities))


def _notes(activities: Sequence[CallActivity]) -> tuple[tuple[str, str], ...]:
    busy, alone = median(a.busy for a in activities), median(a.alone for a in activities)
    first = activities[0]
    return (
        ("kernels", f"{first.kernels} a call on {first.streams} streams"),
        ("busy and span", f"{busy:.0f} ns, {median(a.span for a in activities):.0f} ns"),
        ("overlap of streams", f"{1 - busy / alone:.3f}"),
        ("dropped records", "none; counter proved; every call left as many records as one alone"),
    )
