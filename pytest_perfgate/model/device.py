"""Devices, rates, rooflines' ceilings."""

from __future__ import annotations

import enum

from pytest_perfgate.model.values import value


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
    mend: str = ""
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
