"""PyTorch on CUDA and ROCm."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pytest_perfgate.adapters.bindings.border import (
    probe_availability,
    quiet_import,
    reachable_objects,
    sentence,
    with_warning,
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

_OWN = {"torch", "triton"}


class TorchEvent:
    """A torch event on one stream, called below torch's own layer, which looks the stream up at every call."""

    __slots__ = ("inner", "record")

    def __init__(self, inner: Any, stream: Any) -> None:
        self.inner = inner
        self.record: Callable[[], None] = partial(_original_method(inner, "record"), stream)

    def look(self, earlier: TorchEvent) -> tuple[Callable[[Any], float], Any]:
        """Return the function that reads milliseconds since an earlier event, and its argument."""
        return _original_method(earlier.inner, "elapsed_time"), self.inner

    def since(self, earlier: TorchEvent) -> float:
        elapsed, later = self.look(earlier)
        return float(elapsed(later)) * 1e6


def _original_method(inner: Any, name: str) -> Any:
    """Return the method that torch's own method of this name calls."""
    return getattr(super(type(inner), inner), name, None) or getattr(inner, name)


def _built_without_gpu() -> str:
    """Return the version of a torch built for the processor alone, from its files: the import takes seconds."""
    spec = None if "torch" in sys.modules else find_spec("torch")
    try:
        facts = run_path(str(Path(spec.origin).with_name("version.py"))) if spec and spec.origin else {}
        gpu = facts["cuda"] or facts["hip"]
    except Exception:  # noqa: BLE001 - whatever the file holds, the import decides
        return ""
    return "" if gpu else str(facts["__version__"])


def _facts() -> tuple[tuple[str, str], ...]:
    torch = import_module("torch")
    toolkit = torch.version.cuda or torch.version.hip or "none"
    return (("framework", f"torch {torch.__version__}"), ("toolkit", str(toolkit)))


class TorchRuntime:
    """The current stream of torch's current device."""

    name = "torch"

    def __init__(self, lookup: Lookup = no_lookup, backend: Any = None, driver: CudaDriver | None = None) -> None:
        self._lookup = lookup
        self._backend = backend
        self._driver = driver or CudaDriver()
        self._evictors: dict[int, Any] = {}
        """By device, since a flush acts on the current one."""
        self._others: tuple[int, ...] = ()
        """GPUs of the call besides the current one."""
        self._persisting = ""
        self._warned = ""
        """Torch's warning about an unsuitable driver, which it issues once a process."""

    @property
    def _cuda(self) -> Any:
        if self._backend is None:
            self._backend = quiet_import("torch").cuda
        return self._backend

    @property
    def cuda(self) -> bool:
        """Return whether NVIDIA's instruments apply."""
        return getattr(import_module("torch").version, "hip", None) is None

    def availability(self) -> Availability:
        return probe_availability(self.name, self._version, fix="install a build of torch for your GPU")

    def _version(self) -> str:
        if self._backend is None and (version := _built_without_gpu()):
            raise RuntimeError(f"torch {version} has no GPU support")
        torch = import_module("torch")
        usable, warned = with_warning(self._cuda.is_available)
        self._warned = warned or self._warned
        if not usable:
            built = torch.version.cuda or torch.version.hip
            why = f"torch {torch.__version__} sees no GPU" if built else f"torch {torch.__version__} has no GPU support"
            raise RuntimeError(f"{why}: {self._warned}" if self._warned else why)
        return str(torch.__version__)

    def recognises(self, module_names: frozenset[str]) -> bool:
        """Return whether torch is loaded and has used a GPU; torch on the CPU belongs to the host."""
        torch = sys.modules.get("torch")
        return "torch" in module_names and torch is not None and bool(torch.cuda.is_initialized())

    def touches(self, call: Any) -> bool:
        """Return whether the call reaches a tensor, a module of layers, torch itself or Triton."""
        torch = import_module("torch")
        arrays = reachable_objects(call, (torch.Tensor, torch.nn.Module, ModuleType))
        return any(not isinstance(thing, ModuleType) or thing.__name__.split(".")[0] in _OWN for thing in arrays)

    def adopt(self, call: Any) -> None:
        """Wait for every GPU of the call from now on; a flush may reach memory that it left on another one."""
        if getattr(call, "__self__", None) is not self and (numbers := _gpus_of(call)):
            self._others = others_than(self._cuda.current_device(), numbers, "torch.cuda.set_device")

    def device(self, index: int = -1) -> Device:
        at = self._cuda.current_device() if index < 0 else index
        card = self._cuda.get_device_properties(at)
        arch = f"sm_{card.major}{card.minor}" if self.cuda else getattr(card, "gcnArchName", "").partition(":")[0]
        return described(
            Device(
                key="",
                name=card.name,
                kind="gpu",
                index=at,
                uuid=(self.cuda and self._driver.uuid(at)) or str(getattr(card, "uuid", "")),  # of a MIG instance too
                pci=_pci_of(card),
                arch=arch,
                memory_bytes=float(card.total_memory),
                cache_bytes=float(getattr(card, "L2_cache_size", 0)) or None,
                multiprocessors=int(card.multi_processor_count),
                facts=_facts(),
            ),
            self._lookup,
        )

    def synchronize(self) -> None:
        with answering(self.name):
            self._cuda.synchronize()
            for number in self._others:
                self._cuda.synchronize(number)

    def wait(self, event: TorchEvent) -> None:
        with answering(self.name):
            event.inner.synchronize()

    def event(self) -> TorchEvent:
        event = TorchEvent(self._cuda.Event(enable_timing=True), self._cuda.current_stream())
        event.record()  # torch creates the device's event at the first record, which must not be a timed one
        return event

    def capture(self, call: Call) -> Call:
        """Capture the call on a stream of torch's own; the graph's memory lives as long as the replay."""
        graph, before = self._cuda.CUDAGraph(), self._cuda.current_stream()
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*CUDA Graph is empty")  # true for a trial without work
                with self._cuda.graph(graph):
                    call()
        except BaseException as error:
            self._cuda.set_stream(before)  # if ending the capture raises, torch stays on its stream
            if not isinstance(error, RuntimeError):
                raise
            raise PerfgateError("graph-unsupported", sentence(error)) from error
        replay: Call = graph.replay
        return replay

    def flush(self) -> None:
        at = self._cuda.current_device()
        if at not in self._evictors:
            torch, size = import_module("torch"), eviction_bytes(self.device(at))
            where = f"cuda:{at}" if self._backend is torch.cuda else "cpu"
            self._evictors[at] = torch.empty(size, dtype=torch.uint8, device=where)
        if self.cuda:
            self._persisting = self._driver.give_up_persisting()
        self._evictors[at].zero_()

    def spin(self) -> None:
        wait = getattr(self._cuda, "_sleep", None)  # only of CUDA and ROCm
        self.flush() if wait is None else wait(_SPIN_CYCLES)

    def memory_of(self, call: Call) -> tuple[int, int]:
        """Return allocated memory by torch's counters, without what its cache has reserved."""
        self.synchronize()
        self._cuda.reset_peak_memory_stats()
        before = self._cuda.memory_stats()
        result = call()
        self.synchronize()
        after = self._cuda.memory_stats()
        del result
        peak = after.get("allocated_bytes.all.peak", 0) - before.get("allocated_bytes.all.current", 0)
        allocations = after.get("allocation.all.allocated", 0) - before.get("allocation.all.allocated", 0)
        return int(peak), int(allocations)

    def release(self) -> None:
        self._evictors.clear()

    def block(self) -> Callable[[], None]:
        if not self.cuda:
            raise PerfgateError("block-unsupported", "streams of ROCm cannot be delayed yet")
        return self._driver.block(int(self._cuda.current_stream().cuda_stream))

    def notes(self) -> tuple[tuple[str, str], ...]:
        precision = _precision(import_module("torch"))
        flushed = cache_note(self.device(), self._persisting) if self._evictors else ()
        return (("float32 products", precision), *flushed, *tunings())


