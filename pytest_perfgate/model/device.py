"""Devices, rates and roofs, and optional capabilities of runtimes, events, clocks and inspectors."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Plan
    from pytest_perfgate.model.verdict import Posting


@value
class SmLimits:
    """What one multiprocessor can hold, with its allocation units."""

    smem_bytes: int
    smem_block_bytes: int
    registers: int
    warps: int
    blocks: int
    register_unit: int
    warp_granularity: int
    smem_unit: int
    smem_reserved: int


@value
class Peak:
    """The dense rate of one dtype: as printed, and by clock and multiprocessor."""

    dtype: str
    datasheet: float | None
    """FLOP/s as the data sheet prints it, dense."""
    per_clock_per_sm: float | None
    implied_hz: float | None
    """The clock at which the printed figure holds."""


@value
class DeviceSpec:
    """An entry of the catalogue."""

    name: str
    pattern: str
    arch: str
    """``sm_90`` or ``gfx942``; "" for a host."""
    die: str = ""
    multiprocessors: int = 0
    base_hz: float | None = None
    boost_hz: float | None = None
    memory_bytes: float | None = None
    bandwidth: float | None = None
    l2_bytes: float | None = None
    tdp_watts: float | None = None
    sm: SmLimits | None = None
    peaks: tuple[Peak, ...] = ()
    achievable: tuple[Peak, ...] = ()
    source: str = ""
    confidence: str = ""
    note: str = ""
    cache_bytes: float | None = None
    """The last cache, if there is one behind the L2."""
    lock_hz: float | None = None
    """The SM clock that the card holds under any load, to which it is locked."""

    def peak(self, dtype: str) -> Peak | None:
        return next((p for p in self.peaks if p.dtype == dtype), None)


class Basis(str, enum.Enum):
    """The basis of a roof: three names, three metrics."""

    CLOCK = "peak at the clock that ran"
    DATASHEET = "datasheet peak"
    CEILING = "this device's measured ceiling"


@value
class Roof:
    """Rates to compare a measurement with, all of one basis."""

    basis: Basis
    compute: tuple[tuple[str, float], ...] = ()
    """(dtype, FLOP/s) pairs."""
    bandwidth: float | None = None
    cache_bytes: float | None = None
    """Size of the last cache: a smaller working set does not reach the memory roof."""
    clock_hz: float | None = None
    note: str = ""

    def rate(self, dtype: str) -> float | None:
        """Return the rate of products: of matrix units where they have their own, else of the type as a whole."""
        rates = dict(self.compute)
        return next((rates[name] for name in (f"{dtype}_tc", dtype, dtype.partition("_")[0]) if name in rates), None)


@value
class Device:
    """A device of this machine. The key names its folder of baselines."""

    key: str
    """Letters, digits, dots and dashes: ``NVIDIA-H200-observe`` or ``host-epyc-7763-2``."""
    name: str
    kind: str
    """``gpu`` or ``host``."""
    index: int = 0
    uuid: str = ""
    pci: str = ""
    arch: str = ""
    memory_bytes: float | None = None
    cache_bytes: float | None = None
    multiprocessors: int = 0
    spec: DeviceSpec | None = None
    roofs: tuple[Roof, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """Recorded and compared, but not part of the key: driver, toolkit, power limit."""

    def roof(self, basis: Basis) -> Roof | None:
        for roof in self.roofs:
            if roof.basis is basis:
                return roof
        return None


@value
class Availability:
    """Whether an instrument works here, and if not, why, in one sentence."""

    name: str
    usable: bool
    why: str = ""
    fix: str = ""
    version: str = ""


@value
class Ceilings:
    """The best product of each dtype and the best copy on one device."""

    device: str
    """Key of the device."""
    compute: tuple[tuple[str, float], ...] = ()
    """(dtype, FLOP/s) pairs."""
    bandwidth: float | None = None
    """Bytes per second of a copy larger than the last cache, read and written."""
    cache_bytes: float | None = None
    clock_hz: float | None = None
    method: str = ""
    when: str = ""
    """ISO date."""
    facts: tuple[tuple[str, str], ...] = ()
    """Conditions of the figures: threads, library, sizes."""

    def or_higher(self, stored: Ceilings | None) -> Ceilings:
        """Return these rates, or the stored ones of the same device and method that are higher, with a fact on each."""
        if stored is None or (stored.device, stored.method) != (self.device, self.method):
            return self
        compute, facts, bandwidth = dict(self.compute), dict(self.facts), self.bandwidth
        for name, rate in stored.compute:
            if rate > (now := float(f"{compute.get(name, 0.0):.3g}")):  # stored rates have three digits
                compute[name] = rate
                facts[f"{name} of an earlier run"] = f"kept: this run reached {now / 1e9:g} GFLOPS"
        if stored.bandwidth and stored.bandwidth > (now := float(f"{bandwidth or 0.0:.3g}")):
            bandwidth = stored.bandwidth
            facts["copy of an earlier run"] = f"kept: this run reached {now / 1e9:g} GB/s"
        return replace(self, compute=tuple(compute.items()), bandwidth=bandwidth, facts=tuple(facts.items()))


@runtime_checkable
class SupportsWait(Protocol):
    """A runtime whose device works asynchronously, and which can wait for one of its events."""

    def wait(self, event: Any) -> None:
        """Return when the device has passed this event; other queues may still be busy."""


@runtime_checkable
class SupportsRelease(Protocol):
    """A runtime that can release the memory that flushing used."""

    def release(self) -> None: ...


@runtime_checkable
class SupportsSpin(Protocol):
    """A runtime with a kernel that only waits on the device, some 50 us, whatever power and cache do."""

    def spin(self) -> None: ...


@runtime_checkable
class SupportsTouches(Protocol):
    """A runtime that can tell whether a call uses its library; for others, that is assumed."""

    def touches(self, call: Any) -> bool: ...


@runtime_checkable
class SupportsAdopt(Protocol):
    """A runtime that times on the queue that a call uses, and waits for the devices that it uses."""

    def adopt(self, call: Any) -> None: ...


@runtime_checkable
class SupportsOwnQueue(Protocol):
    """A runtime that can create a queue if no call brings one."""

    def own_queue(self) -> None: ...


@runtime_checkable
class SupportsClock(Protocol):
    """A runtime with a clock of its own, such as a simulated one: nanoseconds, ever increasing."""

    def clock(self) -> int: ...


@runtime_checkable
class SupportsCuda(Protocol):
    """A runtime that states whether CUDA drives its device, so that CUPTI can time it."""

    @property
    def cuda(self) -> bool: ...


@runtime_checkable
class SupportsLook(Protocol):
    """An event that returns its library's own function for reading a pair, in milliseconds."""

    def look(self, earlier: Any) -> tuple[Callable[[Any], float], Any]:
        """Return a function and its argument, looked up before the pair is read."""


