"""The offset of a pair is that of a full one: found by writes that lie on a line, taken off each sample, said."""

from __future__ import annotations

from statistics import median

import pytest

from pytest_perfgate.adapters.timers.bench import TimedCall
from pytest_perfgate.adapters.timers.event_pairs import (
    DOUBTFUL,
    GAP_NS,
    RESOLUTION_NS,
    EmptyPair,
    agreement_note,
    calibrated,
    fit_line,
    net,
    offset_note,
)
from pytest_perfgate.adapters.timers.events import EventsTimer
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.testing import SimulatedEvent, SimulatedGpu

H100 = {"copy": ((1, 182.0), (2, 361.15), (4, 720.45), (8, 1438.62)), "profiler": 178.64}
"""Microseconds in one pair of events, and what the profiler has for one."""


class Offset(SimulatedGpu):
    """An empty pair reads another time than a full one holds beside its work, as with CUPTI on."""

    def event(self):
        return OffsetEvent(self)


class OffsetEvent(SimulatedEvent):
    def since(self, earlier) -> float:
        passed = super().since(earlier)
        return 13_000.0 if passed < 2_000 else passed + 1_000.0


def measured(gpu: SimulatedGpu, rules, plan: Plan):
    return EventsTimer(rules.__class__(stop=rules.stop, warm=rules.warm, clock=gpu.clock)).measure(
        lambda: gpu.kernel(180_000), plan, gpu
    )


def test_a_full_pair_tells_what_an_empty_one_does_not(rules, plan) -> None:
    samples = measured(Offset(), rules, plan)
    assert median(samples.durations) == pytest.approx(180_000)
    assert (samples.overhead, samples.resolution) == (pytest.approx(2_500), RESOLUTION_NS)
    assert dict(samples.notes)["offset"].startswith("2500 ns taken off each pair, known to 500 ns")


def test_it_is_found_once_in_a_process_and_what_it_took_is_let_go_of(rules, plan) -> None:
    class Letting(SimulatedGpu):
        released = 0

        def release(self) -> None:
            self.released += 1

    gpu = Letting()
    first = measured(gpu, rules, plan)
    flushes = gpu.flushes
    assert measured(gpu, rules, plan).durations == first.durations
    assert (gpu.flushes, gpu.released) == (flushes, 1)


def test_a_kernel_that_only_waits_is_taken_before_writes_that_depend_on_the_cache(rules, plan) -> None:
    class Spinning(Offset):
        def spin(self) -> None:
            self.kernel(50_000)

        def flush(self) -> None:
            raise AssertionError("nothing is written")

    assert measured(Spinning(), rules, plan).overhead == pytest.approx(2_500)


class TooShortEvent(SimulatedEvent):
    def since(self, earlier) -> float:
        passed = super().since(earlier)
        return passed - 3_000.0 if passed > 50_000 else passed


class CrookedEvent(SimulatedEvent):
    def since(self, earlier) -> float:
        passed = super().since(earlier)
        return passed + 4_000.0 if 150_000 < passed < 350_000 else passed


@pytest.mark.parametrize(("kind", "reads"), [(TooShortEvent, 178_500), (CrookedEvent, 185_500)])
def test_what_can_be_no_offset_of_a_pair_is_none(rules, plan, kind, reads) -> None:
    class Strange(SimulatedGpu):
        def event(self):
            return kind(self)

    samples = measured(Strange(), rules, plan)
    assert median(samples.durations) == pytest.approx(reads)
    assert dict(samples.notes)["offset"] == "none taken off; an empty pair reads 1500 ns"


def test_a_device_that_does_not_tell_its_cache_has_none_taken_off(rules, plan) -> None:
    class Silent(SimulatedGpu):
        def flush(self) -> None:
            raise PerfgateError("cache-size-unknown", "it does not tell")

    assert median(measured(Silent(), rules, plan).durations) == pytest.approx(181_500)


def test_a_processor_behind_a_queue_has_none_taken_off(rules) -> None:
    class OnHost(SimulatedGpu):
        def device(self, index: int = 0) -> Device:
            return Device(key="host", name="PoCL", kind="host", index=index)

    gpu = OnHost()
    assert calibrated(TimedCall(call=lambda: None, plan=Plan(), runtime=gpu, rules=rules)).taken_off == 0.0
    assert gpu.flushes == 0


def test_the_copy_of_an_h100_agrees_with_its_profiler_to_one_percent() -> None:
    offset, slope, doubt = fit_line([(count, 1e3 * us) for count, us in H100["copy"]])
    assert 1_500 < offset < 3_500
    assert doubt < 200
    empty = EmptyPair(overhead=offset, taken_off=offset)
    (time,) = net([182_000.0], empty)
    assert time / 1e3 == pytest.approx(H100["profiler"], rel=0.01)
    assert slope / 1e3 == pytest.approx(179.5, rel=0.001)
    assert net([182_000.0 / 4], empty, 4) == (pytest.approx(time / 4),)
    assert "taken off" in offset_note(empty)[0][1]


WRITES = [(1, 38_032.0), (2, 74_736.0), (4, 149_584.0), (8, 299_856.0)]
SPINS = [(1, 53_384.0), (2, 105_640.0), (4, 210_656.0), (8, 419_440.0)]
"""Of another H100, in nanoseconds: writes of twice its cache, whose records have 32.6 us, and waits, with 50.9 us."""


def test_waits_of_an_h100_lie_on_a_line_and_its_writes_do_not() -> None:
    """A write waits for the write-back of the one before, which is no time of its own."""
    _, slope, doubt = fit_line(WRITES)
    assert doubt > DOUBTFUL * slope
    offset, slope, doubt = fit_line(SPINS)
    assert doubt < DOUBTFUL * slope
    assert 1_000 < offset < 1_300
    assert 50_945 < slope < 50_945 + GAP_NS
    assert 53_384 - offset == pytest.approx(50_945 + GAP_NS, abs=200)


@pytest.mark.parametrize(
    ("took", "empty", "part"),
    [
        (180_000.0, EmptyPair(overhead=2_500.0, taken_off=2_500.0), ""),
        (60_000.0, EmptyPair(overhead=2_500.0, taken_off=2_500.0), "2.3 %"),
        (180_000.0, EmptyPair(overhead=3_600.0), "2.0 %"),
        (10_000.0, EmptyPair(overhead=250.0), ""),
        (10_000.0, EmptyPair(overhead=400.0), "4.0 %"),
    ],
)
def test_a_time_that_may_be_off_by_more_than_a_timer_should_says_so(took: float, empty: EmptyPair, part: str) -> None:
    """One percent from 20 us on, three below."""
    note = dict(agreement_note(took, empty)).get("agreement", "")
    assert note.startswith(f"up to {part} longer than") if part else not note
