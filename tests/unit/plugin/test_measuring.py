"""Tests of plugin/measuring."""

from __future__ import annotations

import sys
from dataclasses import replace
from statistics import median
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.adapters.devices.clocks import MachineClocks
from pytest_perfgate.adapters.devices.host import probe_host
from pytest_perfgate.adapters.runtimes.host import HostRuntime
from pytest_perfgate.adapters.timers import host as host_timer
from pytest_perfgate.adapters.timers.host import HostTimer
from pytest_perfgate.app.instrument import at_least
from pytest_perfgate.app.measure import conversation
from pytest_perfgate.app.passes import WAITED
from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.compat import Benchmark
from pytest_perfgate.core.stats.summary import Stopping, WarmUp
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.ports import Instruments
from pytest_perfgate.model.protocol import Bye, ChildJob, Entered, Finish, Go, Measure, Ready
from pytest_perfgate.plugin import calibrating
from pytest_perfgate.plugin import measuring as measuring_module
from pytest_perfgate.plugin.calls import MeasuredCall, Schedule
from pytest_perfgate.plugin.measuring import SLOWER, Measuring
from pytest_perfgate.testing import FakeRuntime

KEY = CaseKey(nodeid="t.py::test_a")
SHORT = Plan(warmup_ns=1.0, budget_ns=1.0)


@pytest.fixture
def measuring() -> Measuring:
    instruments = Instruments(
        runtimes=(HostRuntime(probe_host),), timers=(HostTimer(Stopping(), WarmUp()),), threads=str, affinity=str
    )
    return Measuring(instruments, lambda capture: MetricSet())


def test_rounds_iterations_and_warm_ups_are_the_least(measuring: Measuring) -> None:
    calls: list[int] = []
    measured_call = MeasuredCall(KEY, lambda: calls.append(1), schedule=Schedule(samples=40, iterations=6, warmups=3))
    quick = measuring.capture(measured_call, SHORT).samples[0]
    assert len(quick.durations) >= 40
    assert quick.batch % 6 == 0
    assert quick.batch >= 6
    assert len(calls) >= 3 * 6 + 40 * quick.batch
    turn = measuring.samples(measured_call, SHORT)
    assert len(turn.durations) < 40, "the turns of two arms are as long as their beat"


def test_what_one_call_stands_for_is_part_of_how_it_was_measured(measuring: Measuring) -> None:
    identities = [measuring.capture(MeasuredCall(KEY, list, calls=calls), SHORT).identity for calls in (1, 2)]
    assert [(one.calls, identities[0].differences(one)) for one in identities] == [
        ("1", ()),
        ("2", (("calls", "1", "2"),)),
    ]


def test_what_is_asked_for_beforehand_runs_once_a_process_each_with_its_set_up(measuring: Measuring) -> None:
    events: list[str] = []
    measured_call = MeasuredCall(
        KEY, lambda: events.append("call"), setup=lambda: events.append("setup"), schedule=Schedule(warmups=2)
    )
    measuring.samples(measured_call, SHORT)
    first = len(events)
    assert events[:4] == ["setup", "call"] * 2
    events.clear()
    measuring.samples(measured_call, SHORT)
    assert len(events) == first - 4


def test_nothing_asked_for_changes_nothing() -> None:
    plan, call = Plan(), int
    assert at_least(plan, 0) is plan
    assert MeasuredCall(KEY, call).sample(call) is call
    more = at_least(Plan(max_samples=100), 300)
    assert (more.least_samples, more.min_samples, more.max_samples) == (300, 300, 300)
    few = at_least(plan, 3)
    assert (few.least_samples, few.min_samples, few.max_samples) == (3, plan.min_samples, plan.max_samples)


def test_a_child_says_what_its_call_asks_for() -> None:
    answers = iter([Ready(nodeid=KEY.nodeid), Entered(key=KEY, samples=30), Bye()])
    sent: list[Any] = []
    child: Any = SimpleNamespace(send=sent.append, receive=lambda timeout_s: next(answers))
    case = Case(nodeid=KEY.nodeid, limits=(), plan=SHORT)
    assert list(conversation(child, ChildJob(cases=(case,)), 1.0)) == [Ready(nodeid=KEY.nodeid)]
    assert sent[1:] == [Go(), Measure(plan=at_least(SHORT, 30))]
    assert not any(isinstance(one, Finish) for one in sent)


