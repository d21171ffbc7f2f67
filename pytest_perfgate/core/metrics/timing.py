"""Metrics of a timed call."""

from __future__ import annotations

from pytest_perfgate.model.metric import MetricKind
from pytest_perfgate.model.quantity import Better, Dimension

_LOW, _HIGH = Better.LOWER, Better.HIGHER
_TIME, _PART = Dimension.TIME, Dimension.FRACTION
_TRACED = ("case", "op", "category", "rank", "gpu", "step", "shapes", "types", "strides", "scalars")
"""Scopes of what a test times and a trace splits by operator."""

KINDS: tuple[MetricKind, ...] = (
    MetricKind(name="time", dimension=_TIME, better=_LOW, doc="median time of one call", scopes=("case",)),
    MetricKind(
        name="slowdown",
        dimension=_PART,
        better=_LOW,
        doc="time against the accepted baseline, or the base revision, minus one",
        scopes=(*_TRACED, "kernel", "stage", "part"),
    ),
    MetricKind(
        name="geomean",
        dimension=_PART,
        better=_LOW,
        doc="geometric mean of a metric over a parametrised test",
        scopes=("of", "family"),
        positional="of",
    ),
    MetricKind(
        name="tflops",
        dimension=Dimension.FLOPS,
        better=_HIGH,
        doc="operations per second",
        scopes=_TRACED,
    ),
    MetricKind(
        name="bandwidth",
        dimension=Dimension.BANDWIDTH,
        better=_HIGH,
        doc="unique bytes per second",
        scopes=_TRACED,
    ),
    MetricKind(name="throughput", dimension=Dimension.RATE, better=_HIGH, doc="items per second", scopes=("case",)),
    MetricKind(
        name="intensity",
        dimension=Dimension.INTENSITY,
        better=Better.NEITHER,
        doc="operations per byte",
        scopes=_TRACED,
    ),
    *(
        MetricKind(
            name=f"{stem}{tail}",
            dimension=_PART,
            better=_HIGH,
            doc=f"{what} {of}",
            scopes=(*_TRACED, *(roof if not tail else ())),
        )
        for stem, what, roof in (
            ("mfu", "operations per second as a fraction of", ()),
            ("sol", "the larger of compute and memory fraction of", ("roof",)),
        )
        for tail, of in (
            ("", "the peak at the clock that ran (a host: its measured ceiling)"),
            ("_datasheet", "the data sheet's peak"),
            ("_ceiling", "this device's measured ceiling"),
        )
    ),
    MetricKind(name="launch_gap", dimension=_TIME, better=_LOW, doc="host-visible minus device-busy time of a call"),
    MetricKind(
        name="span",
        dimension=_TIME,
        better=_LOW,
        doc="first start to last end of a call's kernels; `time` is their busy time where the timer sees both",
        scopes=("case",),
        source="the cupti timer",
    ),
)
