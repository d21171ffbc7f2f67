"""The metrics of traces and of Nsight Systems' exports that limits can name, and what the views of files show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_perfgate.model.metric import MetricKind
from pytest_perfgate.model.values import Better, Dimension

_LOW, _HIGH, _NEITHER = Better.LOWER, Better.HIGHER, Better.NEITHER

_TIME, _PART, _COUNT = Dimension.TIME, Dimension.FRACTION, Dimension.COUNT

_COUNTED = frozenset({Dimension.COUNT, Dimension.BYTES, Dimension.WORK})
"""Counts of a profile, which are the same for the same program."""

SCOPES = ("stage", "rank", "gpu", "stream", "step", "kernel", "op", "category", "pid")

_SOURCE = "a trace or an nsys export"


def profile_kind(name: str, dimension: Dimension, better: Better, doc: str, positional: str = "stage") -> MetricKind:
    """Return a kind that a profile produces, with the scopes that all profiles share."""
    return MetricKind(
        name=name, dimension=dimension, better=better, doc=doc, scopes=SCOPES, positional=positional, source=_SOURCE,
        exact=dimension in _COUNTED,
    )  # fmt: skip


NSYS_KINDS: tuple[MetricKind, ...] = (
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
    profile_kind("sync_time", Dimension.TIME, _LOW, "time the device idles behind blocking synchronisations", "rank"),
    profile_kind(
        "sync_share",
        Dimension.FRACTION,
        _LOW,
        "idle time behind blocking synchronisations as a fraction of the window",
        "rank",
    ),
    profile_kind("sync_count", Dimension.COUNT, _LOW, "blocking synchronisations of the host in the window", "rank"),
    profile_kind(
        "window_coverage", Dimension.FRACTION, Better.HIGHER, "the part of a capture that its windows cover", "rank"
    ),
    profile_kind(
        "step_to_step", Dimension.TIME, _LOW, "from the start of a step to the start of the next, the median", "rank"
    ),
    profile_kind("straddling", Dimension.TIME, Better.NEITHER, "kernel time that the window cut off", "rank"),
)

_LAUNCHED = (*SCOPES, "launcher")

OVERLAP_KINDS: tuple[MetricKind, ...] = (
    profile_kind("overlap", _PART, _HIGH, "communication time that computation covers, by union of what runs at once"),
    profile_kind(
        "overlap_sum", _PART, _HIGH, "communication time that computation covers, summed per communication kernel"
    ),
    profile_kind("overlap_min", _PART, _HIGH, "the least covered communication kernel"),
    profile_kind("overlap_max", _PART, _HIGH, "the best covered communication kernel"),
    profile_kind("exposed_comm", _TIME, _LOW, "communication that no computation covers, by union"),
    profile_kind("exposed_sum", _TIME, _LOW, "communication that no computation covers, summed per kernel"),
    profile_kind("exposed_share", _PART, _LOW, "exposed communication as a fraction of the window"),
    profile_kind("exposed_memcpy", _TIME, _LOW, "copies that neither computation nor communication covers", "rank"),
    profile_kind("exposed_memset", _TIME, _LOW, "memory sets that nothing else covers", "rank"),
    profile_kind("idle", _PART, _LOW, "fraction of the window in which the device does nothing", "rank"),
    profile_kind("idle_time", _TIME, _LOW, "time in the window in which the device does nothing", "rank"),
    profile_kind("busy", _PART, _HIGH, "fraction of the window in which the device does anything", "rank"),
    profile_kind("busy_time", _TIME, _NEITHER, "time in the window in which the device does anything", "rank"),
    profile_kind("computation", _PART, _HIGH, "fraction of the window in which a compute kernel runs", "rank"),
    profile_kind("computation_time", _TIME, _LOW, "time in which a compute kernel runs, by union", "rank"),
    profile_kind("communication", _PART, _LOW, "fraction of the window in which communication runs", "rank"),
    profile_kind("communication_time", _TIME, _LOW, "time in which communication runs, by union", "rank"),
    profile_kind("total_time", _TIME, _LOW, "the window: from the first start to the last end", "rank"),
    replace(profile_kind("kernel_time", _TIME, _LOW, "time in kernels, summed", "kernel"), scopes=_LAUNCHED),
    replace(profile_kind("kernel_count", Dimension.COUNT, _LOW, "kernels launched", "kernel"), scopes=_LAUNCHED),
)

ARGUMENTS = ("shapes", "types", "strides", "scalars")
"""Scopes that distinguish an operator's argument sets."""

