"""cuda.core on a driver of our own making, each in a process of its own; run by test_cuda_core.py."""

from __future__ import annotations

import ctypes
import os
import time
from dataclasses import replace
from statistics import median
from types import SimpleNamespace

import cuda.core  # noqa: F401 - once for the forks of all scenarios: it takes most of their time

from ci.gpu import processes
from pytest_perfgate.adapters.bindings.cuda_driver import CudaDriver
from pytest_perfgate.adapters.devices.host import probe_host
from pytest_perfgate.adapters.devices.visible import lookup_spec
from pytest_perfgate.adapters.runtimes.cuda import CudaCoreRuntime
from pytest_perfgate.adapters.runtimes.host import HostRuntime
from pytest_perfgate.adapters.timers.auto import GraphTimer
from pytest_perfgate.adapters.timers.bench import Rules
from pytest_perfgate.adapters.timers.events import BlockingTimer, EventsTimer
from pytest_perfgate.adapters.timers.host import HostTimer
from pytest_perfgate.app.instrument import choose_runtime, choose_timer
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Stop
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import Cache, CaseKey, ClockPolicy, Plan
from pytest_perfgate.model.ports import Instruments
from pytest_perfgate.plugin.calls import MeasuredCall
from pytest_perfgate.plugin.measuring import Measuring

LIBRARY = "libcuda.so.1"


def scenario(function):
    function.__scenario__ = True
    return function


def library():
    driver = ctypes.CDLL(LIBRARY)
    driver.fake_now.restype = ctypes.c_double
    return driver


def rules() -> Rules:
    return Rules(
        stop=lambda durations, spent, plan: Stop.COUNT if len(durations) >= 20 else None,
        warm=lambda medians, calls, spent, plan: calls >= 5,
        clock=library().fake_now,
    )


def kernel(nanoseconds: float):
    made = library()

    def call() -> None:
        made.fake_launch(ctypes.c_double(nanoseconds))

    return call


def words() -> list[str]:
    return (ctypes.c_char * 65536).in_dll(library(), "fake_log").value.decode().split()


def measured(nanoseconds: float) -> float:
    samples = EventsTimer(rules()).measure(kernel(nanoseconds), Plan(), CudaCoreRuntime(lookup_spec))
    assert not samples.problems, samples.problems
    return median(samples.durations)


@scenario
def slowdown_and_none() -> dict:
    first, again, slower = measured(100_000), measured(100_000), measured(103_000)
    return {"first": first, "again": again, "slower": slower}


@scenario
def call_order() -> dict:
    """Events are made before, records are tight around the launch, one synchronisation reads a chunk."""
    measured(100_000)
    return {"said": words()}


@scenario
def the_device() -> dict:
    device = CudaCoreRuntime(lookup_spec).device()
    return {
        "name": device.name,
        "arch": device.arch,
        "sheet": device.spec.name if device.spec else "",
        "uuid": device.uuid,
        "facts": dict(device.facts),
    }


@scenario
def held_back() -> dict:
    runtime = CudaCoreRuntime(lookup_spec)
    runtime.adopt(kernel(1))
    release = runtime.block()
    before = library().fake_gate()
    release()
    samples = BlockingTimer(rules()).measure(kernel(100_000), Plan(), runtime)
    return {"before": before, "after": library().fake_gate(), "said": words(), "median": median(samples.durations)}


@scenario
def no_wait_value() -> dict:
    ctypes.c_int.in_dll(library(), "fake_no_wait_value").value = 1
    availability = BlockingTimer(rules()).availability(CudaCoreRuntime(lookup_spec))
    return {"usable": availability.usable, "why": availability.why}


@scenario
def lost_while_measuring() -> dict:
    calls = []
    launch = kernel(100_000)

    def call() -> None:
        calls.append(1)
        if len(calls) > 15:
            ctypes.c_int.in_dll(library(), "fake_lost").value = 1
        launch()

    try:
        EventsTimer(rules()).measure(call, Plan(), CudaCoreRuntime(lookup_spec))
    except PerfgateError as error:
        return {"code": error.code.name, "text": str(error)}
    return {}


@scenario
def too_short() -> dict:
    try:
        EventsTimer(rules()).measure(kernel(2_000), Plan(), CudaCoreRuntime(lookup_spec))
    except PerfgateError as error:
        return {"code": error.code.name, "text": str(error)}
    return {}


def on_a_stream(nanoseconds: float, number: int | None = None):
    """A call that launches on a stream of its own, which the runtime finds in it."""
    from cuda.core import Device

    device = Device(number)
    device.set_current()
    stream, made = device.create_stream(), library()

    def call() -> None:
        assert stream.handle
        made.fake_launch(ctypes.c_double(nanoseconds))

    return call


@scenario
def two_devices() -> dict:
    """Calls on streams of either device, and one on the default stream of the current device."""
    ctypes.c_int.in_dll(library(), "fake_devices").value = 2
    runtime, plan = CudaCoreRuntime(lookup_spec), replace(Plan(), cache=Cache.COLD)
    calls = [on_a_stream(100_000, number) for number in (0, 1, 0, 1)] + [kernel(100_000)]
    devices, took = [], []
    for call in calls:
        runtime.adopt(call)
        devices.append((runtime.device().index, runtime.device().uuid[:2]))
        took.append(median(EventsTimer(rules()).measure(call, plan, runtime).durations))
    limits = [word for word in words() if word.startswith("limit")]
    return {"devices": devices, "took": took, "limits": limits}


