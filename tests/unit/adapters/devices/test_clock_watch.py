"""What a watch makes of its looks: which of them count, and what becomes of a driver that fails."""

from __future__ import annotations

import json
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_perfgate.adapters.bindings.nvml import ClockSample, Counts
from pytest_perfgate.adapters.devices.clock_locks import read_back
from pytest_perfgate.adapters.devices.clock_watch import (
    CounterReading,
    DeviceWatch,
    LockedClocks,
    readings_agree,
    shares,
)
from pytest_perfgate.adapters.system.processes import OtherProcesses
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Sampling
from tests.waits import until


class Device:
    """Idles until it is sampled; says when it was looked at."""

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling
        self.looked = threading.Semaphore(0)
        self.fails: Exception | None = None
        self.answers = threading.Event()
        self.answers.set()
        self.reasons = 0
        self.clock = 1.98e9
        self.pids = ()

    def sample(self) -> ClockSample:
        if self.fails:
            raise self.fails
        self.answers.wait()
        hz = self.clock if self.sampling.mark % 2 else 345e6
        self.looked.release()
        return ClockSample(sm_hz=hz, memory_hz=3.2e9, reasons=self.reasons, temperature=40.0)

    def violations(self):
        return Counts({})

    def processes(self):
        return self.pids


@pytest.fixture
def sampling() -> Sampling:
    return Sampling()


@pytest.fixture
def device(sampling) -> Device:
    return Device(sampling)


def watched(device: Device, **options: object) -> DeviceWatch:
    """A watch that looks when a region begins, and else when it is told."""
    return DeviceWatch(device, sampling=device.sampling, period_s=60.0, **options)


def looks(device: Device, count: int) -> None:
    for _ in range(count):
        assert device.looked.acquire(timeout=60)


def test_clocks_count_while_samples_are_taken_and_at_no_other_time(device, sampling) -> None:
    watch = watched(device, lock=LockedClocks(1.98e9))
    device.reasons = 0x4
    watch.begin()
    looks(device, 1)
    device.reasons = 0
    with sampling.region():
        looks(device, 1)
    device.reasons = 0x4
    watch.end()
    assert watch.clock_hz() == (1.98e9,)
    assert watch.problems() == ()
    assert dict(watch.facts())["sm clock"] == "1980 MHz, 1980 to 1980 in 1 readings"


def test_what_no_timer_samples_is_watched_throughout(device) -> None:
    watch = watched(device, lock=LockedClocks(1.98e9))
    watch.begin()
    watch.end()
    assert set(watch.clock_hz()) == {345e6}
    assert [problem.code for problem in watch.problems()] == ["clock-moved"]


def test_a_region_without_a_look_has_no_clock(device, sampling) -> None:
    watch = watched(device)
    watch.begin()
    looks(device, 1)
    sampling.tell(None)
    with sampling.region():
        pass
    watch.end()
    assert watch.clock_hz() == ()
    assert dict(watch.facts())["sm clock"] == "no reading fell into the sampling"


@pytest.mark.parametrize(("clock", "codes"), [(345e6, []), (1.98e9, ["clock-moved"])])
def test_a_lock_that_nobody_saw_is_believed_where_the_looks_beside_it_found_it(device, sampling, clock, codes) -> None:
    watch = watched(device, lock=LockedClocks(clock))
    watch.begin()
    looks(device, 1)
    sampling.tell(None)
    with sampling.region():
        pass
    watch.end()
    assert [problem.code for problem in watch.problems()] == codes


@pytest.mark.parametrize("clock", [0.0, (2**32 - 1) * 1e6])
@pytest.mark.parametrize(("lock", "codes"), [(LockedClocks(), []), (LockedClocks(1.98e9), ["clock-moved"])])
def test_what_cannot_be_a_clock_is_none(device, sampling, clock, lock, codes) -> None:
    device.clock = clock
    watch = watched(device, lock=lock)
    watch.begin()
    looks(device, 1)
    with sampling.region():
        looks(device, 1)
    watch.end()
    assert watch.clock_hz() == ()
    assert dict(watch.facts())["sm clock"] == "the device does not report it"
    assert [problem.code for problem in watch.problems()] == codes