_OWN = (*ARGUMENTS, "launcher", "module", "target", "part", "side", "collective", "group")


def _trace_kind(name: str, dimension: Dimension, better: Better, doc: str, positional: str = "rank") -> MetricKind:
    shared = profile_kind(name, dimension, better, doc, positional)
    return replace(shared, scopes=(*SCOPES, *_OWN), source="a PyTorch trace")


TRACE_KINDS: tuple[MetricKind, ...] = (
    _trace_kind("coverage", _PART, _HIGH, "GPU time linked to a launch, as a fraction of all GPU time"),
    _trace_kind("idle_micro", _TIME, _LOW, "idle time in short gaps (up to 10 µs)"),
    _trace_kind("idle_macro", _TIME, _LOW, "idle time in longer gaps"),
    _trace_kind("memcpy_time", _TIME, _LOW, "time in copies, by union"),
    _trace_kind("memset_time", _TIME, _LOW, "time in memory sets, by union"),
    _trace_kind(
        "step_time",
        _TIME,
        _LOW,
        "length of a step as it is marked, or of the GPU work that it launched where that ends later",
        "step",
    ),
    _trace_kind("op_time", _TIME, _LOW, "GPU time of an operator or category, all calls together", "op"),
    _trace_kind("op_count", Dimension.COUNT, _NEITHER, "calls of an operator that reached the GPU", "op"),
    _trace_kind("op_share", _PART, _LOW, "GPU time of an operator or category as a fraction of all operators'", "op"),
    _trace_kind("modelled", _PART, _HIGH, "GPU time of operators that have a work model, as a fraction"),
    _trace_kind("recompute", _PART, _LOW, "GPU time spent on recomputing a checkpointed forward pass, as a fraction"),
    _trace_kind("short_kernels", _PART, _LOW, "kernels under 10 µs, as a fraction of all kernels"),
    _trace_kind(
        "comm_latency", _TIME, _LOW, "the shortest duration of a collective over its ranks, summed", "collective"
    ),
    _trace_kind("comm_wait", _TIME, _LOW, "time a rank's collectives wait for other ranks", "rank"),
    _trace_kind(
        "comm_skew", _TIME, _LOW, "spread of the durations of a collective over its ranks, the largest", "collective"
    ),
    _trace_kind("start_skew", _TIME, _LOW, "latest minus earliest start of a collective, the largest", "collective"),
    _trace_kind("comm_bytes", Dimension.BYTES, _NEITHER, "bytes of a collective's messages", "collective"),
    _trace_kind("alg_bandwidth", Dimension.BANDWIDTH, _HIGH, "message size over latency of a collective", "collective"),
    _trace_kind(
        "bus_bandwidth", Dimension.BANDWIDTH, _HIGH, "algorithm bandwidth times what the bus carries", "collective"
    ),
    _trace_kind("straggler", Dimension.COUNT, _NEITHER, "the rank that waits least, since it arrives last", "group"),
    _trace_kind("unread", _PART, _LOW, "GPU events, or their time where that is more, without a readable duration"),
    _trace_kind("exposed_memcpy_share", _PART, _LOW, "exposed copies as a fraction of the window"),
    _trace_kind("exposed_memset_share", _PART, _LOW, "exposed memory sets as a fraction of the window"),
    _trace_kind("memcpy_share", _PART, _LOW, "copies, by union, as a fraction of the window"),
    _trace_kind("idle_micro_share", _PART, _LOW, "idle time in short gaps as a fraction of the window"),
    _trace_kind("idle_macro_share", _PART, _LOW, "idle time in longer gaps as a fraction of the window"),
    _trace_kind("op_mean", _TIME, _LOW, "GPU time of a call of an operator, the mean", "op"),
    _trace_kind("op_median", _TIME, _LOW, "GPU time of a call with an argument set, the median", "op"),
    _trace_kind("op_std", _TIME, _LOW, "GPU time of a call with an argument set, the sample deviation", "op"),
    _trace_kind("op_min", _TIME, _LOW, "GPU time of a call with an argument set, the shortest", "op"),
    _trace_kind("op_max", _TIME, _LOW, "GPU time of a call with an argument set, the longest", "op"),
    _trace_kind("op_kernels", _COUNT, _LOW, "kernels, copies and fills a call of an argument set", "op"),
    _trace_kind("op_variants", _COUNT, _NEITHER, "argument sets of an operator", "op"),
    _trace_kind("op_running", _PART, _NEITHER, "share of an operator and of those that took longer", "op"),
    _trace_kind("op_flops", Dimension.WORK, _NEITHER, "operations of a call of an argument set", "op"),
    _trace_kind("op_bytes", Dimension.BYTES, _NEITHER, "unique bytes of a call of an argument set", "op"),
    _trace_kind("kernel_mean", _TIME, _LOW, "time of a kernel by launcher and stream, the mean", "kernel"),
    _trace_kind("kernel_median", _TIME, _LOW, "time of a kernel by launcher and stream, the median", "kernel"),
    _trace_kind("kernel_std", _TIME, _LOW, "time of a kernel by launcher and stream, the sample deviation", "kernel"),
    _trace_kind("kernel_min", _TIME, _LOW, "time of a kernel by launcher and stream, the shortest", "kernel"),
    _trace_kind("kernel_max", _TIME, _LOW, "time of a kernel by launcher and stream, the longest", "kernel"),
    _trace_kind(
        "kernel_share", _PART, _LOW, "time of a kernel by launcher and stream over that of all GPU rows", "kernel"
    ),
    _trace_kind("time_then", _TIME, _LOW, "GPU time of an argument set if it reached a share of its roof", "op"),
    _trace_kind("gain", _PART, _LOW, "end-to-end saving if an argument set reached a share of its roof, at most", "op"),
    _trace_kind("module_time", _TIME, _LOW, "GPU time below all instances of a module of many short kernels", "module"),
    _trace_kind("module_count", _COUNT, _NEITHER, "instances of a module of many short kernels", "module"),
    _trace_kind("module_kernels", _COUNT, _LOW, "kernels an instance of a module of many short kernels", "module"),
    _trace_kind(
        "module_saving",
        _TIME,
        _LOW,
        "what fusing a module could save: all but its products, or its longest kernel",
        "module",
    ),
    _trace_kind(
        "module_kernel_mean", _TIME, _HIGH, "mean time of the kernels of a module of many short kernels", "module"
    ),
    _trace_kind("forward_calls", _COUNT, _NEITHER, "calls of a forward operator that recorded a sequence number", "op"),
    _trace_kind(
        "backward_calls", _COUNT, _NEITHER, "calls of a forward operator whose backward pass is in the trace", "op"
    ),
    _trace_kind("forward_time", _TIME, _LOW, "GPU time below a forward operator", "op"),
    _trace_kind("backward_time", _TIME, _LOW, "GPU time of the backward passes of a forward operator", "op"),
    _trace_kind("backward_ratio", Dimension.RATIO, _LOW, "backward over forward GPU time", "op"),
    _trace_kind(
        "start_wait", _TIME, _LOW, "time from a rank's starts of collectives to the latest, where clocks agree"
    ),
    _trace_kind("comm_count", _COUNT, _NEITHER, "collectives of a kind", "collective"),
    _trace_kind("comm_ranks", _COUNT, _NEITHER, "ranks that take part in a collective", "collective"),
    _trace_kind("comm_time", _TIME, _LOW, "time of a collective as one rank saw it, waiting included", "collective"),
    _trace_kind("compared_time", _TIME, _LOW, "of two traces: a call's mean GPU time, or a part of the window", "op"),
    _trace_kind("compared_calls", _COUNT, _NEITHER, "of two traces: calls", "op"),
    _trace_kind("difference", _TIME, _LOW, "of two traces: the target's time less the reference's", "op"),
    _trace_kind("expected_slowdown", _PART, _NEITHER, "of two traces: what bandwidths or peaks explain", "op"),
    _trace_kind("tree_edits", _COUNT, _LOW, "of two traces: operators that their call trees do not share"),
)


