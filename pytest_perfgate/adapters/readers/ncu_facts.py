"""Counters of a launch as facts of a kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field

from pytest_perfgate.model.kernel import Counter, KernelFacts, Launch, Resources, SourceLine
from pytest_perfgate.model.problem import Finding
from pytest_perfgate.model.values import array_value


@array_value
class NcuCode:
    """What a report holds of the code itself."""

    lines: tuple[SourceLine, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    executed: Mapping[str, float] = field(default_factory=dict)


def kernel_facts(
    name: str,
    counters: Mapping[str, Counter],
    *,
    texts: Mapping[str, str],
    place: tuple[str, int],
    findings: tuple[Finding, ...] = (),
    code: NcuCode | None = None,
) -> KernelFacts:
    """One launch as ncu saw it. A duration that is not a number is absent."""
    duration = _value(counters, "gpu__time_duration.sum")
    major, minor = (_value(counters, f"device__attribute_compute_capability_{part}") for part in ("major", "minor"))
    return KernelFacts(
        name=name,
        arch=texts.get("arch", "") or (f"sm_{int(major)}{int(minor or 0)}" if major else ""),
        device=texts.get("device__attribute_display_name", ""),
        source=place[0],
        index=place[1],
        launch=_launch(counters),
        resources=_resources(counters),
        counters=counters,
        duration=duration if duration is not None and duration > 0 else None,
        findings=findings,
        lines=code.lines if code else (),
        sources=code.sources if code else {},
        executed=code.executed if code else {},
    )


def _value(counters: Mapping[str, Counter], name: str) -> float | None:
    seen = counters.get(name)
    return seen.value if seen is not None and math.isfinite(seen.value) else None


def _launch(counters: Mapping[str, Counter]) -> Launch | None:
    block = tuple(_value(counters, f"launch__block_dim_{axis}") for axis in "xyz")
    size = _value(counters, "launch__block_size")
    grid = tuple(int(_value(counters, f"launch__grid_dim_{axis}") or 0) for axis in "xyz")
    if None in block and size is None:
        return None
    x, y, z = (int(b or 1) for b in block) if None not in block else (int(size or 0), 1, 1)
    return Launch(
        block=(x, y, z),
        grid=(grid[0], grid[1], grid[2]),
        shared_dynamic=int(_value(counters, "launch__shared_mem_per_block_dynamic") or 0),
        source="ncu",
    )


def _resources(counters: Mapping[str, Counter]) -> Resources | None:
    registers = _value(counters, "launch__registers_per_thread")
    if registers is None:
        return None
    static, dynamic = (_value(counters, f"launch__shared_mem_per_block_{kind}") for kind in ("static", "dynamic"))
    return Resources(
        registers=int(registers),
        shared=int(static or 0),
        source="ncu",
        unsaid=("shared",) if static is None or dynamic is None else (),
    )
