"""Rooflines, and fractions of them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from math import ceil, isclose
from typing import TYPE_CHECKING, NamedTuple

from pytest_perfgate.core.render.words import quantity
from pytest_perfgate.model.device import Basis, Ceilings, Device, DeviceSpec, Roof
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import Dimension, Work, regex, value

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Identity

_BANDS = ((0.8, "excellent"), (0.6, "good"), (0.4, "acceptable"), (0.0, "needs investigation"))


BEYOND = 1.05
"""The largest plausible fraction of a roof; above it the work, the device or the time is wrong."""


@value
class Placement:
    """Work done in a time, compared with a roof; ``None`` where the roof has no figure."""

    flops_rate: float | None
    bandwidth: float | None
    intensity: float | None
    compute: float | None
    """Rate of operations as a fraction of the roof."""
    memory: float | None
    """Bandwidth as a fraction of the roof; ``None`` if the working set fits the last cache."""
    bound: str
    """``compute``, ``memory``, ``cache`` or "" if the roof does not show it."""
    ideal_ns: float | None
    """The least time that the roof allows."""
    untyped: str = ""
    """Why a rate without a stated type is impossible: it is above the peak of every type."""

    @property
    def fraction(self) -> float | None:
        """The fraction of the limiting roof, the speed of light; None if it is impossible."""
        return None if self.impossible else self.claimed

    @property
    def claimed(self) -> float | None:
        """The same fraction as computed, even if it exceeds the hardware's limit."""
        known = [part for part in (self.compute, self.memory) if part is not None]
        return max(known, default=None)

    @property
    def impossible(self) -> str:
        """Why this is impossible; "" if it is not."""
        if self.untyped:
            return self.untyped
        sides = (
            (self.compute or 0.0, "compute", "the peak of its type", self.flops_rate or 0.0, Dimension.FLOPS),
            (self.memory or 0.0, "memory", "the bandwidth", self.bandwidth or 0.0, Dimension.BANDWIDTH),
        )
        part, words, peak, rate, unit = max(sides, key=lambda one: one[0])
        if part <= BEYOND:
            return ""
        of = f"{quantity(rate, unit)} of {quantity(rate / part, unit, noun=getattr(rate, 'noun', ''))}"
        reached = f"{words} {part * 100:,.1f} % of its roof ({of})"
        return f"{reached} is more than the hardware can do: {peak} or the work is wrong"


def place(work: Work, time_ns: float, roof: Roof) -> Placement:
    """Compare work done in ``time_ns`` with a roof."""
    from pytest_perfgate.core.analysis.work import typed_rate

    rate = work.flops / time_ns * 1e9 if work.flops is not None and time_ns > 0 else None
    moved = work.bytes / time_ns * 1e9 if work.bytes is not None and time_ns > 0 else None
    peak, bandwidth = roof.rate(work.dtype), roof.bandwidth
    compute = rate / peak if rate is not None and peak else None
    memory = moved / bandwidth if moved is not None and bandwidth and not fits_cache(work, roof) else None
    return Placement(
        flops_rate=typed_rate(rate, work.dtype),
        bandwidth=moved,
        intensity=work.intensity,
        compute=compute,
        memory=memory,
        bound=bound(work, roof),
        ideal_ns=ideal_ns(work, roof),
        untyped="" if work.dtype or rate is None else above_every_peak(rate, roof),
    )


def above_every_peak(rate: float, roof: Roof) -> str:
    """Return why no type of this device can do so many operations a second; "" if one may."""
    dtype, most = max(roof.compute, key=lambda pair: pair[1], default=("", math.inf))
    if rate <= BEYOND * most:
        return ""
    excess = f"{quantity(rate, Dimension.FLOPS)} is more than the hardware can do"
    peak = f"its highest peak is {_peak_text(most, dtype)} ({dtype})"
    return f"{excess}: {peak}, so the work, its time or the device is wrong"


def _peak_text(peak: float | None, dtype: str) -> str:
    from pytest_perfgate.core.analysis.work import typed_rate

    return quantity(typed_rate(peak, dtype), Dimension.FLOPS)


