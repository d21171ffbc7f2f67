"""CuPy on CUDA."""

from __future__ import annotations

from collections.abc import Callable
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
from pytest_perfgate.adapters.runtimes.host import Lookup, answering, cache_note, described, eviction_bytes, no_lookup
from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from pytest_perfgate.model.ports import Call


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
        """By device: a flush is of the one that is current."""
        self._persisting = ""

    def availability(self) -> Availability:
        return probe_availability(self.name, self._version, also=self._errors, mend="pip install cupy-cuda13x")

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
        """An array or CuPy itself within reach of the call."""
        arrays = reachable_objects(call, (self._load().ndarray, ModuleType))
        return any(not isinstance(thing, ModuleType) or thing.__name__.split(".")[0] == "cupy" for thing in arrays)

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

    def wait(self, event: CupyEvent) -> None:
        with answering(self.name, self._errors):
            event.inner.synchronize()

    def event(self) -> CupyEvent:
        return CupyEvent(self._load().cuda)

    def capture(self, call: Call) -> Call:
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
        return lambda: graph.launch(self._load().cuda.get_current_stream())

    def flush(self) -> None:
        cupy = self._load()
        at = int(cupy.cuda.runtime.getDevice())
        if at not in self._evictors:
            self._evictors[at] = cupy.empty(eviction_bytes(self.device(at)), dtype=cupy.uint8)
        self._persisting = self._driver.give_up_persisting()
        self._evictors[at].fill(0)

    def memory_of(self, call: Call) -> tuple[int, int]:
        """By a hook of CuPy's allocator: what arrays hold, not what its pool keeps."""
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
    """A hook that sums up what is given out and taken back."""

    class Sum(cupy.cuda.MemoryHook):  # type: ignore[misc]
        name = "perfgate"
        held = peak = count = 0

        def malloc_postprocess(self, **given: Any) -> None:
            self.count += 1
            self.held += int(given["mem_size"])
            self.peak = max(self.peak, self.held)

        def free_postprocess(self, **given: Any) -> None:
            self.held -= int(given["mem_size"])

    return Sum()


def _dotted(number: int) -> str:
    """``13.1`` for the runtime's 13010."""
    return f"{number // 1000}.{number % 1000 // 10}"
