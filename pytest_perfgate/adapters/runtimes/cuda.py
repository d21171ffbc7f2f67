"""CUDA without torch: NVIDIA's cuda.core, on the stream of the test's function; and CuPy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pytest_perfgate.adapters.bindings.border import (
    faults,
    probe_availability,
    quiet_import,
    reachable_objects,
    sentence,
)
from pytest_perfgate.adapters.bindings.cuda_driver import CudaDriver
from pytest_perfgate.adapters.runtimes.host import (
    Lookup,
    answering,
    cache_note,
    described,
    eviction_bytes,
    no_lookup,
    others_than,
)
from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from pytest_perfgate.model.ports import Call


_FAULTS = (
    "cuda.core._utils.cuda_utils",
    "cuda.core.cu13._utils.cuda_utils",
    "cuda.core.cu12._utils.cuda_utils",
)


def cuda_core() -> Any:
    """Return the package; releases before 0.5 have another place, and cannot fill memory to flush caches."""
    module = quiet_import("cuda.core")
    if not hasattr(module, "Device"):
        raise RuntimeError(f"cuda.core {module.__version__} is too old: 0.5 is needed")
    return module


def timed_event(options: Callable[..., Any]) -> Any:
    """Return options of an event with a time; the name of the option changed with version 1."""
    try:
        return options(timing_enabled=True)
    except TypeError:
        return options(enable_timing=True)


class _CudaArrayType(type):
    def __instancecheck__(cls, thing: Any) -> bool:
        name = "__cuda_array_interface__"
        with suppress(Exception):  # a property of any library: torch's raises for a tensor that requires a gradient
            return hasattr(type(thing), name) and hasattr(thing, name)
        return False


class CudaArray(metaclass=_CudaArrayType):
    """An array on a GPU, such as one of Numba, which works on the default stream unless it is given another."""


class CudaCoreEvent:
    """An event on one stream."""

    __slots__ = ("_stream", "inner")

    def __init__(self, inner: Any, stream: Any) -> None:
        self.inner = inner
        self._stream = stream

    def record(self) -> None:
        self._stream.record(self.inner)

    def since(self, earlier: CudaCoreEvent) -> float:
        return float(self.inner - earlier.inner) * 1e6


class CudaCoreRuntime:
    """Times the first stream that a call touches, or the default stream."""

    name = "cuda_core"
    cuda = True

    def __init__(
        self,
        lookup: Lookup = no_lookup,
        load: Callable[[], Any] = lambda: cuda_core(),  # noqa: PLW0108 - defined below
        driver: CudaDriver | None = None,
    ) -> None:
        self._lookup = lookup
        self._load = load
        self._driver = driver or CudaDriver()
        self._own: Any = None
        self._stream: Any = None
        self._evictor: Any = None
        self._persisting = ""

    def availability(self) -> Availability:
        fix = "pip install 'pytest-perfgate[cuda]' (it needs NVIDIA's driver)"
        return probe_availability(self.name, self._version, also=self._errors, fix=fix)

    def _version(self) -> str:
        self._load().Device(0)
        return str(quiet_import("cuda.core").__version__)

    def _errors(self) -> tuple[type[Exception], ...]:
        kinds = [getattr(quiet_import("cuda.core"), "CUDAError", None)]
        for module in _FAULTS:
            try:
                kinds.append(quiet_import(module).CUDAError)
            except (ImportError, AttributeError):  # noqa: PERF203 - the place of this class differs between releases
                continue
        return tuple(error for error in kinds if error is not None)

    def recognises(self, module_names: frozenset[str]) -> bool:
        return "cuda.core" in module_names and not {"torch", "cupy"} & module_names

    @property
    def _device(self) -> Any:
        if self._own is None:
            self._own = self._load().Device()
            self._own.set_current()
        return self._own

    @property
    def _queue(self) -> Any:
        """The adopted stream, else the default one."""
        return self._stream or self._device.default_stream

    def touches(self, call: Any) -> bool:
        """Return whether the call reaches a stream, including those of unsupported releases, or an array on a GPU."""
        kinds: tuple[type[Any], ...]
        try:
            kinds = (self._load().Stream, CudaArray)
        except RuntimeError:
            kinds = (quiet_import("cuda.core.experimental").Stream,)
        return bool(reachable_objects(call, kinds))

    def adopt(self, call: Any) -> None:
        """Use the stream that the call touches, with its device; else the default stream of the current device."""
        streams, current = reachable_objects(call, self._load().Stream), self._load().Device()
        device = streams[0].device if streams else current
        if self._own is None or {self._own.device_id, current.device_id} != {device.device_id}:
            device.set_current()
            self._own, self._evictor = device, None
        self._stream = streams[0] if streams else device.default_stream

    def own_queue(self) -> None:
        """Create a stream of our own, to examine the machine without a test."""
        self._stream = self._device.create_stream()

    def device(self, index: int = -1) -> Device:
        """Return the device, with its UUID for the management library."""
        device = self._device if index < 0 else self._load().Device(index)
        limits = device.properties
        return described(
            Device(
                key="",
                name=device.name,
                kind="gpu",
                index=device.device_id,
                uuid=str(device.uuid),
                arch=f"sm_{device.compute_capability.major}{device.compute_capability.minor}",
                cache_bytes=float(limits.l2_cache_size) or None,
                multiprocessors=int(limits.multiprocessor_count),
                memory_bytes=self._driver.memory(device.device_id),
                facts=(
                    ("framework", f"cuda.core {quiet_import('cuda.core').__version__}"),
                    ("toolkit", str(quiet_import("cuda.bindings").__version__)),
                ),
            ),
            self._lookup,
        )

    def synchronize(self) -> None:
        with answering(self.name, self._errors):
            self._own = self._own or self._device  # makes its context current
            self._driver.synchronize()

    def wait(self, event: CudaCoreEvent) -> None:
        with answering(self.name, self._errors):
            event.inner.sync()

    def event(self) -> CudaCoreEvent:
        return CudaCoreEvent(self._device.create_event(timed_event(self._load().EventOptions)), self._queue)

    def capture(self, call: Call) -> Call:
        """Record what the call launches on its stream, with a graph builder."""
        stream = self._queue
        if stream is self._device.default_stream:
            raise PerfgateError(
                "graph-unsupported", "the call uses no stream of its own, and the default has no graphs"
            )
        try:
            builder = stream.create_graph_builder().begin_building()
            try:
                call()
            finally:
                builder.end_building()
            graph = builder.complete()
        except faults(self._errors) as error:
            raise PerfgateError("graph-unsupported", sentence(error)) from error
        return lambda: graph.launch(stream)

    def flush(self) -> None:
        if self._evictor is None:
            self._evictor = self._device.allocate(eviction_bytes(self.device()), stream=self._queue)
        self._persisting = self._driver.give_up_persisting()
        self._evictor.fill(0, stream=self._queue)

    def release(self) -> None:
        self._evictor = None

    def block(self) -> Callable[[], None]:
        try:
            return self._driver.block(int(self._queue.handle))
        except faults(self._errors) as error:
            raise PerfgateError("block-unsupported", sentence(error)) from error

    def notes(self) -> tuple[tuple[str, str], ...]:
        return cache_note(self.device(), self._persisting) if self._evictor is not None else ()


class CupyEvent:
    """An event on CuPy's current stream."""

    __slots__ = ("_cuda", "inner", "record")

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self.inner = cuda.Event()
        self.record: Callable[[], None] = self.inner.record

    def since(self, earlier: CupyEvent) -> float:
        return float(self._cuda.get_elapsed_time(earlier.inner, self.inner)) * 1e6