def test_a_call_is_told_the_timer_that_it_was_measured_with_before() -> None:
    answers = iter([Ready(nodeid=KEY.nodeid), Entered(key=KEY), Bye()])
    sent: list[Any] = []
    child: Any = SimpleNamespace(send=sent.append, receive=lambda timeout_s: next(answers))
    case = Case(nodeid=KEY.nodeid, limits=(), plan=SHORT)
    list(conversation(child, ChildJob(cases=(case,)), 1.0, {KEY: "graph"}.get))
    assert sent[-1] == Measure(plan=replace(SHORT, leaning="graph"))


class Noted:
    """A gate that notes what was asked of it."""

    def __init__(self) -> None:
        self.schedules: list[Schedule] = []

    def scheduled(self, fn: Any, setup: Any, schedule: Schedule) -> Any:
        self.schedules.append(schedule)
        return SimpleNamespace(result=None, key=KEY)


@pytest.mark.parametrize(
    ("marker", "call", "schedule"),
    [
        ({}, {"rounds": 7, "iterations": 9, "warmup_rounds": 2}, Schedule(7, 9, 2)),
        ({}, {"rounds": 7, "setup": dict}, Schedule(7)),
        ({}, {"iterations": 4, "teardown": print}, Schedule(0, 4)),
        ({}, None, Schedule(1)),
        ({"min_rounds": 12}, None, Schedule(12)),
    ],
)
def test_what_pedantic_and_the_marker_ask_for(marker: Any, call: Any, schedule: Schedule) -> None:
    gate = Noted()
    node = SimpleNamespace(get_closest_marker=lambda name: SimpleNamespace(kwargs=marker), name="a", nodeid=KEY.nodeid)
    fixture = Benchmark(gate, node)  # type: ignore[arg-type]
    fixture(int) if call is None else fixture.pedantic(int, **call)
    assert gate.schedules == [schedule]


def test_whoever_waits_for_a_device_is_heard(measuring: Measuring) -> None:
    """For another run's lease, and for a card that is hot: three silent minutes look like a hang."""
    lines: list[str] = []
    clocks, leases = MachineClocks(), SimpleNamespace(tell=None)
    instruments = replace(measuring.instruments, clocks=clocks, leases=leases)
    Measuring(instruments, measuring.metrics).tell_waits(lines.append)
    assert leases.tell == clocks._nvidia.tell == clocks._amd.tell == lines.append
    measuring.tell_waits(lines.append)


@pytest.mark.parametrize(("by", "parts"), [(None, []), ("0.0", [0.0]), ("0.05", [0.05])])
def test_the_environment_slows_the_calls_of_a_process(
    measuring: Measuring, monkeypatch: pytest.MonkeyPatch, by: str | None, parts: list[float]
) -> None:
    monkeypatch.delenv(SLOWER, raising=False)
    if by is not None:
        monkeypatch.setenv(SLOWER, by)
    slowed: list[float] = []
    monkeypatch.setattr(calibrating, "slowed", lambda call, part: slowed.append(part) or call)
    measuring.samples(MeasuredCall(KEY, int), SHORT)
    assert slowed == parts


