"""CuPy's runtime on a module that behaves as CuPy does, over a simulated card."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from statistics import median
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.devices.visible import lookup_spec
from pytest_perfgate.adapters.runtimes.cuda import CudaArray, CupyRuntime
from pytest_perfgate.adapters.timers.auto import GraphTimer
from pytest_perfgate.adapters.timers.events import BlockingTimer, EventsTimer
from pytest_perfgate.app.instrument import lease_name
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Cache, Plan


class CUDARuntimeError(RuntimeError):
    """CuPy's own."""


class Stream:
    """Records what is launched while it is current and captures; knows only its own graph."""

    ptr = 7

    def __init__(self, cuda, non_blocking=False) -> None:
        assert non_blocking, "the default stream of a thread cannot be captured"
        self.cuda, self.kernels = cuda, None

    def __enter__(self):
        self.cuda.current.append(self)

    def __exit__(self, *exception) -> None:
        self.cuda.current.pop()

    def begin_capture(self) -> None:
        self.kernels = self.cuda.gpu._captured = []

    def end_capture(self):
        cuda, gpu, kernels = self.cuda, self.cuda.gpu, self.kernels
        gpu._captured = None
        if cuda.invalid:
            raise CUDARuntimeError("cudaErrorStreamCaptureInvalidated: operation failed")

        def launch(stream) -> None:
            assert stream is cuda.current[-1]
            gpu.submit(lambda begins: gpu._replay(begins, kernels), gpu.launch_ns)

        return SimpleNamespace(launch=launch)


class Cuda:
    """``cupy.cuda``."""

    def __init__(self, gpu) -> None:
        self.gpu, self.invalid = gpu, False
        self.current = [SimpleNamespace(ptr=0)]
        self.Stream = lambda **options: Stream(self, **options)
        self.runtime = SimpleNamespace(
            getDeviceCount=lambda: 1, getDevice=lambda: 0, deviceGetPCIBusId=lambda at: "0000:1B:00.0",
            runtimeGetVersion=lambda: 12080, deviceSynchronize=self._synchronize, CUDARuntimeError=CUDARuntimeError,
            getDeviceProperties=lambda at: {
                "name": b"NVIDIA H200", "major": 9, "minor": 0, "totalGlobalMem": 141 << 30, "l2CacheSize": 1 << 20,
                "multiProcessorCount": 132,
            },
        )  # fmt: skip
        self.driver = SimpleNamespace(CUDADriverError=CUDARuntimeError)

    def _synchronize(self) -> None:
        try:
            self.gpu.synchronize()
        except RuntimeError as error:
            raise CUDARuntimeError(str(error)) from error

    def Event(self):
        event = self.gpu.event()
        return SimpleNamespace(inner=event, record=event.record, synchronize=lambda: self.gpu.wait(event))

    def get_elapsed_time(self, start, end) -> float:
        return end.inner.since(start.inner) / 1e6

    def get_current_stream(self):
        return self.current[-1]


class Array:
    """``cupy.ndarray``."""

    def __init__(self, number: int) -> None:
        self.device = SimpleNamespace(id=number)


class FakeCupy:
    __version__, uint8, ndarray = "13.4.1", "uint8", Array

    def __init__(self, gpu) -> None:
        self.cuda, self.allocated = Cuda(gpu), []

    def empty(self, size, dtype):
        self.allocated.append(size)
        return SimpleNamespace(fill=lambda value: self.cuda.gpu.flush())


class FakeDriver:
    def __init__(self, gpu) -> None:
        self.gpu = gpu

    def block(self, stream):
        assert stream == 0
        return self.gpu.block()

    def give_up_persisting(self):
        return "reset, limit 0"

    def uuid(self, index):
        return f"1111-{index}"


@pytest.fixture
def cupy(gpu) -> FakeCupy:
    return FakeCupy(gpu)


@pytest.fixture
def runtime(gpu, cupy) -> CupyRuntime:
    return CupyRuntime(lookup_spec, lambda: cupy, FakeDriver(gpu))


def test_the_device_with_its_sheet_and_versions(runtime) -> None:
    device = runtime.device()
    assert (device.name, device.arch, device.pci, device.spec.name) == (
        "NVIDIA H200", "sm_90", "0000:1B:00.0", "H200 SXM",
    )  # fmt: skip
    assert dict(device.facts)["framework"] == "cupy 13.4.1"
    assert dict(device.facts)["toolkit"] == "12.8"
    assert lease_name(device) == "1111-0"  # as torch and cuda.core call the card
    assert runtime.availability().version == "13.4.1"


@pytest.mark.parametrize("timer", [EventsTimer, BlockingTimer])
def test_milliseconds_become_nanoseconds(runtime, rules, gpu, timer) -> None:
    samples = timer(rules).measure(lambda: gpu.kernel(100_000), Plan(), runtime)
    assert median(samples.durations) == pytest.approx(100_000)


@pytest.mark.parametrize("percent", [0, 3])
def test_a_graph_is_captured_on_a_stream_of_its_own_and_replayed_on_the_current_one(
    runtime, rules, gpu, percent
) -> None:
    samples = GraphTimer(rules).measure(lambda: gpu.kernel(2_000 + 20 * percent), Plan(), runtime)
    took = median(samples.durations)
    assert took == pytest.approx(2_000 + 20 * percent, rel=0.001)