@pytest.mark.parametrize(("then", "what"), [({"cap": 3}, "ran backwards"), ({}, "stopped counting"), ({"cap": 7}, "")])
def test_counters_that_fail_half_way_are_a_problem(device, sampling, then, what) -> None:
    counted = iter([{"cap": 7}, {"cap": 7}])
    device.violations = lambda: Counts(next(counted, then))
    watch = watched(device)
    watch.begin()
    looks(device, 1)
    with sampling.region():
        looks(device, 1)
    watch.end()
    assert [(problem.code, what in problem.what) for problem in watch.problems()] == [("device-lost", True)] * bool(
        what
    )


def test_processes_that_were_not_told_once_are_said(device, sampling) -> None:
    device.pids = None
    watch = watched(device)
    watch.begin()
    looks(device, 1)
    device.pids = ()
    with sampling.region():
        looks(device, 1)
    watch.end()
    assert dict(watch.facts())["other processes"] == "the device does not report it"


def test_whatever_a_look_raises_is_a_problem(device, sampling) -> None:
    watch = watched(device)
    watch.begin()
    looks(device, 1)
    device.fails = ValueError("odd")
    with sampling.region():
        pass
    watch.end()
    (problem,) = watch.problems()
    assert (problem.code, problem.what) == ("device-lost", "reading the device failed: ValueError: odd")


def test_a_driver_that_does_not_answer_is_not_waited_for(device) -> None:
    watch = watched(device)
    watch.begin()
    looks(device, 1)
    watch._patience = 0.05
    device.answers.clear()
    watch.end()
    (problem,) = watch.problems()
    assert (problem.code, problem.what) == ("device-lost", "the driver did not answer for 0.05 s")
    device.answers.set()


def test_a_driver_that_hangs_at_the_first_look_is_an_error(device) -> None:
    device.answers.clear()
    with pytest.raises(PerfgateError, match=r"did not answer for 0\.05 s") as raised:
        watched(device, patience_s=0.05).begin()
    assert raised.value.code.name == "driver-silent"
    device.answers.set()


def readings(*points: tuple[int, int, int], ticks: bool = False) -> list[CounterReading]:
    """Of a mark, a time, and what the power cap has held by then."""
    return [
        CounterReading(Counts({"cap": capped}, at if ticks else None), mark, 7 * at if ticks else at)
        for mark, at, capped in points
    ]


def test_counters_are_shares_of_the_sampling() -> None:
    setup, sampled = (0, 0, 0), (1, 10_000, 0)
    assert shares(readings(setup, sampled, (2, 10_100, 5))) == {"cap": 0.05}
    assert shares(readings(setup, sampled, (2, 10_100, 5)), throughout=True) == {"cap": 5 / 10_100}
    assert shares(readings(setup, (1, 10_000, 9_000), (2, 10_100, 9_000))) == {}
    two = readings(setup, sampled, (2, 10_100, 5), (3, 20_000, 9_000), (4, 20_100, 9_010), (4, 30_000, 9_900))
    assert shares(two) == {"cap": 15 / 200}


def test_a_region_between_two_readings_counts_with_the_time_around_it() -> None:
    assert shares(readings((0, 0, 0), (2, 1_000, 100))) == {"cap": 0.1}


def test_a_card_that_counts_in_ticks_is_held_against_its_own() -> None:
    assert shares(readings((1, 0, 0), (2, 100, 30), ticks=True)) == {"cap": 0.3}
    assert shares(readings((1, 5, 0), (2, 5, 0), ticks=True)) == {}


def test_a_lock_is_read_back_when_it_has_settled(device, sampling) -> None:
    lock, slept = LockedClocks(1.98e9), []

    def settle(seconds: float) -> None:
        slept.append(seconds)
        sampling.mark = 1 if len(slept) == 3 else 0

    assert read_back(device, lock, settle) == "read back at 1980 MHz"
    assert len(slept) == 3
    sampling.mark = 0
    assert "set to 1980 MHz, read 345 MHz without load" in read_back(device, lock, lambda _: None)
    assert read_back(device, LockedClocks(1.98e9, cap=True), slept.append) == "read back at 345 MHz"
    assert "unknown clock" in read_back(device, LockedClocks(base=True), slept.append)


