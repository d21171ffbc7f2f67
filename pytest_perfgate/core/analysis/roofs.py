"""Roofs of a device: at the clock that ran, of the data sheet, and as measured."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isclose
from statistics import median

from pytest_perfgate.model.ceilings import Ceilings
from pytest_perfgate.model.device import Basis, Device, DeviceSpec, Roof

_SLICES = 8
"""Memory of a partitioned GPU is handed out in eighths."""


def roofs(device: Device, clocks_hz: Sequence[float] = (), ceilings: Ceilings | None = None) -> tuple[Roof, ...]:
    """Every roof that is known; one without its instrument is left out, never guessed."""
    found = []
    if device.spec is not None:
        found = [datasheet_roof(device, device.spec)]
        if clocks_hz:
            found.insert(0, clock_roof(device, device.spec, median(clocks_hz)))
    return (*found, ceiling_roof(device, ceilings)) if ceilings else tuple(found)


def clock_roof(device: Device, spec: DeviceSpec, hertz: float) -> Roof:
    """Multiprocessors x operations per clock of one x the clock that ran."""
    units = device.multiprocessors or spec.multiprocessors
    compute = tuple((p.dtype, units * p.per_clock_per_sm * hertz) for p in spec.peaks if p.per_clock_per_sm)
    return Roof(
        basis=Basis.CLOCK,
        compute=compute,
        bandwidth=_bandwidth(device, spec),
        cache_bytes=_cache(device, spec),
        clock_hz=hertz,
        note=_note(device, spec),
    )


def datasheet_roof(device: Device, spec: DeviceSpec) -> Roof:
    """What the data sheet prints, dense; a part of a GPU has its part of it."""
    share = _share(device, spec)
    return Roof(
        basis=Basis.DATASHEET,
        compute=tuple((p.dtype, share * p.datasheet) for p in spec.peaks if p.datasheet is not None),
        bandwidth=_bandwidth(device, spec),
        cache_bytes=_cache(device, spec),
        note=_note(device, spec),
    )


def ceiling_roof(device: Device, ceilings: Ceilings) -> Roof:
    """What was measured here."""
    return Roof(
        basis=Basis.CEILING,
        compute=ceilings.compute,
        bandwidth=ceilings.bandwidth,
        cache_bytes=device.cache_bytes or ceilings.cache_bytes,
        clock_hz=ceilings.clock_hz,
        note=f"measured {ceilings.when} by {ceilings.method}",
    )


def _share(device: Device, spec: DeviceSpec) -> float:
    """The part of the multiprocessors that this device has; another count is another product or a partition."""
    here, whole = device.multiprocessors, spec.multiprocessors
    return 1.0 if not here or not whole or isclose(here, whole) else here / whole


def _bandwidth(device: Device, spec: DeviceSpec) -> float | None:
    if spec.bandwidth is None or not partitioned(device):
        return spec.bandwidth
    if not device.memory_bytes or not spec.memory_bytes:
        return None
    return spec.bandwidth * min(1.0, ceil(_SLICES * device.memory_bytes / spec.memory_bytes) / _SLICES)


def _cache(device: Device, spec: DeviceSpec) -> float | None:
    """The last cache: one behind the L2 wins over what a driver reports as L2."""
    known = [size for size in (device.cache_bytes, spec.cache_bytes or spec.l2_bytes) if size]
    return max(known, default=None)


def partitioned(device: Device) -> bool:
    """Whether this is an instance of a GPU cut by MIG."""
    return " MIG " in f"{device.name} " or device.uuid.startswith("MIG-")


def _note(device: Device, spec: DeviceSpec) -> str:
    share = _share(device, spec)
    part = f"{device.multiprocessors} of {spec.multiprocessors} multiprocessors; " if share != 1.0 else ""
    return f"{part}{spec.source} (confidence: {spec.confidence or 'unstated'})"
