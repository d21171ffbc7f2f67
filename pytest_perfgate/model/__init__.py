"""The values of perfgate: frozen values, ports, errors. It needs only the standard library.

The names below are public, for plugins; each is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_perfgate.model.device import (
        Availability,
        Device,
        SupportsAdopt,
        SupportsBind,
        SupportsClock,
        SupportsCuda,
        SupportsKernels,
        SupportsLook,
        SupportsMemory,
        SupportsOperators,
        SupportsOwnQueue,
        SupportsRelease,
        SupportsSettled,
        SupportsSpin,
        SupportsTellWaits,
        SupportsTouches,
        SupportsWait,
    )
    from pytest_perfgate.model.errors import PerfgateError
    from pytest_perfgate.model.measurement import Artifact, Samples, Stop
    from pytest_perfgate.model.metric import (
        Absent,
        Analysis,
        Block,
        Bullets,
        Cell,
        Code,
        Column,
        Document,
        Finding,
        Interval,
        Labels,
        Link,
        Metric,
        MetricKind,
        MetricSet,
        Paragraph,
        Picture,
        Problem,
        Section,
        Severity,
        Table,
        labels,
    )
    from pytest_perfgate.model.plan import CaseKey, Plan
    from pytest_perfgate.model.ports import (
        Call,
        Clocks,
        ClockWatch,
        Delivery,
        Event,
        Inspector,
        Profiler,
        QueueRuntime,
        Runtime,
        Stream,
        Timer,
    )
    from pytest_perfgate.model.values import Better, Dimension, Work
    from pytest_perfgate.model.verdict import CaseReport, RunReport, Verdict

__all__ = [
    "Absent",
    "Analysis",
    "Artifact",
    "Availability",
    "Better",
    "Block",
    "Bullets",
    "Call",
    "CaseKey",
    "CaseReport",
    "Cell",
    "ClockWatch",
    "Clocks",
    "Code",
    "Column",
    "Delivery",
    "Device",
    "Dimension",
    "Document",
    "Event",
    "Finding",
    "Inspector",
    "Interval",
    "Labels",
    "Link",
    "Metric",
    "MetricKind",
    "MetricSet",
    "Paragraph",
    "PerfgateError",
    "Picture",
    "Plan",
    "Problem",
    "Profiler",
    "QueueRuntime",
    "RunReport",
    "Runtime",
    "Samples",
    "Section",
    "Severity",
    "Stop",
    "Stream",
    "SupportsAdopt",
    "SupportsBind",
    "SupportsClock",
    "SupportsCuda",
    "SupportsKernels",
    "SupportsLook",
    "SupportsMemory",
    "SupportsOperators",
    "SupportsOwnQueue",
    "SupportsRelease",
    "SupportsSettled",
    "SupportsSpin",
    "SupportsTellWaits",
    "SupportsTouches",
    "SupportsWait",
    "Table",
    "Timer",
    "Verdict",
    "Work",
    "labels",
]

_HOMES = ("values", "device", "metric", "plan", "measurement", "ports", "errors", "verdict")
"""Modules that define these names; those that others import from come first."""


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that importing one module of the model loads no other."""
    from importlib import import_module

    modules = (import_module(f"{__name__}.{home}") for home in _HOMES if name in __all__)
    for module in modules:
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
