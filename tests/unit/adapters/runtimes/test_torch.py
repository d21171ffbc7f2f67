"""Torch's runtime on torch without a GPU: its CUDA namespace is played by the simulated device."""

from __future__ import annotations

import contextlib
import gc
import sys
import warnings
from dataclasses import replace
from functools import partial
from statistics import median
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.bindings.border import with_warning
from pytest_perfgate.adapters.devices.visible import lookup_spec
from pytest_perfgate.adapters.runtimes.torch import TorchRuntime
from pytest_perfgate.adapters.timers.auto import GraphTimer
from pytest_perfgate.adapters.timers.events import BlockingTimer, EventsTimer
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Cache, Plan
from pytest_perfgate.testing import SimulatedGpu
from tests.late import late

torch = late("torch", reason="torch is not installed")
pytestmark = pytest.mark.torch

STREAM = SimpleNamespace(cuda_stream=7)


class Below:
    """What ``torch.cuda.Event`` is made over: milliseconds, earlier one first."""

    def record(self, stream: object) -> None:
        assert stream is STREAM
        self.event.record()

    def elapsed_time(self, later: Event) -> float:
        return later.event.since(self.event) / 1e6


class Event(Below):
    """``torch.cuda.Event``, whose own layer is passed by."""

    def __init__(self, gpu: SimulatedGpu, enable_timing: bool) -> None:
        assert enable_timing
        self.gpu, self.event = gpu, gpu.event()

    def record(self, stream: object = None) -> None:
        raise AssertionError("the layer that looks the stream up")

    def synchronize(self) -> None:
        self.gpu.wait(self.event)


class Graph:
    replay = None


class FakeCuda:
    """The part of ``torch.cuda`` that the runtime uses."""

    CUDAGraph = Graph

    def __init__(self, gpu: SimulatedGpu, name: str = "NVIDIA H200") -> None:
        self.gpu, self.name = gpu, name
        self.Event = lambda enable_timing: Event(gpu, enable_timing)

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def get_device_properties(self, index):
        return SimpleNamespace(
            name=self.name, major=9, minor=0, total_memory=141 << 30, multi_processor_count=132,
            L2_cache_size=1 << 20, uuid="1234", pci_domain_id=0, pci_bus_id=0x1B, pci_device_id=0,
        )  # fmt: skip

    def synchronize(self) -> None:
        self.gpu.synchronize()

    stream: object = STREAM

    def current_stream(self) -> object:
        return self.stream

    def set_stream(self, stream: object) -> None:
        self.stream = stream

    @contextlib.contextmanager
    def graph(self, graph):
        before = self.gpu._captured
        self.gpu._captured = kernels = []
        try:
            yield
        finally:
            self.gpu._captured = before
        graph.replay = lambda: self.gpu.submit(lambda begins: self.gpu._replay(begins, kernels), self.gpu.launch_ns)


class FakeDriver:
    def __init__(self, gpu) -> None:
        self.gpu, self.resets = gpu, 0

    def block(self, stream):
        return self.gpu.block()

    def give_up_persisting(self):
        self.resets += 1
        return "reset, limit 0"

    def uuid(self, index: int) -> str:
        return ""


@pytest.fixture
def runtime(gpu) -> TorchRuntime:
    return TorchRuntime(lookup_spec, FakeCuda(gpu), FakeDriver(gpu))


@pytest.fixture
def no_gpu() -> None:
    if with_warning(torch.cuda.is_available)[0]:
        pytest.skip("a GPU is here")


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_it_says_what_is_missing() -> None:
    availability = TorchRuntime().availability()
    assert not availability.usable
    assert "torch" in availability.why
    assert "GPU" in availability.why
    assert availability.fix


