"""Kernel launches made by hand, diagnosed: what core needs to be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_perfgate.adapters.devices.visible import DeviceCatalogue
from pytest_perfgate.app.inspections.cubin import limits_by_arch
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis, diagnose
from pytest_perfgate.model.profiles import Counter, KernelFacts, Launch, Resources, SourceLine
from tests.kernels import kernel

ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
SM = limits_by_arch(DeviceCatalogue())
SM.update({f"{arch}a": SM[arch] for arch in ("sm_90", "sm_100")})
BUSY = {f"dram__throughput{ELAPSED}": 82.0, f"sm__throughput{ELAPSED}": 21.0}


def launch(name: str = "k", time: float | None = 4e5, counters: Mapping[str, float] = BUSY, **facts: Any) -> Diagnosis:
    """A launch on sm_90 that took so many nanoseconds."""
    values = {**counters, **({"gpu__time_duration.sum": time} if time is not None else {})}
    fields = {
        "launch": Launch(block=(256, 1, 1), grid=(1024, 1, 1)),
        "resources": Resources(registers=64, shared=4096, source="ncu"),
        **facts,
    }
    return diagnose(
        KernelFacts(
            name=name,
            arch="sm_90",
            counters={n: Counter(name=n, value=v) for n, v in values.items()},
            duration=time,
            **fields,
        ),
        name,
        SM["sm_90"],
    )


def compiled(name: str, arch: str = "sm_86", **facts: Any) -> Diagnosis:
    """One of our own kernels, as the compiler left it."""
    from dataclasses import replace

    return diagnose(replace(kernel(name, arch), **facts), name, SM[arch])


LINES = (
    SourceLine(place="k.cu:2", text="LDG.E R2, [R4]", samples=10.0, executed=8.0, reason="lg_throttle", ptx="ld.global"),
    SourceLine(place="k.cu:2", text="FFMA R2, R2, R2, R3", samples=60.0, executed=8.0, reason="long_scoreboard", offset=16),
    SourceLine(place="k.cu:3", text="", samples=30.0, executed=8.0, offset=32, ptx="st.global"),
    SourceLine(place="", text="EXIT", samples=0.0, executed=8.0, offset=48, ptx="st.global"),
)  # fmt: skip
SOURCE = {"k.cu": "__global__ void k() {\n  a = b * b;\n  *c = a;\n}\n"}
