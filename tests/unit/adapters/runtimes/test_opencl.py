"""A real queue with the device's own timestamps: PoCL where it is installed."""

from __future__ import annotations

import time
from dataclasses import replace
from statistics import median
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.runtimes.opencl import OpenClRuntime, _bus
from pytest_perfgate.adapters.timers import events
from pytest_perfgate.adapters.timers.auto import AutoTimer, GraphTimer
from pytest_perfgate.adapters.timers.bench import Rules
from pytest_perfgate.adapters.timers.events import BlockingTimer, EventsTimer
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Stop
from pytest_perfgate.model.plan import Cache, Plan

cl = pytest.importorskip("pyopencl", reason="pyopencl is not installed", exc_type=ImportError)
FOUND = OpenClRuntime().availability()
pytestmark = pytest.mark.skipif(not FOUND.usable, reason=f"no OpenCL device: {FOUND.why}")

SOURCE = """
__kernel void spin(__global float *data, const int turns) {
    int at = get_global_id(0);
    float x = data[at];
    for (int i = 0; i < turns; ++i) x = x * 1.0001f + 0.5f;
    data[at] = x;
}
"""
PLAN = Plan(min_samples=20)
RULES = Rules(
    stop=lambda durations, spent, plan: Stop.COUNT if len(durations) >= plan.min_samples else None,
    warm=lambda medians, calls, spent, plan: calls >= 5,
)


def test_a_card_is_known_by_its_bus_where_the_vendor_tells_it() -> None:
    device = SimpleNamespace(pci_domain_id_nv=0, pci_bus_id_nv=0x1B, pci_slot_id_nv=0)
    assert _bus(device, cl.Error) == "00000000:1B:00.0"
    assert _bus(cl.get_platforms()[0].get_devices()[0], cl.Error) == ""
    assert _bus(SimpleNamespace(), cl.Error) == ""


class Kernel:
    """A kernel whose length is asked for in turns."""

    def __init__(self, context, queue, turns: int) -> None:
        self.queue, self.turns = queue, turns
        self.buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * 4096)
        self.program = cl.Program(context, SOURCE).build()
        self.spin = cl.Kernel(self.program, "spin")
        self.spin.set_args(self.buffer, cl.cltypes.int(turns))

    def __call__(self, after=None):
        return cl.enqueue_nd_range_kernel(self.queue, self.spin, (4096,), None, wait_for=after)

    def longer(self, times: float) -> Kernel:
        self.spin.set_args(self.buffer, cl.cltypes.int(self.turns * times))
        return self


@pytest.fixture(scope="module")
def context():
    return cl.Context([cl.get_platforms()[0].get_devices()[0]])


@pytest.fixture
def queue(context):
    return cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)


@pytest.fixture
def kernel(context, queue) -> Kernel:
    return Kernel(context, queue, 500)


def test_a_kernel_is_timed_by_its_queue(kernel) -> None:
    samples = EventsTimer(RULES).measure(kernel, PLAN, OpenClRuntime())
    assert len(samples.durations) >= 20
    assert median(samples.durations) > 20 * samples.overhead / samples.batch
    assert samples.problems == ()


def test_a_slowdown_is_caught(kernel) -> None:
    timer, runtime = EventsTimer(RULES), OpenClRuntime()
    before = min(timer.measure(kernel, PLAN, runtime).durations)
    after = min(timer.measure(kernel.longer(20), PLAN, runtime).durations)
    assert after > 2 * before


def test_the_devices_time_is_not_the_hosts(kernel) -> None:
    """The host waits a while between launching and the end: none of it belongs to the kernel."""
    import time

    def call() -> None:
        kernel()
        kernel.queue.finish()
        time.sleep(0.002)

    runtime = OpenClRuntime()
    runtime.adopt(call)
    start, end = runtime.event(), runtime.event()
    kernel()
    start.record()
    kernel()
    end.record()
    runtime.synchronize()
    assert 0 < end.since(start) < 1e9