def _pci_of(card: Any) -> str:
    """Return the bus address; "" of a torch that does not report it."""
    numbers: list[Any] = [getattr(card, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
    return "" if None in numbers else "{:08X}:{:02X}:{:02X}.0".format(*numbers)


def _gpus_of(call: Any) -> set[int]:
    """Return the numbers of the GPUs with tensors within reach of a call, a module's own at once: it may have many."""
    torch, places = import_module("torch"), set[Any]()
    for thing in reachable_objects(call, (torch.Tensor, torch.nn.Module)):
        tensors = (*thing.parameters(), *thing.buffers()) if isinstance(thing, torch.nn.Module) else (thing,)
        places.update(tensor.device for tensor in tensors)
    return {place.index for place in places if place.type == "cuda"}


_SPIN_CYCLES = 100_000

_TUNERS = (("triton.runtime.autotuner", "Autotuner"), ("torch._inductor.runtime.triton_heuristics", "CachingAutotuner"))
"""Modules and classes of autotuners, which try configurations of a kernel and keep the fastest."""


def tunings() -> tuple[tuple[str, str], ...]:
    """Return the last configuration of each tuned kernel of this process, by ``tuning KERNEL``."""
    modules = ((sys.modules.get(module), name) for module, name in _TUNERS)
    tuners = tuple(kind for module, name in modules if (kind := getattr(module, name, None)) is not None)
    if not tuners:
        return ()
    gc.unfreeze()  # a fork's parent froze all that it had imported, and what is frozen is not listed
    chosen = {_tuned(one) for one in gc.get_objects() if issubclass(type(one), tuners)}
    return tuple((f"tuning {kernel}", choice) for kernel, choice in sorted(chosen) if choice)


def _tuned(tuner: Any) -> tuple[str, str]:
    """Return the kernel's name and its configuration; "" before it ran."""
    launchers: list[Any] = getattr(tuner, "launchers", None) or []
    chosen = getattr(tuner, "best_config", None) or (getattr(launchers[0], "config", "") if len(launchers) == 1 else "")
    kernel = getattr(tuner, "base_fn", None) or getattr(tuner, "fn", None)  # of one that is being made, neither
    return str(getattr(kernel, "__name__", "")) or type(kernel).__name__, str(chosen)


def _precision(torch: Any) -> str:
    """Return the precision of float32 products, by the older switch, or the newer one if only that was used."""
    try:
        return str(torch.get_float32_matmul_precision())
    except RuntimeError:
        return str(torch.backends.cuda.matmul.fp32_precision)
