"""Metrics of a PyTorch trace beside those every profile shares: operators, ranks, what is linked."""

from __future__ import annotations

from pytest_perfgate.core.metrics.overlap import SCOPES
from pytest_perfgate.model.metric import MetricKind
from pytest_perfgate.model.quantity import Better, Dimension

_LOW, _HIGH, _EITHER = Better.LOWER, Better.HIGHER, Better.NEITHER
_TIME, _PART = Dimension.TIME, Dimension.FRACTION


def _kind(name: str, dimension: Dimension, better: Better, doc: str, positional: str = "rank") -> MetricKind:
    scopes = (*SCOPES, "collective", "group")
    return MetricKind(
        name=name,
        dimension=dimension,
        better=better,
        doc=doc,
        scopes=scopes,
        positional=positional,
        source="a PyTorch trace",
    )


KINDS: tuple[MetricKind, ...] = (
    _kind("coverage", _PART, _HIGH, "GPU time linked to a launch, as a fraction of all GPU time"),
    _kind("idle_micro", _TIME, _LOW, "idle time in gaps up to the threshold (10 µs)"),
    _kind("idle_macro", _TIME, _LOW, "idle time in longer gaps"),
    _kind("memcpy_time", _TIME, _LOW, "time in copies, by union"),
    _kind("memset_time", _TIME, _LOW, "time in memory sets, by union"),
    _kind("step_time", _TIME, _LOW, "time between the first and last GPU work of a step", "step"),
    _kind("op_time", _TIME, _LOW, "GPU time of an operator or category, all calls together", "op"),
    _kind("op_count", Dimension.COUNT, _EITHER, "calls of an operator that reached the GPU", "op"),
    _kind("op_share", _PART, _LOW, "GPU time of an operator or category as a fraction of all operators'", "op"),
    _kind("modelled", _PART, _HIGH, "GPU time of operators that have a work model, as a fraction"),
    _kind("recompute", _PART, _LOW, "GPU time spent on recomputing a checkpointed forward pass, as a fraction"),
    _kind("short_kernels", _PART, _LOW, "kernels under 10 µs, as a fraction of all kernels"),
    _kind("comm_latency", _TIME, _LOW, "the shortest duration of a collective over its ranks, summed", "collective"),
    _kind("comm_wait", _TIME, _LOW, "time a rank's collectives wait for other ranks", "rank"),
    _kind(
        "comm_skew", _TIME, _LOW, "spread of the durations of a collective over its ranks, the largest", "collective"
    ),
    _kind("start_skew", _TIME, _LOW, "latest minus earliest start of a collective, the largest", "collective"),
    _kind("comm_bytes", Dimension.BYTES, _EITHER, "bytes of a collective's messages", "collective"),
    _kind("alg_bandwidth", Dimension.BANDWIDTH, _HIGH, "message size over latency of a collective", "collective"),
    _kind("bus_bandwidth", Dimension.BANDWIDTH, _HIGH, "algorithm bandwidth times what the bus carries", "collective"),
    _kind("straggler", Dimension.COUNT, _EITHER, "the rank that waits least, since it arrives last", "group"),
)
