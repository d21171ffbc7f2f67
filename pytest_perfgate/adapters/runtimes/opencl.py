"""OpenCL: the queue of the test's function, with the device's own timestamps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pytest_perfgate.adapters.bindings.border import probe_availability, quiet_import, reachable_objects
from pytest_perfgate.adapters.runtimes.host import Lookup, answering, cache_note, described, eviction_bytes, no_lookup
from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from pytest_perfgate.model.ports import Call


class OpenClEvent:
    """A marker in the queue; its end is when everything before it was done."""

    __slots__ = ("_mark", "inner")

    def __init__(self, mark: Callable[[], Any]) -> None:
        self._mark = mark
        self.inner: Any = None

    def record(self) -> None:
        self.inner = self._mark()

    def since(self, earlier: OpenClEvent) -> float:
        return float(self.inner.profile.end - earlier.inner.profile.end)


class OpenClRuntime:
    """Times the first queue that a call touches, and waits for all of them."""

    name = "opencl"

    def __init__(self, lookup: Lookup = no_lookup, load: Callable[[], Any] = lambda: quiet_import("pyopencl")) -> None:
        self._lookup = lookup
        self._load = load
        self._queues: tuple[Any, ...] = ()
        self._evictor: Any = None

    def availability(self) -> Availability:
        fix = "pip install pyopencl, and the vendor's OpenCL driver (on a CPU: apt install pocl-opencl-icd)"
        return probe_availability(self.name, self._version, also=self._errors, fix=fix)

    def _version(self) -> str:
        cl = self._load()
        platforms = [platform for platform in cl.get_platforms() if platform.get_devices()]
        if not platforms:
            raise RuntimeError("no OpenCL platform has a device")
        return ", ".join(f"{platform.name} ({platform.version.strip()})" for platform in platforms)

    def _errors(self) -> tuple[type[Exception], ...]:
        return (self._load().Error,)

    def recognises(self, module_names: frozenset[str]) -> bool:
        return "pyopencl" in module_names

    def touches(self, call: Any) -> bool:
        """Return whether the call reaches a queue."""
        return bool(reachable_objects(call, self._load().CommandQueue))

    def adopt(self, call: Any) -> None:
        """Use the queues that a call touches; one without timestamps is refused."""
        cl = self._load()
        queues = reachable_objects(call, cl.CommandQueue)
        if not queues:
            return
        if not queues[0].properties & cl.command_queue_properties.PROFILING_ENABLE:
            raise PerfgateError(
                "timer-unsuited",
                "the OpenCL queue that the call uses takes no timestamps",
                why="device time is read from the timestamps of the queue",
                fix="make the queue with properties=cl.command_queue_properties.PROFILING_ENABLE",
            )
        if self._queues and queues[0] != self._queues[0]:
            self._evictor = None
        self._queues = queues

    def own_queue(self) -> None:
        """Create a queue of our own on the first device, to examine the machine without a test."""
        cl = self._load()
        device = next(d for platform in cl.get_platforms() for d in platform.get_devices())
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self._queues = (cl.CommandQueue(cl.Context([device]), properties=profiling),)

    @property
    def _queue(self) -> Any:
        if not self._queues:
            raise PerfgateError(
                "timer-unsuited",
                "no OpenCL queue is within reach of the call",
                why="device time is read from the queue that the work runs in",
                fix="keep the queue in a variable that the function uses",
            )
        return self._queues[0]

    def device(self, index: int = 0) -> Device:
        cl = self._load()
        every = [device for platform in cl.get_platforms() for device in platform.get_devices()]
        chosen = self._queues[0].device if self._queues else every[index]
        kind = "gpu" if chosen.type & cl.device_type.GPU else "host"
        return described(
            Device(
                key="",
                name=chosen.name.strip(),
                kind=kind,
                index=every.index(chosen) if chosen in every else index,
                pci=_bus(chosen, cl.Error),
                memory_bytes=float(chosen.global_mem_size),
                cache_bytes=float(chosen.global_mem_cache_size) or None,
                multiprocessors=int(chosen.max_compute_units),
                facts=(("driver", chosen.driver_version), ("toolkit", chosen.version.strip())),
            ),
            self._lookup,
        )

    def synchronize(self) -> None:
        with answering(self.name, self._errors):
            for queue in self._queues:
                queue.finish()

    def wait(self, event: OpenClEvent) -> None:
        with answering(self.name, self._errors):
            event.inner.wait()

    def event(self) -> OpenClEvent:
        mark, queue = self._load().enqueue_marker, self._queue
        return OpenClEvent(lambda: mark(queue))

    def capture(self, call: Call) -> Call:
        del call
        raise PerfgateError("graph-unsupported", "OpenCL has no graphs")

    def flush(self) -> None:
        cl = self._load()
        if self._evictor is None:
            size = eviction_bytes(self.device())
            self._evictor = cl.Buffer(self._queue.context, cl.mem_flags.READ_WRITE, size)
        cl.enqueue_fill_buffer(self._queue, self._evictor, b"\x00", 0, self._evictor.size)

    def release(self) -> None:
        self._evictor = None

    def block(self) -> Callable[[], None]:
        cl = self._load()
        gate = cl.UserEvent(self._queue.context)
        cl.enqueue_barrier(self._queue, wait_for=[gate])
        return lambda: gate.set_status(cl.command_execution_status.COMPLETE)

    def notes(self) -> tuple[tuple[str, str], ...]:
        flushed = cache_note(self.device(), "") if self._evictor is not None else ()
        return (("queues", f"{len(self._queues)} within reach of the call"), *flushed)


def _bus(device: Any, fault: type[Exception]) -> str:
    """Return the PCI address of a card for its management library; "" if the vendor does not report it."""
    try:
        domain, bus, slot = device.pci_domain_id_nv, device.pci_bus_id_nv, device.pci_slot_id_nv
    except (fault, AttributeError):
        return ""
    return f"{domain:08X}:{bus:02X}:{slot >> 3:02X}.{slot & 7}"