def test_a_captured_stream_lives_as_long_as_its_replay(runtime, gpu, cupy) -> None:
    streams, make = [], cupy.cuda.Stream

    def made(**options):
        stream = make(**options)
        streams.append(weakref.ref(stream))
        return stream

    cupy.cuda.Stream = made
    replay = runtime.capture(lambda: gpu.kernel(2_000))
    gc.collect()
    assert streams[0]() is not None, "its memory would be lent to the next stream with its address"
    del replay
    gc.collect()
    assert streams[0]() is None


def test_a_cold_graph_rotates_the_buffers_of_its_setup(runtime, rules, gpu) -> None:
    buffers = []

    class Bound:
        def __call__(self) -> None:
            gpu.kernel(50_000)

        def bind(self, made):
            def run() -> None:
                buffers.append(made)
                self()

            return run

    plan = replace(Plan(), cache=Cache.COLD)
    samples = GraphTimer(rules).measure(Bound(), plan, runtime, lambda: SimpleNamespace(nbytes=100_000))
    assert len({id(made) for made in buffers}) * 100_000 > 2 << 20
    assert "calls over 22 buffers" in dict(samples.notes)["graph"]


def test_a_capture_that_fails_is_an_error_and_gives_no_number(runtime, rules, gpu, cupy) -> None:
    cupy.cuda.invalid = True
    with pytest.raises(PerfgateError, match="graph-unsupported"):
        GraphTimer(rules).measure(lambda: gpu.kernel(2_000), Plan(), runtime)
    assert len(cupy.cuda.current) == 1


def test_a_flush_writes_twice_the_cache(runtime, rules, gpu, cupy) -> None:
    plan = replace(Plan(), cache=Cache.COLD)
    samples = EventsTimer(rules).measure(lambda: gpu.kernel(100_000), plan, runtime)
    assert cupy.allocated == [2 << 20] * 2, "for the offset of a pair, and let go of, and for the samples"
    assert gpu.flushes >= 20
    assert "persisting lines reset, limit 0" in dict(samples.notes)["flush"]


def test_each_device_has_its_own_cache_flushed(runtime, cupy, monkeypatch) -> None:
    runtime.flush()
    monkeypatch.setattr(cupy.cuda.runtime, "getDevice", lambda: 1)
    runtime.flush()
    runtime.flush()
    assert cupy.allocated == [2 << 20, 2 << 20]


def test_a_call_on_another_device_than_the_current_one_is_refused_and_a_second_one_is_waited_for(
    runtime, rules, gpu, cupy
) -> None:
    first, second, waits = Array(0), Array(1), []
    cupy.cuda.Device = lambda number: SimpleNamespace(synchronize=lambda: waits.append(number))
    EventsTimer(rules).measure(lambda: (first, gpu.kernel(100_000)), Plan(), runtime)
    assert not waits
    with pytest.raises(PerfgateError, match="timer-unsuited") as refused:
        EventsTimer(rules).measure(lambda: (second, gpu.kernel(100_000)), Plan(), runtime)
    assert "on cuda:1, and the current device is cuda:0" in refused.value.what
    EventsTimer(rules).measure(lambda: (first, second, gpu.kernel(100_000)), Plan(), runtime)
    assert set(waits) == {1}


def test_a_lost_device_is_an_error(runtime, rules, gpu) -> None:
    calls = []

    def call() -> None:
        calls.append(1)
        gpu.lost = len(calls) > 15
        gpu.kernel(100_000)

    with pytest.raises(PerfgateError, match="device-lost"):
        EventsTimer(rules).measure(call, Plan(), runtime)


def test_a_machine_without_a_device_is_a_reason(cupy) -> None:
    cupy.cuda.runtime.getDeviceCount = lambda: 0
    availability = CupyRuntime(load=lambda: cupy).availability()
    assert (availability.usable, "sees no device" in availability.why) == (False, True)


class MemoryHook:
    """``cupy.cuda.MemoryHook``: while it is entered the allocator calls it."""

    entered: list[MemoryHook] = []

    def __enter__(self) -> None:
        self.entered.append(self)

    def __exit__(self, *exception: object) -> None:
        self.entered.pop()


def test_memory_is_what_the_allocator_gives_out_and_takes_back() -> None:
    runtime = SimpleNamespace(deviceSynchronize=lambda: None, CUDARuntimeError=CUDARuntimeError)
    errors = SimpleNamespace(CUDADriverError=CUDARuntimeError)
    cuda = SimpleNamespace(MemoryHook=MemoryHook, runtime=runtime, driver=errors)

    def call() -> None:
        for hook in MemoryHook.entered:
            hook.malloc_postprocess(device_id=0, size=900, mem_size=1024, mem_ptr=1, pmem_id=1)
            hook.free_postprocess(device_id=0, mem_size=1024, mem_ptr=1, pmem_id=1)
            hook.malloc_postprocess(device_id=0, size=500, mem_size=512, mem_ptr=1, pmem_id=1)

    assert CupyRuntime(load=lambda: SimpleNamespace(cuda=cuda)).memory_of(call) == (1024, 2)
    assert not MemoryHook.entered


@pytest.mark.parametrize(
    ("raises", "on_gpu"), [(None, True), (AttributeError("on the host"), False), (RuntimeError("requires grad"), False)]
)
def test_an_array_on_a_gpu_is_one_whose_interface_can_be_read(raises: Exception | None, *, on_gpu: bool) -> None:
    class Tensor:
        @property
        def __cuda_array_interface__(self) -> dict[str, object]:
            if raises is not None:
                raise raises
            return {}

    assert isinstance(Tensor(), CudaArray) is on_gpu
    assert not isinstance([1.0], CudaArray)
