"""What a watch makes of its looks: which of them count, and what becomes of a driver that fails."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest

from pytest_perfgate.adapters.bindings.nvml import ClockSample
from pytest_perfgate.adapters.bindings.processes import Others
from pytest_perfgate.adapters.devices.watching import DeviceWatch, Lock, read_back
from pytest_perfgate.model.sampling import Sampling


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
        return {}

    def processes(self):
        return self.pids


@pytest.fixture
def sampling() -> Sampling:
    return Sampling()


@pytest.fixture
def device(sampling) -> Device:
    return Device(sampling)


def watched(device: Device, **given: object) -> DeviceWatch:
    """A watch that looks when a region begins, and else when it is told."""
    return DeviceWatch(device, sampling=device.sampling, period_s=60.0, **given)


def looks(device: Device, count: int) -> None:
    for _ in range(count):
        assert device.looked.acquire(timeout=10)


def test_clocks_count_while_samples_are_taken_and_at_no_other_time(device, sampling) -> None:
    watch = watched(device, lock=Lock(1.98e9))
    device.reasons = 0x4
    watch.begin()
    looks(device, 2)
    device.reasons = 0
    with sampling.region():
        looks(device, 1)
    device.reasons = 0x4
    watch.end()
    assert watch.clock_hz() == (1.98e9,)
    assert watch.problems() == ()
    assert dict(watch.facts())["sm clock"] == "1980 MHz, 1980 to 1980 in 1 looks"


def test_what_no_timer_samples_is_watched_throughout(device) -> None:
    watch = watched(device, lock=Lock(1.98e9))
    watch.begin()
    watch.end()
    assert set(watch.clock_hz()) == {345e6}
    assert [problem.code for problem in watch.problems()] == ["clock-moved"]


def test_a_region_without_a_look_has_no_clock(device, sampling) -> None:
    watch = watched(device)
    watch.begin()
    looks(device, 2)
    sampling.tell(None)
    with sampling.region():
        pass
    watch.end()
    assert watch.clock_hz() == ()
    assert dict(watch.facts())["sm clock"] == "no look fell into the sampling"


def test_whatever_a_look_raises_is_a_problem(device, sampling) -> None:
    watch = watched(device)
    watch.begin()
    looks(device, 2)
    device.fails = ValueError("odd")
    with sampling.region():
        pass
    watch.end()
    (problem,) = watch.problems()
    assert (problem.code, problem.what) == ("device-lost", "looking at the device failed: ValueError: odd")


def test_a_driver_that_does_not_answer_is_not_waited_for(device) -> None:
    watch = watched(device, patience_s=0.05)
    watch.begin()
    looks(device, 2)
    device.answers.clear()
    watch.end()
    (problem,) = watch.problems()
    assert (problem.code, problem.what) == ("device-lost", "the driver did not answer for 0.05 s")
    device.answers.set()


def test_a_lock_is_read_back_when_it_has_settled(device, sampling) -> None:
    lock, slept = Lock(1.98e9), []

    def settle(seconds: float) -> None:
        slept.append(seconds)
        sampling.mark = 1 if len(slept) == 3 else 0

    assert read_back(device, lock, settle) == "read back at 1980 MHz"
    assert len(slept) == 3
    sampling.mark = 0
    assert "set to 1980 MHz, read 345 MHz without load" in read_back(device, lock, lambda _: None)
    assert read_back(device, Lock(1.98e9, cap=True), slept.append) == "read back at 345 MHz"
    assert "nobody has named" in read_back(device, Lock(base=True), slept.append)


def test_a_lock_at_base_must_stay_where_it_was_found(device, sampling) -> None:
    watch = watched(device, lock=Lock(base=True))
    watch.begin()
    looks(device, 2)
    for clock in (1.2e9, 1.2e9, 1.5e9):
        device.clock = clock
        with sampling.region():
            looks(device, 1)
    watch.end()
    (problem,) = watch.problems()
    assert dict(problem.evidence)["locked at"] == "1200 MHz"


def test_processes_of_elsewhere_are_counted_and_invalidate_nothing(device) -> None:
    device.pids = (5, 6)
    watch = watched(device, strangers=lambda pids: Others(elsewhere=pids))
    watch.begin()
    watch.end()
    assert watch.problems() == ()
    assert dict(watch.facts())["processes of elsewhere on the card"].startswith("2, not told apart")


def test_marks_are_odd_inside_alone(sampling) -> None:
    seen = [sampling.mark]
    for _ in range(2):
        with sampling.region():
            seen.append(sampling.mark)
        seen.append(sampling.mark)
    assert [mark % 2 for mark in seen] == [0, 1, 0, 1, 0]
    assert all(one < other for one, other in pairwise(seen))
