"""What others took of the processors: files of the system that are there, that are not, and that are odd."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from pytest_perfgate.adapters.runtimes.fakes import FakeRuntime
from pytest_perfgate.adapters.timers import bench as crowd
from pytest_perfgate.adapters.timers.bench import Crowd, Nobody, beside, parse_busy
from pytest_perfgate.adapters.timers.host import HostTimer
from pytest_perfgate.clock import HostClock
from pytest_perfgate.core.stats.summary import Stopping, WarmUp
from pytest_perfgate.model.measurement import Samples, Stop
from pytest_perfgate.model.plan import Plan

SAMPLES = Samples(durations=(400.0, 600.0), batch=10, timer="host", stop=Stop.BUDGET)


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A system whose clocks and files say what the test tells them: four processors, one tick is 10 ms."""
    clocks = dict.fromkeys(HostClock._fields, 0)
    monkeypatch.setattr(crowd, "HOST_CLOCK", HostClock(*(partial(clocks.__getitem__, clock) for clock in clocks)))
    monkeypatch.setattr(crowd.os, "cpu_count", lambda: 4)
    monkeypatch.setattr(crowd.os, "sysconf", lambda _name: 100)
    monkeypatch.setattr(crowd, "get_native_id", lambda: 7)
    monkeypatch.setattr(crowd, "_TASKS", tmp_path / "task")
    monkeypatch.setattr(crowd, "_STAT", tmp_path / "stat")

    def tell(passed: int, worked: int, *, ticks: int | None = 0, **queued: int) -> None:
        clocks.update(wall=passed, process=worked, thread=worked)
        for thread, delay in queued.items():
            (tmp_path / "task" / thread[1:]).mkdir(parents=True, exist_ok=True)
            (tmp_path / "task" / thread[1:] / "schedstat").write_text(f"{worked} {delay} 3\n")
        if ticks is not None:
            (tmp_path / "stat").write_text(f"cpu  {ticks} 0 0 900 5 0 0 0 0 0\ncpu0 1 1 1 1\n")

    return tell


def test_what_threads_queued_and_what_others_used(system) -> None:
    system(0, 0, ticks=10, t7=1000, t8=50)
    looked = Crowd()
    system(100_000_000, 60_000_000, ticks=10 + 30, t7=1000 + 40_000_000, t8=50, t9=2_000_000)
    seen = looked.seen()
    assert seen.queued == 42_000_000, "a thread that was born meanwhile counts from nothing"
    assert seen.own == 40_000_000
    assert seen.others == pytest.approx((300_000_000 - 60_000_000) / 100_000_000)


@pytest.mark.parametrize(("ticks", "queued"), [(36, None), (20, 0.0)], ids=["full", "room"])
def test_work_that_others_do_for_the_call_may_queue_unseen(system, ticks: int, queued: float | None) -> None:
    system(0, 0, t7=0)
    looked = Crowd()
    system(100_000_000, 1_000_000, ticks=ticks, t7=0)
    assert looked.seen().queued == queued


@pytest.mark.parametrize(("worked", "queued"), [(80_000_000, 20_000_000), (40_000_000, None)])
def test_a_system_that_tells_no_delays_has_processor_time(system, worked: int, queued: float | None) -> None:
    system(0, 0, ticks=None)
    looked = Crowd()
    system(100_000_000, worked, ticks=None)
    assert looked.seen() == (queued, None, None)


@pytest.mark.parametrize(("queued", "unqueued"), [(0.0, 500.0), (4000.0, 300.0), (1e9, 0.0), (None, None)])
def test_what_is_left_of_a_call(queued: float | None, unqueued: float | None) -> None:
    class Told:
        def seen(self) -> crowd.Seen:
            return crowd.Seen(queued, 0.3)

    assert beside(Told(), SAMPLES) == replace(SAMPLES, unqueued=unqueued, others=0.3)


@pytest.mark.parametrize(
    ("own", "cpu", "blocked"),
    [
        (0.0, (400.0, 500.0), 50.0),
        (1000.0, (400.0, 500.0), 0.0),
        (600.0, (400.0, 500.0), 20.0),
        (9000.0, (400.0, 500.0), 0.0),
        (None, (400.0, 500.0), None),
        (0.0, (), None),
    ],
)
def test_what_neither_computed_nor_queued(own: float | None, cpu: tuple[float, ...], blocked: float | None) -> None:
    class Told:
        def seen(self) -> crowd.Seen:
            return crowd.Seen(0.0, 0.0, own)

    assert beside(Told(), replace(SAMPLES, cpu=cpu)).blocked == blocked


@pytest.mark.parametrize("line", ["", "cpu", "cpu 1 2 x 4 5 6 7", "cpu 1 2 3"])
def test_a_line_that_does_not_read_tells_nothing(line: str) -> None:
    assert parse_busy(line, 100) is None


def test_time_stolen_by_a_hypervisor_is_in_use_and_that_of_guests_counts_once() -> None:
    assert parse_busy("cpu  1 2 3 400 500 6 7 8 9 10\n", 100) == (1 + 2 + 3 + 6 + 7 + 8) * 1e7


def test_a_simulated_clock_is_shared_with_nobody() -> None:
    runtime = FakeRuntime([3e6])
    taken = HostTimer(Stopping(), WarmUp()).measure(runtime.kernel, Plan(warmup_ns=0), runtime)
    assert taken.others == 0.0
    assert Nobody().seen().queued == 0.0


def test_this_machine_tells_no_nonsense() -> None:
    seen = Crowd().seen()
    assert seen.queued is None or seen.queued >= 0
    assert seen.others is None or seen.others >= 0