VIEWS: Mapping[str, str] = {
    "analysis": "a report in four sections: summary, metrics, findings, recommendations",
    "annotation": "the hottest lines of source and machine code",
    "arguments": "operators by shapes and types of their arguments",
    "backward": "forward operators beside the backward passes that they caused",
    "balance": "how evenly the parts of the job share the work",
    "both": "operators with arguments that both sides have",
    **{f"only_{side}": f"operators with arguments that only the {side} has" for side in ("reference", "target")},
    "bottleneck": "what bounds each kernel, and advice by its gain",
    "categories": "time by category of operators",
    "changes": "what differs between two builds",
    "collectives": "collective operations of both sides",
    "comparison": "counters beside those of an earlier report",
    "contract": "configuration, stages, bottleneck and three opportunities in a fixed form, for other programs",
    "devlog": "an entry for a development log",
    "difference": "what differs between two files",
    "fair": "a short report for decisions",
    "findings": "what looks wrong: idle gaps, no flash attention, transposes, slow BatchNorm, tiny batched GEMM, ...",
    "fusion": "modules whose instances launch many short kernels",
    "health": "counters of each kernel beside their healthy values, and what to do if not",
    "impact": "what each operator would gain at 20, 50 and 80 % of its roof",
    "kernels": "time by kernel, and rates where its work is known",
    "mix": "machine instructions (SASS) by kind",
    "ops": "time by operator",
    "overlap": "how much communication computation covers, by rank and stage",
    "overview": "one line for each kernel",
    "pictures": "all pictures, as far as a terminal shows them",
    "ranks": "ranks side by side, and their waits for each other",
    "reference": "the short report of the first trace",
    "replay": "operations to run again outside the program, as JSON",
    "report": "the usual report; of kernels in four sections, as analysis",
    "results": "each benchmark with its times",
    "roofline": "operators against compute and memory peaks",
    "rough": "a report with every detail",
    "rules": "the profiler's own advice",
    "selection": "which kernels the library chose for each operator",
    "setup": "which process (pid) is which rank, its device and its place in the mesh",
    "stack": "callers of one operator and what it launched (--set op=NAME)",
    "steps": "each step of the program with its times",
    "streams": "which streams compute or communicate, and what for (ep_a2a, cp_ring, pp_p2p, mixed)",
    "summary": "times, calls and findings of the whole file",
    "target": "the short report of the second trace",
    "timeline": "busy, idle and overlapping time of the devices",
    "tracelens": "tables in the form of the tool TraceLens",
    "tree": "the call tree",
    "verdicts": "each case with its verdict",
    "window": "which part of the capture the figures are of, such as the median chunk of a pipeline",
}
"""What a view shows, by its name."""


def view_lines(names: Sequence[str]) -> Iterator[str]:
    """Yield each view with what it shows; a plugin's view has only its name."""
    width = max(map(len, names), default=0)
    return (f"{name:<{width}}  {VIEWS.get(name, '')}".rstrip() for name in names)