@runtime_checkable
class SupportsBind(Protocol):
    """A call that takes the arrays of its set-up, so that it can be bound to several sets of them."""

    def bind(self, arguments: Any) -> Callable[[], Any]: ...


@runtime_checkable
class SupportsMemory(Protocol):
    """A runtime whose library counts its allocations of device memory."""

    def memory_of(self, call: Callable[[], object]) -> tuple[int, int]:
        """Return the most bytes that a call holds beyond those before it, and the number of its allocations."""


@runtime_checkable
class SupportsSettled(Protocol):
    """Clocks that decide before the first sample whether they can be locked, if a plan wants to try."""

    def settled(self, device: Device, plan: Plan) -> tuple[Plan, str]:
        """Return the plan with the decision, and why the clocks are only observed."""


@runtime_checkable
class SupportsTellWaits(Protocol):
    """Clocks that may wait, for example for a hot device, and report it."""

    def tell_waits(self, tell: Callable[[str], None] | None) -> None: ...


@runtime_checkable
class SupportsKernels(Protocol):
    """A profiler that can collect only some kernels."""

    def only(self, kernel: str, launches: int = 0) -> Any:
        """Return the profiler for kernels with this in their name, and so many launches of them; 0 is all."""


@runtime_checkable
class SupportsPosting(Protocol):
    """A delivery that posts where people discuss a change."""

    def posting(self, how: Posting) -> Any:
        """Return the delivery with these settings: a key, changes only, or a dry run."""


@runtime_checkable
class SupportsOperators(Protocol):
    """An inspector that counts the work of operators, including the user's own."""

    operators: Mapping[str, Any]


@runtime_checkable
class SupportsInputs(Protocol):
    """A ``check=`` that needs the inputs of the call."""

    def on_inputs(self, inputs: Callable[[], tuple[Any, ...]]) -> Callable[[Any], Any]:
        """Return the check of a call with these inputs, which are made when it needs them."""