class CupyRuntime:
    """The current stream of CuPy's current device."""

    name = "cupy"
    cuda = True

    def __init__(
        self,
        lookup: Lookup = no_lookup,
        load: Callable[[], Any] = lambda: quiet_import("cupy"),
        driver: CudaDriver | None = None,
    ) -> None:
        self._lookup = lookup
        self._load = load
        self._driver = driver or CudaDriver()
        self._evictors: dict[int, Any] = {}
        """By device, since a flush acts on the current one."""
        self._others: tuple[int, ...] = ()
        """GPUs of the call besides the current one."""
        self._persisting = ""

    def availability(self) -> Availability:
        return probe_availability(self.name, self._version, also=self._errors, fix="pip install cupy-cuda13x")

    def _version(self) -> str:
        cupy = self._load()
        if not cupy.cuda.runtime.getDeviceCount():
            raise RuntimeError("CuPy sees no device")
        return str(cupy.__version__)

    def _errors(self) -> tuple[type[Exception], ...]:
        cuda = self._load().cuda
        return (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError)

    def recognises(self, module_names: frozenset[str]) -> bool:
        return "cupy" in module_names and self.availability().usable

    def touches(self, call: Any) -> bool:
        """Return whether the call reaches an array or CuPy itself."""
        arrays = reachable_objects(call, (self._load().ndarray, ModuleType))
        return any(not isinstance(thing, ModuleType) or thing.__name__.split(".")[0] == "cupy" for thing in arrays)

    def adopt(self, call: Any) -> None:
        """Wait for every GPU of the call from now on; a flush may reach memory that it left on another one."""
        arrays = () if getattr(call, "__self__", None) is self else reachable_objects(call, self._load().ndarray)
        if numbers := {int(array.device.id) for array in arrays}:
            current = int(self._load().cuda.runtime.getDevice())
            self._others = others_than(current, numbers, "cupy.cuda.runtime.setDevice")

    def device(self, index: int = -1) -> Device:
        runtime = self._load().cuda.runtime
        at = runtime.getDevice() if index < 0 else index
        properties = runtime.getDeviceProperties(at)
        name = properties["name"].decode() if isinstance(properties["name"], bytes) else str(properties["name"])
        return described(
            Device(
                key="",
                name=name,
                kind="gpu",
                index=at,
                uuid=self._driver.uuid(at),
                pci=runtime.deviceGetPCIBusId(at),
                arch=f"sm_{properties['major']}{properties['minor']}",
                memory_bytes=float(properties["totalGlobalMem"]),
                cache_bytes=float(properties["l2CacheSize"]) or None,
                multiprocessors=int(properties["multiProcessorCount"]),
                facts=(
                    ("framework", f"cupy {self._load().__version__}"),
                    ("toolkit", _dotted(runtime.runtimeGetVersion())),
                ),
            ),
            self._lookup,
        )

    def synchronize(self) -> None:
        with answering(self.name, self._errors):
            self._load().cuda.runtime.deviceSynchronize()
            for number in self._others:
                self._load().cuda.Device(number).synchronize()

    def wait(self, event: CupyEvent) -> None:
        with answering(self.name, self._errors):
            event.inner.synchronize()

    def event(self) -> CupyEvent:
        return CupyEvent(self._load().cuda)

    def capture(self, call: Call) -> Call:
        """Record what the call launches, on a stream that lives as long as the replay.

        The pool lends the memory of its arrays to the next stream with this one's address, and replays write to it.
        """
        stream = self._load().cuda.Stream(non_blocking=True)
        try:
            with stream:
                stream.begin_capture()
                try:
                    call()
                finally:
                    graph = stream.end_capture()
        except faults(self._errors) as error:
            raise PerfgateError("graph-unsupported", sentence(error)) from error
        recording = (graph, stream)
        return lambda: recording[0].launch(self._load().cuda.get_current_stream())

    def flush(self) -> None:
        cupy = self._load()
        at = int(cupy.cuda.runtime.getDevice())
        if at not in self._evictors:
            self._evictors[at] = cupy.empty(eviction_bytes(self.device(at)), dtype=cupy.uint8)
        self._persisting = self._driver.give_up_persisting()
        self._evictors[at].fill(0)

    def memory_of(self, call: Call) -> tuple[int, int]:
        """Return the memory that arrays hold, without the pool's reserve, by a hook of CuPy's allocator."""
        hook = _memory_hook(self._load())
        with hook:
            result = call()
            self.synchronize()
        del result
        return hook.peak, hook.count

    def release(self) -> None:
        self._evictors.clear()

    def block(self) -> Callable[[], None]:
        return self._driver.block(int(self._load().cuda.get_current_stream().ptr))

    def notes(self) -> tuple[tuple[str, str], ...]:
        return cache_note(self.device(), self._persisting) if self._evictors else ()


def _memory_hook(cupy: Any) -> Any:
    """Return a hook that sums up allocations and releases."""

    class Sum(cupy.cuda.MemoryHook):  # type: ignore[misc]
        name = "perfgate"
        live = peak = count = 0

        def malloc_postprocess(self, **event: Any) -> None:
            self.count += 1
            self.live += int(event["mem_size"])
            self.peak = max(self.peak, self.live)

        def free_postprocess(self, **event: Any) -> None:
            self.live -= int(event["mem_size"])

    return Sum()


def _dotted(number: int) -> str:
    """Return ``13.1`` for the runtime's 13010."""
    return f"{number // 1000}.{number % 1000 // 10}"