def test_a_held_queue_runs_only_when_it_is_let_go(kernel) -> None:
    runtime = OpenClRuntime()
    runtime.adopt(kernel)
    release = runtime.block()
    event = cl.enqueue_marker(kernel.queue)
    assert event.command_execution_status != cl.command_execution_status.COMPLETE
    release()
    runtime.synchronize()
    assert event.command_execution_status == cl.command_execution_status.COMPLETE
    samples = BlockingTimer(RULES).measure(kernel, PLAN, runtime)
    assert median(samples.durations) > 0
    assert samples.launch_gap is not None


def test_a_queue_that_is_not_held_back_gives_no_number(kernel, monkeypatch) -> None:
    """Its samples would be what the host takes to launch."""

    def finish_and_sleep(seconds: float) -> None:
        kernel.queue.finish()  # a busy machine takes its time with the event before
        time.sleep(seconds)

    monkeypatch.setattr(events, "time", SimpleNamespace(sleep=finish_and_sleep))
    runtime = OpenClRuntime()
    monkeypatch.setattr(runtime, "block", lambda: kernel.queue.flush)
    with pytest.raises(PerfgateError, match="was to be held back worked meanwhile"):
        BlockingTimer(RULES).measure(kernel, PLAN, runtime)


def test_a_call_that_waits_behind_a_held_queue_is_an_error(kernel) -> None:
    def call() -> None:
        kernel()
        kernel.queue.finish()

    with pytest.raises(PerfgateError, match="timer-deadlock"):
        BlockingTimer(RULES, patience_s=0.1).measure(call, PLAN, OpenClRuntime())
    kernel.queue.finish()


def test_cold_flushes_the_devices_cache(kernel, monkeypatch) -> None:
    """Of a card with a small cache: a host may have half a gigabyte, which each flush would write twice over."""
    runtime = OpenClRuntime()
    device = runtime.device()
    assert device.cache_bytes == kernel.queue.device.global_mem_cache_size
    monkeypatch.setattr(runtime, "device", lambda: replace(device, cache_bytes=1 << 20))
    samples = EventsTimer(RULES).measure(kernel, replace(PLAN, cache=Cache.COLD, min_samples=5), runtime)
    assert f"{2 << 20} bytes" in dict(samples.notes)["flush"]


def test_work_in_another_queue_is_caught(context, queue, kernel) -> None:
    """With a kernel between: what is ready together with the last event may pass before it, and is then inside."""
    other = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    short, long = Kernel(context, other, 10), Kernel(context, other, 5_000)

    def call() -> None:
        long(after=[short(after=[kernel()])])
        other.flush()

    samples = EventsTimer(RULES).measure(call, replace(PLAN, min_samples=1), OpenClRuntime())
    assert [problem.code for problem in samples.problems] == ["work-escaped"]


def test_a_queue_without_timestamps_is_refused(context) -> None:
    kernel = Kernel(context, cl.CommandQueue(context), 100)
    with pytest.raises(PerfgateError, match="takes no timestamps"):
        EventsTimer(RULES).measure(kernel, PLAN, OpenClRuntime())


def test_a_call_without_a_queue_is_refused() -> None:
    with pytest.raises(PerfgateError, match="no OpenCL queue"):
        EventsTimer(RULES).measure(lambda: None, PLAN, OpenClRuntime())


def test_there_are_no_graphs(kernel) -> None:
    runtime = OpenClRuntime()
    runtime.adopt(kernel)
    availability = GraphTimer(RULES).availability(runtime)
    assert not availability.usable
    assert "no graphs" in availability.why


def test_auto_says_what_it_chose(kernel) -> None:
    auto = AutoTimer(RULES, [EventsTimer(RULES), BlockingTimer(RULES), GraphTimer(RULES)])
    samples = auto.measure(kernel, PLAN, OpenClRuntime())
    assert dict(samples.notes)["timer"].startswith(f"{samples.timer}: a sample takes")


def test_the_device_is_described() -> None:
    device = OpenClRuntime().device()
    assert device.name
    assert device.multiprocessors > 0
    assert dict(device.facts)["driver"]
