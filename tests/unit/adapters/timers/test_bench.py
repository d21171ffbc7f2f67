"""Tests of adapters/timers/bench."""

from __future__ import annotations

import cProfile
import hashlib
import pstats
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from pytest_perfgate import clock
from pytest_perfgate.adapters.timers import bench as module
from pytest_perfgate.adapters.timers.bench import (
    SETTLE_NS,
    CpuLoad,
    NoCpuLoad,
    Rules,
    TimedCall,
    Undisturbed,
    parse_busy,
    with_cpu_load,
)
from pytest_perfgate.adapters.timers.host import HostTimer
from pytest_perfgate.clock import HostClock, wait_for_threads
from pytest_perfgate.core.stats.summary import Stopping, WarmUp
from pytest_perfgate.model.measurement import Samples, Sampling, Stop
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.testing import FakeRuntime, SimulatedGpu

SAMPLES = Samples(durations=(400.0, 600.0), batch=10, timer="host", stop=Stop.BUDGET)


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A system whose clocks and files say what the test tells them: four processors, one tick is 10 ms."""
    clocks = dict.fromkeys(HostClock._fields, 0)
    monkeypatch.setattr(module, "HOST_CLOCK", HostClock(*(partial(clocks.__getitem__, clock) for clock in clocks)))
    monkeypatch.setattr(module.os, "cpu_count", lambda: 4)
    monkeypatch.setattr(module.os, "sysconf", lambda _name: 100)
    monkeypatch.setattr(module, "get_native_id", lambda: 7)
    monkeypatch.setattr(module, "_TASKS", tmp_path / "task")
    monkeypatch.setattr(module, "_STAT", tmp_path / "stat")

    def tell(passed: int, worked: int, *, ticks: int | None = 0, **queued: int) -> None:
        clocks.update(wall=passed, process=worked, thread=worked)
        for thread, delay in queued.items():
            (tmp_path / "task" / thread[1:]).mkdir(parents=True, exist_ok=True)
            (tmp_path / "task" / thread[1:] / "schedstat").write_text(f"{worked} {delay} 3\n")
        if ticks is not None:
            (tmp_path / "stat").write_text(f"cpu  {ticks} 0 0 900 5 0 0 0 0 0\ncpu0 1 1 1 1\n")

    return tell


def test_what_other_threads_of_the_process_used() -> None:
    data = b"x" * (1 << 20)
    looked, until = CpuLoad(), time.monotonic() + 0.2

    def hashing() -> None:
        while time.monotonic() < until:
            hashlib.sha256(data).digest()  # without the interpreter's lock

    worker = threading.Thread(target=hashing)
    worker.start()
    worker.join()
    load = looked.sample()
    assert load.helpers is not None
    assert with_cpu_load(Fixed(load), SAMPLES).threaded
    looked = CpuLoad()
    for _ in range(100):
        hashlib.sha256(data).digest()
    assert not with_cpu_load(Fixed(looked.sample()), SAMPLES).threaded


class Fixed:
    """A load that was read before."""

    def __init__(self, load: module.LoadSample) -> None:
        self._load = load

    def sample(self) -> module.LoadSample:
        return self._load


@pytest.mark.parametrize(("spins_ms", "waited_ms"), [(0, 5), (12, 20), (100, 105), (10_000, 300)])
def test_the_threads_of_a_pool_are_waited_for_until_they_rest(monkeypatch, spins_ms: int, waited_ms: int) -> None:
    """They are looked at for 5 ms at a time, and for 0.3 s at most."""
    now = 0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += round(seconds * 1e9)

    work = lambda: min(now, spins_ms * 1_000_000)  # noqa: E731
    monkeypatch.setattr(clock, "HOST_CLOCK", HostClock(lambda: now, work, lambda: 0, float))
    monkeypatch.setattr(clock, "_SLEEP", sleep)
    wait_for_threads()
    assert now == waited_ms * 1_000_000


def test_what_threads_queued_and_what_others_used(system) -> None:
    system(0, 0, ticks=10, t7=1000, t8=50)
    looked = CpuLoad()
    system(100_000_000, 60_000_000, ticks=10 + 30, t7=1000 + 40_000_000, t8=50, t9=2_000_000)
    sample = looked.sample()
    assert sample.queued == 42_000_000, "a thread that was born meanwhile counts from nothing"
    assert sample.own == 40_000_000
    assert sample.others == pytest.approx((300_000_000 - 60_000_000) / 100_000_000)


@pytest.mark.parametrize(("ticks", "queued"), [(36, None), (20, 0.0)], ids=["full", "room"])
def test_work_that_others_do_for_the_call_may_queue_unseen(system, ticks: int, queued: float | None) -> None:
    system(0, 0, t7=0)
    looked = CpuLoad()
    system(100_000_000, 1_000_000, ticks=ticks, t7=0)
    assert looked.sample().queued == queued


@pytest.mark.parametrize(("worked", "queued"), [(80_000_000, 20_000_000), (40_000_000, None)])
def test_a_system_that_tells_no_delays_has_processor_time(system, worked: int, queued: float | None) -> None:
    system(0, 0, ticks=None)
    looked = CpuLoad()
    system(100_000_000, worked, ticks=None)
    assert looked.sample() == (queued, None, None, 0.0)


@pytest.mark.parametrize(("queued", "unqueued"), [(0.0, 500.0), (4000.0, 300.0), (1e9, 0.0), (None, None)])
def test_what_is_left_of_a_call(queued: float | None, unqueued: float | None) -> None:
    class Told:
        def sample(self) -> module.LoadSample:
            return module.LoadSample(queued, 0.3)

    assert with_cpu_load(Told(), SAMPLES) == replace(SAMPLES, unqueued=unqueued, others=0.3)


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
        def sample(self) -> module.LoadSample:
            return module.LoadSample(0.0, 0.0, own)

    assert with_cpu_load(Told(), replace(SAMPLES, cpu=cpu)).blocked == blocked


@pytest.mark.parametrize("line", ["", "cpu", "cpu 1 2 x 4 5 6 7", "cpu 1 2 3"])
def test_a_line_that_does_not_read_tells_nothing(line: str) -> None:
    assert parse_busy(line, 100) is None


def test_time_stolen_by_a_hypervisor_is_in_use_and_that_of_guests_counts_once() -> None:
    assert parse_busy("cpu  1 2 3 400 500 6 7 8 9 10\n", 100) == (1 + 2 + 3 + 6 + 7 + 8) * 1e7


def test_a_simulated_clock_is_shared_with_nobody() -> None:
    runtime = FakeRuntime([3e6])
    taken = HostTimer(Stopping(), WarmUp()).measure(runtime.kernel, Plan(warmup_ns=0), runtime)
    assert taken.others == 0.0
    assert NoCpuLoad().sample().queued == 0.0


def test_this_machine_tells_no_nonsense() -> None:
    sample = CpuLoad().sample()
    assert sample.queued is None or sample.queued >= 0
    assert sample.others is None or sample.others >= 0


def test_what_traces_every_line_looks_away_and_is_put_back() -> None:
    def tracer(*_: object) -> None:
        return None

    before, tracers = sys.gettrace(), []
    sys.settrace(tracer)
    try:
        with Undisturbed():
            tracers.append(sys.gettrace())
        tracers.append(sys.gettrace())
    finally:
        sys.settrace(before)
    assert tracers == [None, tracer]


def inside() -> None:
    """Called while the profiler waits."""


def after() -> None:
    """Called when it has gone on."""


def test_a_profiler_waits_and_goes_on() -> None:
    """It stood in the way: what is put back was no function for Python 3.11, and 3.12 went on measuring it."""
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        with Undisturbed():
            inside()
        after()
    finally:
        profiler.disable()
    names = {name for _, _, name in pstats.Stats(profiler).stats}
    assert "after" in names
    assert "inside" not in names


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with Python 3.12")
def test_what_monitors_calls_waits_and_goes_on() -> None:
    monitoring, tool, names = sys.monitoring, 4, []
    monitoring.use_tool_id(tool, "of this test")
    try:
        monitoring.register_callback(tool, monitoring.events.PY_START, lambda code, _: names.append(code.co_name))
        monitoring.set_events(tool, monitoring.events.PY_START)
        with Undisturbed():
            inside()
        after()
    finally:
        monitoring.free_tool_id(tool)
    assert "after" in names
    assert "inside" not in names


def bench(plan: Plan = Plan(), steady=lambda: True) -> TimedCall:
    gpu, sampling = SimulatedGpu(), Sampling()
    sampling.ask(lambda: steady(gpu.now) if steady.__code__.co_argcount else steady())
    rules = Rules(stop=Stopping(), warm=WarmUp(), clock=gpu.clock, sampling=sampling)
    return TimedCall(call=lambda: gpu.kernel(100_000.0), plan=plan, runtime=gpu, rules=rules)


def test_a_call_whose_time_holds_still_is_warm_where_the_device_is() -> None:
    warmth = bench().warm()
    assert (warmth.calls, warmth.settled, warmth.notes) == (25, True, ())
    assert warmth.spent_ns < 5e6


def test_the_device_is_kept_busy_until_it_has_settled() -> None:
    benchmark = bench(steady=lambda now: now > 800e6)
    warmth = benchmark.warm()
    assert 800e6 < warmth.spent_ns < 900e6
    gpu = benchmark.runtime
    busy = sum(end - begin for begin, end, _ in gpu.executed)
    assert busy > 0.75 * warmth.spent_ns
    assert warmth.calls == gpu.launches


def test_a_device_that_never_settles_is_measured_and_that_is_said() -> None:
    warmth = bench(steady=lambda: False).warm()
    assert SETTLE_NS <= warmth.spent_ns < 1.1 * SETTLE_NS
    assert dict(warmth.notes)["warm-up"].startswith("clock and power had not settled after 3")


def test_a_long_turn_is_under_load_for_as_long_as_it_asks() -> None:
    warmth = bench(Plan(warmup_ns=0.0, settle_ns=1e9)).warm()
    assert 1e9 <= warmth.spent_ns < 1.1e9


@pytest.mark.parametrize("plan", [Plan(warmup_ns=0.0)])
def test_a_turn_without_warm_up_has_none(plan: Plan) -> None:
    assert bench(plan).warm().calls == 0
