"""Pairs of events: the cost of an empty one, the time of a call between two, and the offset that is subtracted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from math import isfinite, sqrt
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from pytest_perfgate.adapters.timers.bench import TimedCall, Undisturbed, checked_readings
from pytest_perfgate.model.device import SupportsLook, SupportsRelease, SupportsSpin
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Problem
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.model.ports import Call, Event, QueueRuntime

    Pair = tuple[Event, Event]

Record = Callable[[], None]

Look = tuple[Callable[[Any], float], Any]

RESOLUTION_NS = 500.0
"""The resolution of devices' event times; smaller reported ones are not trusted."""

PLAY = 1.05
"""A device's clock may run five percent faster than the host's."""

SEEN_NS, SLOW = 300_000.0, 0.6
"""For waits of at least the first, events must read this part of the wait, or the device's clock is slow."""

SHRUNK = 2.0
"""Samples may be shorter by this factor than the tried call must be, so that chance refuses none."""

_CHUNK_NS, _MOST_PAIRS = 50e6, 64

TIMES = 20
"""A pair can time a call of twenty times its own overhead and resolution."""

EMPTY_PAIRS = 32

TRIALS = 5

MOST_CALLS, ROW_NS = 16, 5e6
"""Calls in a row, and their longest time, that are checked for work on other queues."""


@value
class HostView:
    """Calls as the host sees them from outside of their queue."""

    lasted: float
    """Their time by events."""
    remaining: float
    """How long the device worked after their last event."""
    least: float
    """The same in the second shortest trial: a delayed host lengthens it, and the shortest may be cut off."""
    rate: float
    """The time by events as a part of the host's wait."""