def test_a_driver_that_does_not_suit_is_the_reason_and_no_warning_of_ours(gpu, monkeypatch) -> None:
    class Unsuited(FakeCuda):
        """Says why once in a process, as torch does."""

        warned = False

        def is_available(self) -> bool:
            if not self.warned:
                self.warned = True
                warnings.warn("CUDA initialization: the driver is too old. Please update.", stacklevel=1)
            return False

    monkeypatch.setattr(torch.version, "cuda", "13.2")
    runtime = TorchRuntime(lookup_spec, Unsuited(gpu))
    message = f"RuntimeError: torch {torch.__version__} sees no GPU: CUDA initialization: the driver is too old"
    assert [runtime.availability().why for _ in range(2)] == [message, message]


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ("__version__, cuda, hip = '2.9.0+cpu', None, None", "torch 2.9.0+cpu has no GPU support"),
        ("__version__, cuda, hip = '2.9.0', '13.0', None", "imported"),
        ("__version__ = '0.4.1'", "imported"),
        ("__version__ =", "imported"),
    ],
)
def test_a_build_for_the_processor_alone_is_known_without_its_import(tmp_path, monkeypatch, facts, why) -> None:
    for name, text in (("__init__", "raise RuntimeError('imported')"), ("version", facts)):
        (tmp_path / "torch").mkdir(exist_ok=True)
        (tmp_path / "torch" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert TorchRuntime().availability().why == f"RuntimeError: {why}"


@pytest.mark.usefixtures("no_gpu")
def test_torch_on_the_processor_is_the_hosts() -> None:
    assert not TorchRuntime().recognises(frozenset({"torch"}))


def test_the_device_with_its_sheet(runtime) -> None:
    device = runtime.device()
    assert (device.name, device.arch, device.multiprocessors) == ("NVIDIA H200", "sm_90", 132)
    assert device.pci == "00000000:1B:00.0"
    assert device.spec.name == "H200 SXM"
    assert dict(device.facts)["framework"] == f"torch {torch.__version__}"


def test_a_last_cache_behind_the_l2_comes_from_the_sheet(gpu) -> None:
    runtime = TorchRuntime(lookup_spec, FakeCuda(gpu, "AMD Instinct MI300X"), FakeDriver(gpu))
    assert runtime.device().cache_bytes == 256 * 2**20


@pytest.mark.parametrize("percent", [0, 3])
def test_milliseconds_become_nanoseconds(runtime, rules, gpu, percent) -> None:
    samples = EventsTimer(rules).measure(lambda: gpu.kernel(100_000 * (1 + percent / 100)), Plan(), runtime)
    assert median(samples.durations) == pytest.approx(100_000 + percent * 1_000)


def test_a_flush_writes_twice_the_cache_and_resets_persisting_lines(runtime, rules, gpu) -> None:
    plan = replace(Plan(), cache=Cache.COLD)
    samples = EventsTimer(rules).measure(lambda: gpu.kernel(100_000), plan, runtime)
    assert runtime._evictors[0].nbytes == 2 << 20
    assert runtime._driver.resets > 20
    assert "persisting lines reset, limit 0" in dict(samples.notes)["flush"]


def test_a_device_has_the_uuid_of_the_driver_which_knows_instances_of_mig(runtime, monkeypatch) -> None:
    assert runtime.device().uuid == "1234"
    monkeypatch.setattr(FakeDriver, "uuid", lambda self, index: f"5678-{index}")
    assert runtime.device().uuid == "5678-0"


def test_a_device_of_cuda_spins_and_another_one_flushes(runtime, monkeypatch) -> None:
    launched: list[str] = []
    monkeypatch.setattr(runtime, "flush", lambda: launched.append("flush"))
    runtime.spin()
    monkeypatch.setattr(FakeCuda, "_sleep", lambda self, cycles: launched.append(f"{cycles} cycles"), raising=False)
    runtime.spin()
    assert launched == ["flush", "100000 cycles"]


def test_each_device_has_its_own_cache_flushed(runtime, monkeypatch) -> None:
    runtime.flush()
    monkeypatch.setattr(runtime._cuda, "current_device", lambda: 1)
    indices = []
    properties = runtime._cuda.get_device_properties
    monkeypatch.setattr(runtime._cuda, "get_device_properties", lambda at: indices.append(at) or properties(at))
    runtime.flush()
    runtime.flush()
    assert sorted(runtime._evictors) == [0, 1]
    assert set(indices) == {1}


def on_card(number: int):
    """A tensor that says that it is on a GPU."""

    class OnCard(torch.Tensor):
        device = torch.device("cuda", number)

    return torch.zeros(1).as_subclass(OnCard)


def test_a_call_on_another_device_than_the_current_one_is_refused(runtime, rules, gpu, monkeypatch) -> None:
    first, second = on_card(0), on_card(1)
    for call in (partial(gpu.kernel, 100_000), lambda: first, lambda: (first, second), torch.zeros(1).add_):
        runtime.adopt(call)
    for call in (lambda: second, second.add_, torch.nn.ParameterList([second])):
        with pytest.raises(PerfgateError, match="timer-unsuited") as refused:
            EventsTimer(rules).measure(call, Plan(), runtime)
        assert "on cuda:1, and the current device is cuda:0" in refused.value.what
    monkeypatch.setattr(runtime._cuda, "current_device", lambda: 1)
    runtime.adopt(lambda: second)
    with pytest.raises(PerfgateError, match="timer-unsuited"):
        runtime.adopt(lambda: first)


def test_work_on_a_second_gpu_of_the_call_is_waited_for_and_reported(rules, gpu, monkeypatch) -> None:
    """Streams of the simulated card stand for two GPUs."""
    monkeypatch.setattr(FakeCuda, "synchronize", lambda self, number=0: gpu._wait(gpu.ready[number]))
    first, second = on_card(0), on_card(1)

    def call():
        gpu.kernel(100_000)
        gpu.kernel(500_000, stream=1)
        return first, second

    samples = EventsTimer(rules).measure(call, Plan(), TorchRuntime(lookup_spec, FakeCuda(gpu), FakeDriver(gpu)))
    assert [problem.code for problem in samples.problems] == ["work-escaped"]


def test_memory_of_a_flush_on_another_device_is_no_reason_to_refuse(runtime) -> None:
    runtime._evictors[1] = on_card(1)
    runtime.adopt(runtime.flush)
    assert runtime._others == ()


def test_a_cache_of_unknown_size_is_not_flushed_in_silence(gpu, monkeypatch) -> None:
    runtime = TorchRuntime(backend=FakeCuda(gpu, "Unknown"), driver=FakeDriver(gpu))
    properties = runtime._cuda.get_device_properties(0)
    properties.L2_cache_size = 0
    monkeypatch.setattr(runtime._cuda, "get_device_properties", lambda index: properties, raising=False)
    with pytest.raises(PerfgateError, match="cache-size-unknown"):
        runtime.flush()


def test_graphs_and_held_queues_go_through_torch(runtime, rules, gpu) -> None:
    by_graph = GraphTimer(rules).measure(lambda: gpu.kernel(2_000), Plan(), runtime)
    assert median(by_graph.durations) == pytest.approx(2_000, rel=0.001)

    blocked = BlockingTimer(rules).measure(lambda: gpu.kernel(100_000), Plan(), runtime)
    assert median(blocked.durations) == pytest.approx(100_000)


def test_a_call_that_cannot_be_captured_is_an_error(runtime, gpu) -> None:
    def call() -> None:
        raise RuntimeError("CUDA error: operation not permitted when stream is capturing")

    with pytest.raises(PerfgateError, match="graph-unsupported"):
        runtime.capture(call)


@pytest.mark.parametrize("raised", [RuntimeError("capture_end"), KeyboardInterrupt()])
def test_a_capture_whose_end_fails_leaves_the_stream_as_it_was(runtime, monkeypatch, raised) -> None:
    cuda = runtime._cuda

    @contextlib.contextmanager
    def graph(made):
        cuda.set_stream("the capture's")
        yield
        raise raised

    monkeypatch.setattr(cuda, "graph", graph)
    with pytest.raises((PerfgateError, KeyboardInterrupt)):
        runtime.capture(lambda: None)
    assert cuda.current_stream() is STREAM


def test_a_lost_device_is_an_error(runtime, rules, gpu) -> None:
    calls = []

    def call() -> None:
        calls.append(1)
        gpu.lost = len(calls) > 15
        gpu.kernel(100_000)

    with pytest.raises(PerfgateError, match="device-lost"):
        EventsTimer(rules).measure(call, Plan(), runtime)


class Tuner:
    """What Triton's ``Autotuner`` and Inductor's ``CachingAutotuner`` keep of their choice."""

    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)