@scenario
def graphs() -> dict:
    first, again, slower = (
        GraphTimer(rules()).measure(on_a_stream(ns), Plan(), CudaCoreRuntime(lookup_spec))
        for ns in (2_000, 2_000, 2_060)
    )
    took = [median(s.durations) for s in (first, again, slower)]
    return {"took": took, "batch": first.batch, "said": words(), "problems": len(first.problems)}


@scenario
def a_cold_graph() -> dict:
    launch, buffers = on_a_stream(50_000), []

    class Bound:
        def __init__(self) -> None:
            self.launch = launch

        def __call__(self) -> None:
            self.launch()

        def bind(self, made):
            def run() -> None:
                buffers.append(id(made))
                self.launch()

            return run

    inputs = lambda: SimpleNamespace(nbytes=100_000)  # noqa: E731
    plan = replace(Plan(), cache=Cache.COLD)
    samples = GraphTimer(rules()).measure(Bound(), plan, CudaCoreRuntime(lookup_spec), inputs)
    return {"buffers": len(set(buffers)), "batch": samples.batch, "notes": dict(samples.notes), "said": words()}


@scenario
def a_capture_that_fails() -> dict:
    call = on_a_stream(2_000)
    ctypes.c_int.in_dll(library(), "fake_capture_fails").value = 1
    try:
        GraphTimer(rules()).measure(call, Plan(), CudaCoreRuntime(lookup_spec))
    except PerfgateError as error:
        return {"code": error.code.name, "text": str(error)}
    return {}


@scenario
def a_graph_that_is_asked_for() -> dict:
    """As the plugin goes about it: a runtime for the call, then the timer by name."""
    plan, call = Plan(runtime="cuda_core", timer="graph"), on_a_stream(2_000)
    runtime = choose_runtime(plan, [CudaCoreRuntime(lookup_spec)], frozenset(), call)
    timer = choose_timer(plan, [GraphTimer(rules())], runtime)
    return {"took": median(timer.measure(call, plan, runtime).durations)}


@scenario
def no_stream_of_its_own() -> dict:
    try:
        GraphTimer(rules()).measure(kernel(2_000), Plan(), CudaCoreRuntime(lookup_spec))
    except PerfgateError as error:
        return {"code": error.code.name, "text": str(error)}
    return {}


@scenario
def missing() -> dict:
    availability = CudaCoreRuntime(lookup_spec).availability()
    return {"usable": availability.usable, "why": availability.why, "fix": availability.fix}


@scenario
def present() -> dict:
    availability = CudaCoreRuntime(lookup_spec).availability()
    return {"usable": availability.usable, "why": availability.why}


@scenario
def least_work() -> dict:
    CudaCoreRuntime(lookup_spec).synchronize()
    CudaDriver().touch()
    driver = CudaDriver()
    answer = {"memory": [driver.memory(0), driver.memory(1)], "uuid": [driver.uuid(0), driver.uuid(1)]}
    return {"words": words()[-4:], **answer}


class OnTheGpu:
    """An array of a library that shares it by the protocol, such as Numba's."""

    __cuda_array_interface__ = {"shape": (1,), "typestr": "<f4", "data": (1 << 20, False), "version": 3}


class OnTheHost:
    """An array whose class has the protocol, and which is not on a GPU, such as Warp's."""

    @property
    def __cuda_array_interface__(self):
        raise AttributeError


@scenario
def shared_arrays() -> dict:
    """Calls that reach no stream, and an array of either kind."""
    made, runtimes, took = library(), [CudaCoreRuntime(lookup_spec), HostRuntime(probe_host)], {}
    for array in (OnTheGpu(), OnTheHost()):

        def call(array=array) -> None:
            made.fake_launch(ctypes.c_double(100_000))

        runtime = choose_runtime(Plan(), runtimes, frozenset({"cuda.core"}), call)
        timed = EventsTimer(rules()).measure(call, Plan(), runtime) if runtime.name == "cuda_core" else None
        took[type(array).__name__] = median(timed.durations) if timed else runtime.name
    return took


@scenario
def behind_the_host() -> dict:
    """Calls of a library that no runtime knows, by the host's own clock: one launches, one only computes."""
    ctypes.c_int.in_dll(made := library(), "fake_devices").value = 2
    os.environ["FAKE_CUDA_REAL"] = "1"
    host, plan = (HostRuntime(probe_host),), Plan(budget_ns=50e6, warmup_ns=1e6, min_samples=3)
    instruments = Instruments(runtimes=host, timers=(HostTimer(rules().stop, rules().warm),), threads=str, affinity=str)
    measuring = Measuring(instruments, lambda capture: MetricSet())
    calls = {"launch": lambda: made.fake_launch(ctypes.c_double(5e6)), "compute": lambda: sum(range(1000))}
    answers = {}
    for name, call in calls.items():
        samples = measuring.samples(MeasuredCall(CaseKey(nodeid="t", name=name), call), plan)
        answers[name] = {"took": median(samples.durations), "notes": dict(samples.notes), "batch": samples.batch}
    return {**answers, "said": words()}


@scenario
def copies_of_the_check() -> dict:
    """The part of the GPU check that other libraries have."""
    made = SimpleNamespace(
        plan=Plan(clocks=ClockPolicy.OFF),
        timers={"events": EventsTimer(rules()), "graph": GraphTimer(rules())},
        ends=time.monotonic() + 600,
    )
    rows = list(processes.libraries(made))
    made.ends = time.monotonic()
    late = [row for row in processes.libraries(made) if row["what"] == "cuda_core"]
    return {"rows": [row for row in rows if row["what"] == "cuda_core"], "late": late}