class OtherQueues(NamedTuple):
    """What was observed of work on other queues."""

    problems: tuple[Problem, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()


@value
class EmptyPair:
    """What a pair of events reads in addition to the work between them."""

    overhead: float
    """The overhead of a pair with nothing between, or of a full pair if that is known."""
    resolution: float = RESOLUTION_NS
    taken_off: float = 0.0
    """The part that is subtracted from each pair: the offset of a full pair if it is known, else nothing."""

    @property
    def uncertain(self) -> float:
        """Return by how much a time may still be too long."""
        return max(GAP_NS, self.resolution) if self.taken_off else self.overhead

    @property
    def shortest(self) -> float:
        """Return the shortest call that such a pair can time."""
        return TIMES * (self.overhead + self.resolution)


class EventPairs(list["Pair"]):
    """Pairs of events with their methods looked up once."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        super().__init__(pairs)
        self.records = [(start.record, end.record) for start, end in self]
        self.milliseconds = any(isinstance(end, SupportsLook) for _, end in self[:1])
        """Whether readings are milliseconds, else nanoseconds; all events are of one runtime."""
        self.looks = [reading_call(start, end) for start, end in self]


def reading_call(start: Event, end: Event) -> Look:
    """Return the function that reads a pair and its argument, the library's own method if it offers one."""
    return end.look(start) if isinstance(end, SupportsLook) else (end.since, start)


def chunk_of(duration: float) -> int:
    """Return how many pairs to keep in flight: some fifty milliseconds of them."""
    return int(max(1.0, min(_MOST_PAIRS, _CHUNK_NS / duration)))


def allocate(runtime: QueueRuntime, count: int) -> EventPairs:
    """Create pairs in advance, because creating an event during timing would be timed."""
    return EventPairs((runtime.event(), runtime.event()) for _ in range(count))


def read(pairs: EventPairs) -> list[float]:
    """Return the readings of pairs in nanoseconds; an event that the device never recorded raises."""
    try:
        if pairs.milliseconds:
            return [1e6 * look(other) for look, other in pairs.looks]
        return [look(other) for look, other in pairs.looks]
    except PerfgateError:
        raise
    except Exception as error:
        what = f"an event could not be read: {type(error).__name__}: {error}"
        raise PerfgateError("timer-broken", what) from error


def empty_pair(runtime: QueueRuntime) -> EmptyPair:
    """Return the overhead of a pair, measured on this machine now."""
    pairs = allocate(runtime, EMPTY_PAIRS)
    runtime.synchronize()
    for start, end in pairs:
        start.record()
        end.record()
    runtime.synchronize()
    readings = read(pairs)
    if not all(isfinite(r) and r >= 0 for r in readings):
        raise PerfgateError("timer-broken", f"an empty pair of events read {min(readings):g} ns")
    return EmptyPair(overhead=median(readings))


def check_plausible(lasted: float, passed: float, count: int, timer: str) -> None:
    """Raise if a device reports more work than the host waited for: one of their clocks is wrong.

    Wrapped times and those of other events show in the same way. Calls in one queue do not overlap, and all of them are
    between two readings of the host's clock.
    """
    if lasted > PLAY * passed + 2 * count * RESOLUTION_NS:
        what = f"{timer} read {lasted:.4g} ns in all for {count} samples that the host waited {passed:.4g} ns for"
        raise PerfgateError("timer-broken", what)


def refuse_short(duration: float, empty: EmptyPair, timer: str, calls: int, play: float = 1.0) -> None:
    """Raise if the pair would mostly measure itself."""
    if play * duration < empty.shortest:
        what = "a call takes" if calls == 1 else f"a batch of {calls} calls takes"
        raise PerfgateError(
            "timer-too-coarse",
            f"{what} {duration:.0f} ns; {timer} here can time {empty.shortest:.0f} ns and longer "
            f"(an empty pair reads {empty.overhead:.0f} ns, resolution {empty.resolution:.0f} ns)",
        )


def idle_pairs(bench: TimedCall) -> list[float]:
    """Return calls on an idle queue, one by one, so that the device waits for the host as in a plain program."""
    pairs = allocate(bench.runtime, TRIALS)
    begun = bench.clock()
    for start, end in pairs:
        bench.ready()
        bench.runtime.synchronize()
        record_calls(start, end, bench.call)
        bench.runtime.synchronize()
    passed = bench.clock() - begun
    durations = list(checked_readings(read(pairs), "events"))
    check_plausible(sum(durations), passed, TRIALS, "events")
    return durations


def queued(bench: TimedCall, pairs: EventPairs, calls: int = 1) -> tuple[list[float], bool]:
    """Return samples before one synchronisation, and whether the queue ran empty meanwhile."""
    loop = _tight_loop if calls == 1 and not bench.prepares else _prepared
    clock, synchronize = bench.clock, bench.runtime.synchronize
    synchronize()
    with Undisturbed():
        begun = clock()
        loop(bench, pairs.records, calls)
        enqueued = clock()
    synchronize()
    ended = clock()
    durations = read(pairs)
    checked_readings(durations, "events")
    check_plausible(sum(durations), ended - begun, len(durations), "events")
    if calls > 1:
        durations = [duration / calls for duration in durations]
    return durations, ended - enqueued < 0.1 * (ended - begun)


def _tight_loop(bench: TimedCall, records: list[tuple[Record, Record]], calls: int) -> None:
    """Record calls in the tightest loop: its cost on the host limits how short calls may be to keep the queue full."""
    del calls
    call = bench.call
    for start, end in records:
        start()
        call()
        end()


def _prepared(bench: TimedCall, records: list[tuple[Record, Record]], calls: int) -> None:
    """Record calls with fresh inputs, a cold cache, or several calls between two events."""
    call, turns = bench.call, range(calls)
    for start, end in records:
        bench.ready()
        start()
        for _ in turns:
            call()
        end()


def record_calls(start: Event, end: Event, call: Call, calls: int = 1) -> None:
    """Record only the calls between the two events."""
    if calls == 1:
        start.record()
        call()
        end.record()
        return
    turns = repeat(None, calls)
    start.record()
    for _ in turns:
        call()
    end.record()


def find_other_work(bench: TimedCall) -> OtherQueues:
    """Return whether work remains on another queue after the last event of a call.

    For a short call it would be lost in the noise of waiting, but over many calls in a row it adds up. A delayed host
    looks the same once, so a finding must recur, also in a longer row.
    """
    gaps = _work_after(bench, 1)
    many = int(min(MOST_CALLS, ROW_NS / gaps.lasted)) if gaps.lasted > 0 and not bench.prepares else 1
    asides = {1: gaps} | ({many: _work_after(bench, many)} if many > 1 else {})
    _keeps_time(bench, [aside.rate for aside in asides.values()])
    calls = next((calls for calls, aside in asides.items() if aside.remaining > _allowed(aside)), 0)
    if not calls:
        return OtherQueues()
    again = [_work_after(bench, calls), _work_after(bench, calls if bench.prepares else 2 * calls)]
    own, after = f"{asides[calls].lasted:.0f} ns", f"{asides[calls].remaining:.0f} ns"
    if any(aside.least <= _allowed(aside) for aside in again):
        note = f"the device seemed at work for {after} after {own} of its own, and did not in other trials: no finding"
        return OtherQueues(notes=(("other streams", note),))
    repeated = (("again", f"{aside.least:.0f} ns or more after {aside.lasted:.0f} ns") for aside in again)
    evidence = (("on this stream", own), ("still running after it", after), *repeated)
    what = "work ran on another stream, which the events around the call do not time"
    return OtherQueues(problems=(Problem(code="work-escaped", what=what, evidence=evidence, retry=False),))


def _allowed(aside: HostView) -> float:
    return max(0.05 * aside.lasted, 20_000.0)


def _keeps_time(bench: TimedCall, rates: Sequence[float]) -> None:
    """Raise if events around work that the host only waited for never read most of that wait."""
    if max(rates) < SLOW and bench.runtime.device().kind == "gpu":
        what = f"events read at most {max(rates):.2g} of the time that the host waited for the work between them"
        raise PerfgateError("timer-broken", what)


def _work_after(bench: TimedCall, calls: int) -> HostView:
    """Return the time of so many calls, and how long the device works after their last event."""
    runtime, clock = bench.runtime, bench.clock
    idle, waits_after, lasted, waits = [], [], [], []
    for start, end in allocate(runtime, TRIALS):
        bench.ready()
        runtime.synchronize()
        begun = clock()
        runtime.synchronize()
        enclosing = clock()
        idle.append(enclosing - begun)
        record_calls(start, end, bench.call, calls)
        enqueued = clock()
        runtime.wait(end)
        passed = clock()
        runtime.synchronize()
        ended = clock()
        waits_after.append(ended - passed)
        lasted += read(EventPairs([(start, end)]))
        check_plausible(lasted[-1], ended - begun, 1, "events")
        waits.append((passed - enclosing, enqueued - enclosing, lasted[-1]))
    usual = median(idle)
    return HostView(
        lasted=median(lasted),
        remaining=median(waits_after) - usual,
        least=sorted(waits_after)[1] - usual,
        rate=_rate(*min(waits)),
    )


def _rate(waited: float, enqueuing: float, lasted: float) -> float:
    """Return events' part of the shortest wait, which a busy host lengthened least; 1 if that is meaningless."""
    return lasted / waited if waited >= SEEN_NS and enqueuing < 0.1 * waited else 1.0


COUNTS = (1, 2, 4, 8)
"""The numbers of kernels in one pair."""

ROUNDS = 8
"""The number of pairs of each length, in turns."""

MOST_NS = 20_000.0
"""The largest plausible offset of a pair; a larger one means that the device did other work."""

DOUBTFUL = 0.01
"""The largest scatter of the fitted line, as a part of one kernel, for a usable offset."""

_offsets: WeakKeyDictionary[QueueRuntime, dict[str, EmptyPair]] = WeakKeyDictionary()


def calibrated(bench: TimedCall) -> EmptyPair:
    """Return the pair's offset on this device, fitted once a process, or else the reading of an empty pair."""
    runtime = bench.runtime
    device = runtime.device()
    offsets = _offsets.setdefault(runtime, {})
    name = device.uuid or device.key
    if name not in offsets:
        offsets[name] = _measure_offset(bench) if device.kind == "gpu" else empty_pair(runtime)
    return offsets[name]


def net(durations: Sequence[float], empty: EmptyPair, calls: int = 1) -> tuple[float, ...]:
    """Return times per call, without their part of the offset."""
    return tuple(duration - empty.taken_off / calls for duration in durations)


def offset_note(empty: EmptyPair) -> tuple[tuple[str, str], ...]:
    """Return a note on the offset that is subtracted from each pair."""
    if not empty.taken_off:
        return (("offset", f"none taken off; an empty pair reads {empty.overhead:.0f} ns"),)
    note = f"{empty.taken_off:.0f} ns taken off each pair, known to {empty.resolution:.0f} ns"
    return (("offset", f"{note}: the times of 1, 2, 4 and 8 equal kernels in a pair lie on a line"),)


GAP_NS = 1_400.0
"""The gap before a kernel on an H100, 1.2 to 1.4 us, which events read as work."""

LONG_NS, CLOSE, CLOSE_SHORT = 20_000.0, 0.01, 0.03
"""A timer agrees with the device's records within 1 % from 20 us on, and within 3 % below, or notes it."""


def agreement_note(took: float, empty: EmptyPair) -> tuple[tuple[str, str], ...]:
    """Return a note if a call's time may be too long by more than that."""
    part = empty.uncertain / took
    if part <= (CLOSE if took >= LONG_NS else CLOSE_SHORT):
        return ()
    return (("agreement", f"up to {part * 100:.1f} % longer than device records: {_UNKNOWN[bool(empty.taken_off)]}"),)


_UNKNOWN = {True: "a pause between two kernels counts as work", False: "the cost of a pair of events is not known here"}


def _measure_offset(bench: TimedCall) -> EmptyPair:
    empty, runtime = empty_pair(bench.runtime), bench.runtime
    kernel = runtime.spin if isinstance(runtime, SupportsSpin) else runtime.flush
    equal = TimedCall(call=kernel, plan=Plan(), runtime=runtime, rules=bench.rules)
    try:
        equal.once()
        points = [(count, _reading(equal, count)) for _ in range(ROUNDS) for count in COUNTS]
    except PerfgateError as error:
        if error.code.name != "cache-size-unknown":
            raise
        return empty
    finally:
        if isinstance(runtime, SupportsRelease):
            runtime.release()
    offset, slope, uncertainty = fit_line([(count, median(r for c, r in points if c == count)) for count in COUNTS])
    if not 0 <= offset <= MOST_NS or uncertainty > DOUBTFUL * slope:
        return empty
    return EmptyPair(overhead=offset, resolution=max(RESOLUTION_NS, 2 * uncertainty), taken_off=offset)


def _reading(equal: TimedCall, count: int) -> float:
    """Return a pair's reading around so many equal kernels in a full queue."""
    return median(queued(equal, allocate(equal.runtime, 3), count)[0]) * count


def fit_line(points: Sequence[tuple[int, float]]) -> tuple[float, float, float]:
    """Return intercept and slope of a line by least squares, and the intercept's standard error."""
    middle = fmean(count for count, _ in points)
    height = fmean(reading for _, reading in points)
    spread = sum((count - middle) ** 2 for count, _ in points)
    slope = sum((count - middle) * (reading - height) for count, reading in points) / spread
    offset = height - slope * middle
    residual = sum((reading - offset - slope * count) ** 2 for count, reading in points)
    error = sqrt(residual / (len(points) - 2) * (1 / len(points) + middle**2 / spread))
    return offset, slope, error
