"""A call's work held against a roof: fractions of compute and of memory, and which of them binds."""

from __future__ import annotations

from typing import NamedTuple

from pytest_perfgate.model.device import Basis, Device, Roof
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.work import Work

COLD = "cold"
_KNOWN = {
    Basis.CLOCK: Basis.CLOCK.value,
    Basis.DATASHEET: Basis.DATASHEET.value,
    Basis.CEILING: "measured ceiling",
}


class Fraction(NamedTuple):
    """Nanoseconds that a roof needs at least, or why it does not apply."""

    roof: str
    least_ns: float | None = None
    why: str = ""
    mend: str = ""


def of_compute(work: Work, roof: Roof) -> Fraction:
    """The time in which the peak of the work's dtype would have done its operations."""
    if not work.flops:
        return Fraction(roof="compute", why="the work counts no operations", mend="pass work= with flops")
    rate = roof.rate(work.dtype)
    if not rate:
        return _without_rate(work.dtype or "a work without dtype", roof)
    return Fraction(roof="compute", least_ns=work.flops / rate * 1e9)


def of_memory(work: Work, roof: Roof, device: Device, identity: Identity) -> Fraction:
    """The time in which memory would have moved the bytes; only where they come from memory at all."""
    if not work.bytes:
        return Fraction(roof="memory", why="the work counts no bytes", mend="pass work= with bytes")
    if not roof.bandwidth:
        return Fraction(roof="memory", why=f"there is no {_KNOWN[roof.basis]} for memory", mend=_mend(roof))
    cache = roof.cache_bytes or device.cache_bytes
    if not identity.cache.startswith(COLD):
        if not cache:
            return Fraction(roof="memory", why="warm cache of unknown size", mend="measure with cache='cold'")
        if (work.working_set or work.bytes) <= cache:
            return Fraction(roof="memory", why="not applicable: fits in the cache", mend="measure with cache='cold'")
    return Fraction(roof="memory", least_ns=work.bytes / roof.bandwidth * 1e9)


def _without_rate(dtype: str, roof: Roof) -> Fraction:
    """A dtype that nobody knows the peak of; measuring ceilings again measures the same dtypes again."""
    known = ", ".join(name for name, _ in roof.compute)
    why = f"there is no {_KNOWN[roof.basis]} for {dtype}"
    if known and roof.basis is Basis.CEILING:
        mend = (
            "`perfgate ceilings` measures no other here: count the work in one of these dtypes, or limit tflops or time"
        )
        return Fraction(roof="compute", why=f"{why}: those of this device are for {known}", mend=mend)
    return Fraction(roof="compute", why=f"{why} (known: {known})" if known else why, mend=_mend(roof))


def _mend(roof: Roof) -> str:
    return "perfgate ceilings" if roof.basis is Basis.CEILING else "add the rate to the device in [tool.perfgate]"


def ridge(work: Work, roof: Roof) -> float | None:
    """Operations per byte above which compute binds."""
    rate = roof.rate(work.dtype)
    return rate / roof.bandwidth if rate and roof.bandwidth else None


def roof_of(device: Device, tail: str) -> tuple[Roof | None, str]:
    """The roof that a metric's name asks for, and what to say when a host has no such thing."""
    if tail == "_datasheet":
        return device.roof(Basis.DATASHEET), ""
    if tail == "_ceiling":
        return device.roof(Basis.CEILING), ""
    if device.kind == "gpu":
        return device.roof(Basis.CLOCK), ""
    return device.roof(Basis.CEILING), "of the measured ceiling: a host has no other roof"


def no_roof(device: Device, tail: str) -> tuple[str, str]:
    """Why a roof is missing, and what would give it."""
    if tail == "_datasheet":
        return f"no data sheet for {device.name}", "add the device to [tool.perfgate]"
    if tail == "_ceiling" or device.kind != "gpu":
        return "the ceilings of this device were never measured", "perfgate ceilings"
    return "the clock that ran is not known", "use mfu_ceiling, or let perfgate observe the clocks"
