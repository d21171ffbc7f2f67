"""Devices, rates and roofs; what a runtime, an event, clocks or an inspector may offer beyond its port."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Plan
    from pytest_perfgate.model.verdict import Posting


@value
class SmLimits:
    """What one multiprocessor can hold, with the units in which it hands things out."""

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
    """The dense rate of one dtype: as printed, and per clock and multiprocessor."""

    dtype: str
    datasheet: float | None
    """FLOP/s as the data sheet prints it, dense."""
    per_clock_per_sm: float | None
    implied_hz: float | None
    """The clock at which the printed figure holds."""


@value
class DeviceSpec:
    """A line of the catalogue."""

    name: str
    pattern: str
    arch: str
    """``sm_90`` or ``gfx942``; empty for a host."""
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
    """The last cache, where one lies behind the L2."""
    lock_hz: float | None = None
    """The SM clock that the card holds under any load: what locking asks for."""

    def peak(self, dtype: str) -> Peak | None:
        return next((p for p in self.peaks if p.dtype == dtype), None)


class Basis(str, enum.Enum):
    """Which denominator a roof is: three names, three metrics."""

    CLOCK = "peak at the clock that ran"
    DATASHEET = "datasheet peak"
    CEILING = "this device's measured ceiling"


@value
class Roof:
    """Rates to hold a measurement against, all of one basis."""

    basis: Basis
    compute: tuple[tuple[str, float], ...] = ()
    """(dtype, FLOP/s) pairs."""
    bandwidth: float | None = None
    cache_bytes: float | None = None
    """Size of the last cache: a smaller working set never touches the memory roof."""
    clock_hz: float | None = None
    note: str = ""

    def rate(self, dtype: str) -> float | None:
        return next((rate for name, rate in self.compute if name == dtype), None)


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
    """Whether an instrument works here, and in one sentence why not."""

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
    """Bytes per second of a copy larger than the last cache: what it read plus what it wrote."""
    cache_bytes: float | None = None
    clock_hz: float | None = None
    method: str = ""
    when: str = ""
    """ISO date."""
    facts: tuple[tuple[str, str], ...] = ()
    """Threads, library, sizes: what the figures rest on."""


@runtime_checkable
class SupportsWait(Protocol):
    """A runtime whose device works beside the host, which can wait for one of its events."""

    def wait(self, event: Any) -> None:
        """Return when the device has passed this event; other queues may still be busy."""


@runtime_checkable
class SupportsRelease(Protocol):
    """A runtime that can let go of the memory that flushing took."""

    def release(self) -> None: ...


@runtime_checkable
class SupportsTouches(Protocol):
    """A runtime that can tell whether a call works with its library; one that cannot is believed."""

    def touches(self, call: Any) -> bool: ...


@runtime_checkable
class SupportsAdopt(Protocol):
    """A runtime that times on the queue that a call uses."""

    def adopt(self, call: Any) -> None: ...


@runtime_checkable
class SupportsOwnQueue(Protocol):
    """A runtime that can make a queue where no call has brought one."""

    def own_queue(self) -> None: ...


@runtime_checkable
class SupportsClock(Protocol):
    """A runtime with a clock of its own, such as a simulated one: nanoseconds, ever increasing."""

    def clock(self) -> int: ...


@runtime_checkable
class SupportsCuda(Protocol):
    """A runtime that says whether its device is driven by CUDA: then CUPTI can time it."""

    @property
    def cuda(self) -> bool: ...


@runtime_checkable
class SupportsLook(Protocol):
    """An event that hands out its library's own way to read a pair, in milliseconds."""

    def look(self, earlier: Any) -> tuple[Callable[[Any], float], Any]:
        """A function and what to call it with, looked up before the pair is read."""


@runtime_checkable
class SupportsBind(Protocol):
    """A call that takes the arrays that its set-up returns, so that it can be bound to several sets of them."""

    def bind(self, given: Any) -> Callable[[], Any]: ...


@runtime_checkable
class SupportsMemory(Protocol):
    """A runtime whose library counts what it gives out of the device's memory."""

    def memory_of(self, call: Callable[[], object]) -> tuple[int, int]:
        """Bytes that a call holds at the most beyond what stood before it, and how often it asks for memory."""


@runtime_checkable
class SupportsSettled(Protocol):
    """Clocks that decide before the first sample whether they can be locked where a plan wants to try."""

    def settled(self, device: Device, plan: Plan) -> tuple[Plan, str]:
        """The plan as it will be measured, and why the clocks are only observed."""


@runtime_checkable
class SupportsTellWaits(Protocol):
    """Clocks that may wait, such as for a hot device, and say so."""

    def tell_waits(self, tell: Callable[[str], None] | None) -> None: ...


@runtime_checkable
class SupportsKernels(Protocol):
    """A profiler that can be told to collect some kernels only."""

    def only(self, kernel: str, launches: int = 0) -> Any:
        """The same profiler for kernels whose name holds this, and for so many launches of them; 0 is all."""


@runtime_checkable
class SupportsPosting(Protocol):
    """A delivery that posts where people discuss a change."""

    def posting(self, how: Posting) -> Any:
        """The same delivery that posts as it is told: under a key, changes only, or nothing at all."""


@runtime_checkable
class SupportsOperators(Protocol):
    """An inspector that counts the work of operators, the user's own among them."""

    operators: Mapping[str, Any]


@runtime_checkable
class SupportsInputs(Protocol):
    """A ``check=`` that wants to know what the call is given."""

    def on_inputs(self, inputs: Callable[[], tuple[Any, ...]]) -> Callable[[Any], Any]:
        """The check of a call with these inputs, made when it asks for them."""
