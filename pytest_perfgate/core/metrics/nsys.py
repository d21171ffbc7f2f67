"""Metrics that only an Nsight Systems export has."""

from __future__ import annotations

from pytest_perfgate.core.metrics.overlap import profile_kind
from pytest_perfgate.model.metric import MetricKind
from pytest_perfgate.model.quantity import Better, Dimension

_LOW = Better.LOWER

KINDS: tuple[MetricKind, ...] = (
    MetricKind(
        name="balance",
        dimension=Dimension.FRACTION,
        better=_LOW,
        doc="the busiest part's compute over the mean of all parts, minus one",
        scopes=("over", "stage"),
        positional="over",
        source="an nsys export",
    ),
    profile_kind("barrier", Dimension.TIME, _LOW, "communication that runs on a compute stream", "rank"),
    profile_kind("launch_share", Dimension.FRACTION, _LOW, "fraction of the window the host spends launching", "rank"),
    profile_kind("straddling", Dimension.TIME, Better.NEITHER, "kernel time that the window cut off", "rank"),
)