def ideal_ns(work: Work, roof: Roof) -> float | None:
    """Return the least time that a roof allows for this work."""
    peak, bandwidth = roof.rate(work.dtype), roof.bandwidth
    times = [work.flops / peak * 1e9] if work.flops and peak else []
    times += [work.bytes / bandwidth * 1e9] if work.bytes and bandwidth and not fits_cache(work, roof) else []
    return max(times, default=None)


def bound(work: Work, roof: Roof) -> str:
    peak, bandwidth = roof.rate(work.dtype), roof.bandwidth
    if work.flops and peak and work.bytes and bandwidth:
        if work.flops / peak >= work.bytes / bandwidth:
            return "compute"
        return "cache" if fits_cache(work, roof) else "memory"
    if not work.flops and work.bytes and bandwidth:
        return "cache" if fits_cache(work, roof) else "memory"
    return "compute" if work.flops and peak and not work.bytes else ""


def fits_cache(work: Work, roof: Roof) -> bool:
    """Return whether the working set stays in the last cache, so that the memory roof does not apply."""
    touched = work.working_set if work.working_set is not None else work.bytes
    return bool(roof.cache_bytes and touched is not None and touched <= roof.cache_bytes)


def ridge(roof: Roof, dtype: str) -> float | None:
    """Return the intensity at which both roofs limit."""
    peak = roof.rate(dtype)
    return peak / roof.bandwidth if peak and roof.bandwidth else None


def band(fraction: float) -> str:
    """Return the word for an efficiency."""
    return next(word for floor, word in _BANDS if fraction >= floor)


_SLICES = 8
"""The memory of a partitioned GPU is assigned in eighths."""


def roofs(device: Device, clocks_hz: Sequence[float] = (), ceilings: Ceilings | None = None) -> tuple[Roof, ...]:
    """Return every known roof; one without data is left out, never guessed."""
    rooflines = []
    if device.spec is not None:
        rooflines = [datasheet_roof(device, device.spec)]
        if clocks_hz:
            from statistics import median

            rooflines.insert(0, clock_roof(device, device.spec, median(clocks_hz)))
    return (*rooflines, ceiling_roof(device, ceilings)) if ceilings else tuple(rooflines)


def clock_roof(device: Device, spec: DeviceSpec, hertz: float) -> Roof:
    """Return multiprocessors x operations per clock of one x the measured clock."""
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
    """Return the data sheet's dense rates; a part of a GPU has its part of them."""
    share = _share(device, spec)
    return Roof(
        basis=Basis.DATASHEET,
        compute=tuple((p.dtype, share * p.datasheet) for p in spec.peaks if p.datasheet is not None),
        bandwidth=_bandwidth(device, spec),
        cache_bytes=_cache(device, spec),
        note=_note(device, spec),
    )


def ceiling_roof(device: Device, ceilings: Ceilings) -> Roof:
    return Roof(
        basis=Basis.CEILING,
        compute=ceilings.compute,
        bandwidth=ceilings.bandwidth,
        cache_bytes=device.cache_bytes or ceilings.cache_bytes,
        clock_hz=ceilings.clock_hz,
        note=f"measured {ceilings.when} by {ceilings.method}",
    )


def _share(device: Device, spec: DeviceSpec) -> float:
    """Return this device's part of the multiprocessors; another count means another product or a partition."""
    here, whole = device.multiprocessors, spec.multiprocessors
    return 1.0 if not here or not whole or isclose(here, whole) else here / whole


def _bandwidth(device: Device, spec: DeviceSpec) -> float | None:
    if spec.bandwidth is None or not partitioned(device):
        return spec.bandwidth
    if not device.memory_bytes or not spec.memory_bytes:
        return None
    return spec.bandwidth * min(1.0, ceil(_SLICES * device.memory_bytes / spec.memory_bytes) / _SLICES)


def _cache(device: Device, spec: DeviceSpec) -> float | None:
    """Return the last cache: one behind the L2 takes precedence over the driver's L2."""
    known = [size for size in (device.cache_bytes, spec.cache_bytes or spec.l2_bytes) if size]
    return max(known, default=None)


