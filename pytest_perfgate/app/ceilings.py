"""Measures the ceilings of a device: the best product of each dtype, the best copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Protocol

from pytest_perfgate.model.ceilings import Ceilings
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Cache, Plan
from pytest_perfgate.model.ports import Call, Runtime, Timer


class Load(Protocol):
    """Work of a known size."""

    name: str
    dtype: str
    flops: float
    bytes: float
    call: Call


PLAN = Plan(cache=Cache.WARM, min_samples=5, max_samples=50, budget_ns=1e9, warmup_ns=100e6)
"""Warm, since every load is larger than the last cache."""


FEW, WIDE = 5, 1.25
"""Samples below which, and how much slower than the fastest the median is beyond which, a ceiling is doubted."""


def doubt(durations: Sequence[float]) -> str:
    """Why a ceiling may lie too low: a busy machine leaves few samples, or none that ran undisturbed."""
    apart = median(durations) / min(durations)
    told = [f"fewer than {FEW}"] if len(durations) < FEW else []
    told += [f"half of them {(apart - 1) * 100:.0f} % slower than the fastest"] if apart > WIDE else []
    return f"; WARNING: {', '.join(told)}: measure again on a quiet machine" if told else ""


def measured_ceilings(
    device: Device, runtime: Runtime, timer: Timer, loads: Iterable[Load], today: str,
    progress: Callable[[str], None] = lambda text: None,  # noqa: ARG005 - silence by default
) -> Ceilings:  # fmt: skip
    """The fastest sample of each load; a load that cannot run is on record with its reason."""
    rates: dict[str, float] = {}
    facts: list[tuple[str, str]] = []
    bandwidth: float | None = None
    for load in loads:
        try:
            samples = timer.measure(load.call, PLAN, runtime)
        except (PerfgateError, RuntimeError, TypeError) as error:
            facts.append((load.name, f"not measured: {str(error).splitlines()[0]}"))
            continue
        seconds = (min(samples.durations) - samples.overhead / samples.batch) / 1e9
        if load.dtype:
            rates[load.dtype] = max(rates.get(load.dtype, 0.0), load.flops / seconds)
        else:
            bandwidth = max(bandwidth or 0.0, load.bytes / seconds)
        facts.append((load.name, f"{len(samples.durations)} samples by {samples.timer}{doubt(samples.durations)}"))
        progress(load.name)
    return Ceilings(
        device=device.key,
        compute=tuple(rates.items()),
        bandwidth=bandwidth,
        cache_bytes=device.cache_bytes,
        method=f"fastest sample on {runtime.name}",
        when=today,
        facts=tuple(facts),
    )