def test_a_lock_at_base_must_stay_where_it_was_found(device, sampling) -> None:
    watch = watched(device, lock=LockedClocks(base=True))
    watch.begin()
    looks(device, 1)
    clocks = (1.2e9, 1.2e9, 1.5e9)
    for number, device.clock in enumerate(clocks, 1):
        with sampling.region():
            assert until(lambda number=number: watch.clock_hz() == clocks[:number])
    watch.end()
    (problem,) = watch.problems()
    assert dict(problem.evidence)["locked at"] == "1200 MHz"


def test_processes_of_elsewhere_are_counted_and_invalidate_nothing(device) -> None:
    device.pids = (5, 6)
    watch = watched(device, other_processes=lambda pids: OtherProcesses(elsewhere=pids))
    watch.begin()
    watch.end()
    assert watch.problems() == ()
    assert dict(watch.facts())["processes of elsewhere on the card"].startswith("2, not told apart")


def test_two_watches_at_once_are_both_told_of_a_region(sampling) -> None:
    devices = [Device(sampling), Device(sampling)]
    both = [watched(device) for device in devices]
    for watch, device in zip(both, devices, strict=True):
        watch.begin()
        looks(device, 1)
    with sampling.region():
        for device in devices:
            looks(device, 1)
    for watch in reversed(both):
        watch.end()
    assert [watch.clock_hz() for watch in both] == [(1.98e9,)] * 2


def test_marks_are_odd_inside_alone(sampling) -> None:
    marks = [sampling.mark]
    for _ in range(2):
        with sampling.region():
            marks.append(sampling.mark)
        marks.append(sampling.mark)
    assert [mark % 2 for mark in marks] == [0, 1, 0, 1, 0]
    assert all(one < other for one, other in pairwise(marks))


def test_it_looks_ten_times_a_second_at_the_least(device) -> None:
    watch, waits = DeviceWatch(device, sampling=device.sampling), []

    class Wake(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            return super().wait(0.0)

    watch._wake = Wake()
    watch.begin()
    for _ in range(3):
        device.looked.acquire()
    watch.end()
    assert max(waits) <= 0.1


POWER = json.loads(Path(__file__).with_name("h100_power.json").read_text(encoding="utf-8"))
"""Of an H100 of 700 W, by kernel, from the begin of its load on: seconds, watts (an average of a second), watts of the
moment, MHz and reasons for a low clock."""


def settled_at(kernel: str, *, moment: bool = True) -> float:
    looks: list[ClockSample] = []
    for seconds, watts, drawn, megahertz, reasons in POWER[kernel]:
        share = drawn / 700 if moment else None
        hz = megahertz * 1e6
        looks.append(
            ClockSample(sm_hz=hz, memory_hz=2.6e9, reasons=reasons, temperature=50.0, watts=watts, power=share)
        )
        if readings_agree(looks):
            return seconds
    raise AssertionError(f"{kernel} never settled")


@pytest.mark.parametrize(
    ("kernel", "begin", "end"),
    [
        ("gemm4096", 1.0, 1.5),  # at the limit from 0.2 s on
        ("gemm2048", 1.0, 1.5),
        ("softmax", 1.0, 1.5),  # at 85 to 90 % of the limit
        ("gemm1024", 0.3, 0.4),  # draws less than half of it
        ("short", 0.5, 0.8),  # after gemm4096, whose limit holds for another half second
        ("copy", 0.5, 0.8),  # after gemm2048
    ],
)
def test_a_load_of_an_h100_has_settled_once_its_power_cannot_lower_the_clock(
    kernel: str, begin: float, end: float
) -> None:
    assert begin <= settled_at(kernel) <= end


def test_without_the_power_of_the_moment_the_average_has_to_stand_still() -> None:
    assert settled_at("short", moment=False) > settled_at("short") + 0.4
