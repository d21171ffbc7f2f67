"""Metrics of a PyTorch trace beside those every profile shares: operators, ranks, what is linked."""

from __future__ import annotations

from pytest_perfgate.core.metrics.overlap import SCOPES
from pytest_perfgate.model.metric import MetricKind
from pytest_perfgate.model.quantity import Better, Dimension

_LOW, _HIGH, _EITHER = Better.LOWER, Better.HIGHER, Better.NEITHER
_TIME, _PART, _COUNT = Dimension.TIME, Dimension.FRACTION, Dimension.COUNT
ARGUMENTS = ("shapes", "types", "strides", "scalars")
"""What an argument set of an operator is told apart by."""
_OWN = (*ARGUMENTS, "launcher", "module", "target", "part", "side", "collective", "group")


def _kind(name: str, dimension: Dimension, better: Better, doc: str, positional: str = "rank") -> MetricKind:
    scopes = (*SCOPES, *_OWN)
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
    _kind("unread", _PART, _LOW, "GPU events, or their time where that is more, without a readable duration"),
    _kind("exposed_memcpy_share", _PART, _LOW, "exposed copies as a fraction of the window"),
    _kind("exposed_memset_share", _PART, _LOW, "exposed memory sets as a fraction of the window"),
    _kind("memcpy_share", _PART, _LOW, "copies, by union, as a fraction of the window"),
    _kind("idle_micro_share", _PART, _LOW, "idle time in gaps up to the threshold as a fraction of the window"),
    _kind("idle_macro_share", _PART, _LOW, "idle time in longer gaps as a fraction of the window"),
    _kind("op_mean", _TIME, _LOW, "GPU time of a call of an operator, the mean", "op"),
    _kind("op_median", _TIME, _LOW, "the same of an argument set, the median", "op"),
    _kind("op_std", _TIME, _LOW, "the same, the sample deviation", "op"),
    _kind("op_min", _TIME, _LOW, "the same, the shortest", "op"),
    _kind("op_max", _TIME, _LOW, "the same, the longest", "op"),
    _kind("op_kernels", _COUNT, _LOW, "kernels, copies and fills a call of an argument set", "op"),
    _kind("op_variants", _COUNT, _EITHER, "argument sets of an operator", "op"),
    _kind("op_running", _PART, _EITHER, "share of an operator and of those that took longer", "op"),
    _kind("op_flops", Dimension.WORK, _EITHER, "operations of a call of an argument set", "op"),
    _kind("op_bytes", Dimension.BYTES, _EITHER, "unique bytes of a call of an argument set", "op"),
    _kind("kernel_mean", _TIME, _LOW, "time of a kernel by launcher and stream, the mean", "kernel"),
    _kind("kernel_median", _TIME, _LOW, "the same, the median", "kernel"),
    _kind("kernel_std", _TIME, _LOW, "the same, the sample deviation", "kernel"),
    _kind("kernel_min", _TIME, _LOW, "the same, the shortest", "kernel"),
    _kind("kernel_max", _TIME, _LOW, "the same, the longest", "kernel"),
    _kind("kernel_share", _PART, _LOW, "time of a kernel by launcher and stream over that of all GPU rows", "kernel"),
    _kind("time_then", _TIME, _LOW, "GPU time of an argument set if it reached a share of its roof", "op"),
    _kind("gain", _PART, _LOW, "what that would save end to end, at most", "op"),
    _kind("module_time", _TIME, _LOW, "GPU time below all instances of a module of many short kernels", "module"),
    _kind("module_count", _COUNT, _EITHER, "instances of such a module", "module"),
    _kind("module_kernels", _COUNT, _LOW, "kernels an instance of such a module", "module"),
    _kind("module_kernel_mean", _TIME, _HIGH, "mean time of the kernels of such a module", "module"),
    _kind("forward_calls", _COUNT, _EITHER, "calls of a forward operator that recorded a sequence number", "op"),
    _kind("backward_calls", _COUNT, _EITHER, "those whose backward pass is in the trace", "op"),
    _kind("forward_time", _TIME, _LOW, "GPU time below a forward operator", "op"),
    _kind("backward_time", _TIME, _LOW, "GPU time of the backward passes that it caused", "op"),
    _kind("backward_ratio", Dimension.RATIO, _LOW, "backward over forward GPU time", "op"),
    _kind("start_wait", _TIME, _LOW, "time from a rank's starts of collectives to the latest, where clocks agree"),
    _kind("comm_count", _COUNT, _EITHER, "collectives of a kind", "collective"),
    _kind("comm_ranks", _COUNT, _EITHER, "ranks that take part in a collective", "collective"),
    _kind("comm_time", _TIME, _LOW, "time of a collective as one rank saw it, waiting included", "collective"),
    _kind("compared_time", _TIME, _LOW, "of two traces: a call's mean GPU time, or a part of the window", "op"),
    _kind("compared_calls", _COUNT, _EITHER, "of two traces: calls", "op"),
    _kind("difference", _TIME, _LOW, "of two traces: the target's time less the reference's", "op"),
    _kind("expected_slowdown", _PART, _EITHER, "of two traces: what bandwidths or peaks explain", "op"),
    _kind("tree_edits", _COUNT, _LOW, "of two traces: operators that their call trees do not share"),
)