class Device:
    """A device that works behind the host's back; the host's clock is the simulated one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, used: bool = True) -> None:
        self.fake, self.used, self.events = FakeRuntime([50e3], launch_ns=5e3, waits=False), used, list[str]()
        clock = HOST_CLOCK._replace(wall=self.fake.clock)
        for module in (measuring_module, host_timer):
            monkeypatch.setattr(module, "HOST_CLOCK", clock)
        monkeypatch.setattr(measuring_module, "device_wait", lambda: self.wait if self.used else None)

    def launch(self) -> None:
        self.used = True
        self.events.append("launch")
        self.fake.kernel()

    def work(self) -> None:
        self.events.append("work")
        self.fake.host_ns += 20e3

    def wait(self) -> None:
        self.events.append("wait")
        self.fake.synchronize()


def test_a_call_that_leaves_work_to_a_device_ends_with_a_wait(
    measuring: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Device(monkeypatch)
    samples = measuring.samples(MeasuredCall(KEY, device.launch), SHORT)
    assert median(samples.durations) == pytest.approx(55e3)
    assert WAITED in samples.notes
    assert device.events[-2:] == ["launch", "wait"]


def test_a_call_of_the_host_has_no_wait(measuring: Measuring, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch)
    samples = measuring.samples(MeasuredCall(KEY, device.work), SHORT)
    assert median(samples.durations) == pytest.approx(20e3)
    assert not samples.notes
    assert "wait" not in device.events[-samples.batch * len(samples.durations) - 1 : -1]
    device.events.clear()
    measuring.samples(MeasuredCall(KEY, device.work), SHORT)
    assert device.events.index("wait") == len(device.events) - 1, "decided once; the last one looks for a fault"


def test_times_of_a_device_that_failed_meanwhile_are_an_error(
    measuring: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Device(monkeypatch)
    measuring.samples(MeasuredCall(KEY, device.work), SHORT)

    def wait() -> None:
        raise PerfgateError("device-lost", "CUDA returned 700")

    monkeypatch.setattr(device.fake, "synchronize", wait)
    with pytest.raises(PerfgateError) as error:
        measuring.samples(MeasuredCall(KEY, device.work), SHORT)
    assert error.value.code.name == "device-lost"


def test_a_call_that_waits_in_the_other_build_waits_here_too(
    measuring: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Device(monkeypatch)
    samples = measuring.samples(MeasuredCall(KEY, device.work), replace(SHORT, waits=True))
    assert WAITED in samples.notes
    assert device.events[-2:] == ["work", "wait"]
    device = Device(monkeypatch, used=False)
    assert not measuring.samples(
        MeasuredCall(CaseKey(nodeid="t.py::test_b"), device.work), replace(SHORT, waits=True)
    ).notes, "nothing to wait for"


def test_the_work_of_a_set_up_is_over_before_the_call(measuring: Measuring, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch)
    samples = measuring.samples(MeasuredCall(KEY, device.work, setup=device.launch), SHORT)
    assert median(samples.durations) == pytest.approx(20e3)
    assert device.events[-4:] == ["launch", "wait", "work", "wait"]


def test_samples_are_taken_again_where_the_first_call_began_to_use_a_device(
    measuring: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Device(monkeypatch, used=False)
    samples = measuring.samples(MeasuredCall(KEY, device.launch), SHORT)
    assert median(samples.durations) == pytest.approx(55e3)
    assert WAITED in samples.notes


@pytest.mark.parametrize("started", [True, False])
def test_the_host_waits_for_arrays_of_jax_and_does_not_start_it(
    monkeypatch: pytest.MonkeyPatch, *, started: bool
) -> None:
    events: list[object] = []
    library = SimpleNamespace(live_arrays=lambda: ["stored"], block_until_ready=events.append)
    monkeypatch.setitem(sys.modules, "jax", library)
    bridge = SimpleNamespace(backends_are_initialized=lambda: started)
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)
    runtime = HostRuntime(probe_host)
    runtime.device()
    events.clear()
    runtime.synchronize()
    assert events == ([["stored"]] if started else [])
    for stub in (None, SimpleNamespace()):
        monkeypatch.setitem(sys.modules, "jax", stub)
        runtime.device()
        runtime.synchronize()


def test_arrays_of_jax_that_an_earlier_test_left_failed_fail_no_other_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """The traceback of a failed test keeps them alive; a call of numpy then raised the error of that test."""

    class Array:
        def __init__(self, *, fails: bool) -> None:
            self.fails, self.waited = fails, 0

        def block_until_ready(self) -> None:
            self.waited += 1
            if self.fails:
                raise RuntimeError("INTERNAL: the computation failed")

    def block_until_ready(arrays: list[Array]) -> None:
        for array in arrays:
            array.block_until_ready()

    lost, late, arrays = Array(fails=True), Array(fails=True), [Array(fails=False)]
    arrays.append(lost)
    library = SimpleNamespace(live_arrays=lambda: list(arrays), block_until_ready=block_until_ready)
    monkeypatch.setitem(sys.modules, "jax", library)
    bridge = SimpleNamespace(backends_are_initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)
    runtime = HostRuntime(probe_host)
    runtime.device()
    arrays[0].waited = 0
    runtime.synchronize()
    assert arrays[0].waited == 1
    arrays.append(late)
    with pytest.raises(RuntimeError, match="INTERNAL"):  # the call's own work
        runtime.synchronize()
