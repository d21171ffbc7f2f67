"""Rooflines: what a device allows for a piece of work, and how near a time came to it."""

from __future__ import annotations

from pytest_perfgate.model.device import Roof
from pytest_perfgate.model.values import value
from pytest_perfgate.model.work import Work

_BANDS = ((0.8, "excellent"), (0.6, "good"), (0.4, "acceptable"), (0.0, "needs investigation"))


@value
class Placement:
    """Work done in a time, held against a roof; what the roof does not say is ``None``."""

    flops_rate: float | None
    bandwidth: float | None
    intensity: float | None
    compute: float | None
    """Rate of operations as a fraction of the roof."""
    memory: float | None
    """Bandwidth as a fraction of the roof; ``None`` where the working set fits the last cache."""
    bound: str
    """``compute``, ``memory``, ``cache`` or empty when the roof cannot say."""
    ideal_ns: float | None
    """The least time that the roof allows."""
    cached: bool = False

    @property
    def fraction(self) -> float | None:
        """How near the time came to the roof that binds: speed of light."""
        known = [part for part in (self.compute, self.memory) if part is not None]
        return max(known, default=None)


def place(work: Work, time_ns: float, roof: Roof) -> Placement:
    """Hold work done in ``time_ns`` against a roof."""
    rate = work.flops / time_ns * 1e9 if work.flops is not None and time_ns > 0 else None
    moved = work.bytes / time_ns * 1e9 if work.bytes is not None and time_ns > 0 else None
    peak, band = roof.rate(work.dtype), roof.bandwidth
    cached = fits_cache(work, roof)
    compute = rate / peak if rate is not None and peak else None
    memory = moved / band if moved is not None and band and not cached else None
    return Placement(
        flops_rate=rate,
        bandwidth=moved,
        intensity=work.intensity,
        compute=compute,
        memory=memory,
        bound=bound(work, roof),
        ideal_ns=ideal_ns(work, roof),
        cached=cached,
    )


def ideal_ns(work: Work, roof: Roof) -> float | None:
    """The least time that a roof allows for this work."""
    peak, band = roof.rate(work.dtype), roof.bandwidth
    times = [work.flops / peak * 1e9] if work.flops and peak else []
    times += [work.bytes / band * 1e9] if work.bytes and band and not fits_cache(work, roof) else []
    return max(times, default=None)


def bound(work: Work, roof: Roof) -> str:
    """Which roof binds this work."""
    peak, band = roof.rate(work.dtype), roof.bandwidth
    if work.flops and peak and work.bytes and band:
        if work.flops / peak >= work.bytes / band:
            return "compute"
        return "cache" if fits_cache(work, roof) else "memory"
    if not work.flops and work.bytes and band:
        return "cache" if fits_cache(work, roof) else "memory"
    return "compute" if work.flops and peak and not work.bytes else ""


def fits_cache(work: Work, roof: Roof) -> bool:
    """Whether the working set stays in the last cache, where the memory roof does not apply."""
    touched = work.working_set if work.working_set is not None else work.bytes
    return bool(roof.cache_bytes and touched is not None and touched <= roof.cache_bytes)


def ridge(roof: Roof, dtype: str) -> float | None:
    """The intensity at which both roofs bind."""
    peak = roof.rate(dtype)
    return peak / roof.bandwidth if peak and roof.bandwidth else None


def band(fraction: float) -> str:
    """The word for an efficiency."""
    return next(word for floor, word in _BANDS if fraction >= floor)