def partitioned(device: Device) -> bool:
    """Return whether this is a MIG instance."""
    return " MIG " in f"{device.name} " or device.uuid.startswith("MIG-")


def _note(device: Device, spec: DeviceSpec) -> str:
    share = _share(device, spec)
    part = f"{device.multiprocessors} of {spec.multiprocessors} multiprocessors; " if share != 1.0 else ""
    return f"{part}{spec.source} (confidence: {spec.confidence or 'unstated'})"


COLD = "cold"

_KNOWN = {Basis.CLOCK: Basis.CLOCK.value, Basis.DATASHEET: Basis.DATASHEET.value, Basis.CEILING: "measured ceiling"}


class Fraction(NamedTuple):
    """The least nanoseconds that a roof needs, or why it does not apply."""

    roof: str
    least_ns: float | None = None
    why: str = ""
    fix: str = ""


def of_compute(work: Work, roof: Roof) -> Fraction:
    """Return the time of the work's operations at the peak of its dtype."""
    if not work.flops:
        return Fraction(roof="compute", why="the work counts no operations", fix="pass work= with flops")
    rate = roof.rate(work.dtype)
    if not rate:
        return _without_rate(work.dtype or "a work without dtype", roof)
    return Fraction(roof="compute", least_ns=work.flops / rate * 1e9)


IN_CACHE = "not applicable: fits in the cache"
"""Why memory does not limit a call whose data stays in the cache."""


def of_memory(work: Work, roof: Roof, device: Device, identity: Identity) -> Fraction:
    """Return the time of moving the bytes at the memory's bandwidth, if they come from memory."""
    if not work.bytes:
        return Fraction(roof="memory", why="the work counts no bytes", fix="pass work= with bytes")
    if not roof.bandwidth:
        return Fraction(roof="memory", why=f"there is no {_KNOWN[roof.basis]} for memory", fix=_fix(roof))
    cache = roof.cache_bytes or device.cache_bytes
    if not identity.cache.startswith(COLD):
        if not cache:
            return Fraction(roof="memory", why="warm cache of unknown size", fix="measure with cache='cold'")
        if (work.working_set or work.bytes) <= cache:
            return Fraction(roof="memory", why=IN_CACHE, fix="measure with cache='cold'")
    return Fraction(roof="memory", least_ns=work.bytes / roof.bandwidth * 1e9)


def _without_rate(dtype: str, roof: Roof) -> Fraction:
    """Return that a dtype's peak is unknown; measuring ceilings again would not measure it."""
    known = ", ".join(name for name, _ in roof.compute)
    why = f"there is no {_KNOWN[roof.basis]} for {dtype}"
    if known and roof.basis is Basis.CEILING:
        fix = "`perfgate ceilings` measures no other: count the work in one of these dtypes, or limit tflops or time"
        return Fraction(roof="compute", why=f"{why}: those of this device are for {known}", fix=fix)
    return Fraction(roof="compute", why=f"{why} (known: {known})" if known else why, fix=_fix(roof))


def _fix(roof: Roof) -> str:
    return "perfgate ceilings" if roof.basis is Basis.CEILING else "add the rate to the device in [tool.perfgate]"


def roof_of(device: Device, tail: str) -> tuple[Roof | None, str]:
    """Return the roof that a metric's name selects, and the text for a host without it."""
    if tail == "_datasheet":
        return device.roof(Basis.DATASHEET), ""
    if tail == "_ceiling":
        return device.roof(Basis.CEILING), ""
    if device.kind == "gpu":
        return device.roof(Basis.CLOCK), ""
    return device.roof(Basis.CEILING), "of the measured ceiling: a host has no other roof"


def no_roof(device: Device, tail: str) -> tuple[str, str]:
    """Return why a roof is missing, and how to get it."""
    if tail == "_datasheet":
        return f"no data sheet for {device.name}", "add the device to [tool.perfgate]"
    if tail == "_ceiling" or device.kind != "gpu":
        return "the ceilings of this device were never measured", "perfgate ceilings"
    return "the clock that ran is not known", "use mfu_ceiling, or let perfgate observe the clocks"


