"""Measures the ceilings of a device: the best product of each dtype, the best copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Protocol

from pytest_perfgate.model.ceilings import Ceilings
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Cache, Plan
from pytest_perfgate.model.ports import Call
from pytest_perfgate.model.samples import Samples


class Load(Protocol):
    """Work of a known size."""

    name: str
    dtype: str
    flops: float
    bytes: float
    call: Call


PLAN = Plan(cache=Cache.WARM, min_samples=5, max_samples=50, budget_ns=1e9, warmup_ns=100e6)
"""Warm, since every load is larger than the last cache."""


OF_THE_CARD = frozenset(
    {"clocks-denied", "clocks-unsupported", "clocks-held", "driver-silent", "lease-held", "locks-unusable"}
)
"""What would keep every other load from being measured too."""
FEW, WIDE = 5, 1.25
"""Samples below which, and how much slower than the fastest the median is beyond which, a ceiling is doubted."""


def doubt(durations: Sequence[float]) -> str:
    """Why a ceiling may lie too low: a busy machine leaves few samples, or none that ran undisturbed."""
    apart = median(durations) / min(durations)
    told = [f"fewer than {FEW}"] if len(durations) < FEW else []
    told += [f"half of them {(apart - 1) * 100:.0f} % slower than the fastest"] if apart > WIDE else []
    return f"; WARNING: {', '.join(told)}: measure again on a quiet machine" if told else ""


def measured_ceilings(
    device: Device, library: str, take: Callable[[Call], Samples], loads: Iterable[Load], today: str
) -> Ceilings:
    """The fastest sample of each load; a load that cannot run, or was spoiled, is on record with its reason."""
    rates: dict[str, float] = {}
    facts: list[tuple[str, str]] = []
    clocks: list[float] = []
    bandwidth: float | None = None
    for load in loads:
        try:
            samples = sound(take(load.call))
        except (PerfgateError, RuntimeError, TypeError) as error:
            if isinstance(error, PerfgateError) and error.code.name in OF_THE_CARD:
                raise
            facts.append((load.name, f"not measured: {str(error).splitlines()[0]}"))
            continue
        seconds = (min(samples.durations) - samples.overhead / samples.batch) / 1e9
        if load.dtype:
            rates[load.dtype] = max(rates.get(load.dtype, 0.0), load.flops / seconds)
        else:
            bandwidth = max(bandwidth or 0.0, load.bytes / seconds)
        facts.append((load.name, f"{len(samples.durations)} samples by {samples.timer}{doubt(samples.durations)}"))
        clocks += samples.clock_hz
    if not rates and bandwidth is None:
        raise PerfgateError("ceilings-none", "; ".join(f"{name}: {why}" for name, why in facts) or "there are no loads")
    return Ceilings(
        device=device.key,
        compute=tuple(rates.items()),
        bandwidth=bandwidth,
        cache_bytes=device.cache_bytes,
        clock_hz=median(clocks) if clocks else None,
        method=f"fastest sample on {library}",
        when=today,
        facts=tuple(facts),
    )


def sound(samples: Samples) -> Samples:
    """The samples, unless an instrument found something wrong with them: too low a ceiling flatters for ever."""
    if samples.problems:
        problem = samples.problems[0]
        raise PerfgateError(problem.code, problem.what)
    return samples