def kernel() -> None:
    pass


TUNED = (
    ({"base_fn": kernel, "best_config": "num_warps: 8"}, "num_warps: 8"),
    ({"fn": kernel, "launchers": [SimpleNamespace(config="XBLOCK: 64")]}, "XBLOCK: 64"),
    ({"fn": kernel, "launchers": [SimpleNamespace(config="a"), SimpleNamespace(config="b")]}, None),
    ({"base_fn": kernel, "launchers": None}, None),
    ({"fn": kernel, "launchers": [SimpleNamespace()]}, None),
    ({}, None),
)


@pytest.mark.parametrize(("attributes", "choice"), TUNED)
def test_the_choice_of_a_tuner_that_ran_is_a_note_of_the_process(runtime, monkeypatch, attributes, choice) -> None:
    monkeypatch.setitem(sys.modules, "triton.runtime.autotuner", SimpleNamespace(Autotuner=Tuner))
    monkeypatch.delitem(sys.modules, "torch._inductor.runtime.triton_heuristics", raising=False)
    tuner = Tuner(**attributes)
    gc.freeze()  # as the process does that rounds are forked from
    assert dict(runtime.notes()).get("tuning kernel") == choice
    del tuner


class Counters:
    """``torch.cuda``, as far as its caching allocator counts."""

    def __init__(self) -> None:
        self.held = self.peak = 4096
        self.count = 9

    def synchronize(self) -> None:
        """Nothing is queued."""

    def reset_peak_memory_stats(self) -> None:
        self.peak = self.held

    def memory_stats(self) -> dict[str, int]:
        return {
            "allocated_bytes.all.current": self.held,
            "allocated_bytes.all.peak": self.peak,
            "reserved_bytes.all.peak": 1 << 30,
            "allocation.all.allocated": self.count,
        }

    def empty(self, size: int) -> None:
        self.held += size
        self.count += 1
        self.peak = max(self.peak, self.held)


def test_memory_is_what_is_allocated_beyond_what_stood_and_not_reserved() -> None:
    counters = Counters()

    def call() -> None:
        counters.empty(1000)
        counters.held -= 1000
        counters.empty(600)

    runtime = TorchRuntime(backend=counters)
    assert runtime.memory_of(call) == (1000, 2)
    assert runtime.memory_of(lambda: None) == (0, 0)