_NUMBER = r"^([0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?)\s*([TGPM]?)"

_FLOPS = regex(_NUMBER + r"(?:FLOPS|FLOP/s|OPS)$", re.IGNORECASE)

_BYTES = regex(_NUMBER + r"B/s$", re.IGNORECASE)

GIVEN = "peaks as given"
"""The note of a roof that the user gave."""

_SCALE = {"": 1.0, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


def given_roof(peak: str, bandwidth: str, sheet: Roof | None, code: str = "trace-option") -> Roof | None:
    """Return a roof from ``bf16=708TFLOPS,fp32=163TFLOPS`` and ``5.3TB/s``, and the sheet for the one left out."""
    from pytest_perfgate.core.analysis.work import dtype_name

    if not peak and not bandwidth:
        return sheet
    compute = []
    for part in filter(None, (p.strip() for p in peak.split(","))):
        dtype, _, rate = part.partition("=")
        try:
            compute.append((dtype_name(dtype), _rate(rate, _FLOPS, "708TFLOPS", code)))
        except ValueError as odd:
            raise PerfgateError(code, f"peak {part!r}: {odd}", fix="write bf16=708TFLOPS") from odd
    rest = sheet or Roof(basis=Basis.DATASHEET)
    speed = _rate(bandwidth, _BYTES, "5.3TB/s", code) if bandwidth else rest.bandwidth
    note = GIVEN
    if sheet and not (peak and bandwidth):
        note = f"{GIVEN}, {'bandwidth' if peak else 'compute'}: {rest.note}"
    return replace(rest, compute=tuple(compute) or rest.compute, bandwidth=speed, note=note)


def _rate(text: str, form: re.Pattern[str], example: str, code: str) -> float:
    """Return a rate with its unit; a number without one is refused, since its unit is unclear."""
    match = form.match(text.strip())
    rate = float(match.group(1)) * _SCALE[match.group(2).upper()] if match else 0.0
    if not 0 < rate < math.inf:
        raise PerfgateError(code, f"{text!r} is not a rate", fix=f"write it with its unit: {example}")
    return rate


def rated(spec: DeviceSpec, roof: Roof, rates: str, code: str) -> Roof:
    """Return a data sheet's roof with the requested rates; raise if the device has no achievable ones."""
    if rates not in RATES:
        raise PerfgateError(code, f"rates={rates!r}", fix=" or ".join(RATES))
    if rates == RATES[0]:
        reached = ", ".join(f"{p.dtype} {_peak_text(p.datasheet, p.dtype)}" for p in spec.achievable if p.datasheet)
        return replace(roof, note=f"{roof.note}; achievable: {reached} (--set rates=achievable)") if reached else roof
    if not spec.achievable:
        what = f"the catalogue has no achievable rates of {spec.name}"
        raise PerfgateError(code, what, fix="rates=datasheet, or give them: --peak bf16=708TFLOPS --bandwidth 5.3TB/s")
    return replace(roof, compute=tuple((p.dtype, p.datasheet) for p in spec.achievable if p.datasheet))


def sheet_roof(spec: DeviceSpec, rates: str) -> Roof:
    """Return the data sheet's roof, or its achievable rates, which have a column of their own."""
    roof = Roof(
        basis=Basis.DATASHEET,
        compute=tuple((p.dtype, p.datasheet) for p in spec.peaks if p.datasheet),
        bandwidth=spec.bandwidth,
        cache_bytes=None,
        note=f"{spec.name}, {rates} rates",
    )
    return rated(spec, roof, rates, "trace-option")


RATES = ("datasheet", "achievable")
"""Columns of the catalogue that may be the roof."""


_ITEMS = regex(r"\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(\S*)\s*")


def parse_items(text: str, code: str = "kernel-option") -> tuple[float | None, str]:
    """Parse the items of throughput, such as ``8192 tokens``; None and "" for an empty text."""
    if not text:
        return None, "items"
    match = _ITEMS.fullmatch(text)
    if match is None or not float(match[1]) > 0:
        raise PerfgateError(code, f"items={text} cannot be read", fix="items='8192 tokens'")
    return float(match[1]), match[2] or "items"
