"""The metrics that can be limited, as one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pytest_perfgate.model.metric import MetricKind
from pytest_perfgate.model.values import Better, Dimension

_LOW, _HIGH, _NEITHER = Better.LOWER, Better.HIGHER, Better.NEITHER

_TIME, _PART = Dimension.TIME, Dimension.FRACTION

_TRACED = ("case", "op", "category", "rank", "gpu", "step", "shapes", "types", "strides", "scalars")
"""Scopes of what a test times and a trace splits by operator."""

TIMING_KINDS: tuple[MetricKind, ...] = (
    MetricKind(
        name="time",
        dimension=_TIME,
        better=_LOW,
        doc="median time of one call; `q=99%` is a quantile of the calls, `stat=min` the least",
        scopes=("q", "stat"),
    ),
    MetricKind(
        name="slowdown",
        dimension=_PART,
        better=_LOW,
        doc="time against the accepted baseline, or the base revision, minus one",
        scopes=(*_TRACED, "kernel", "stage", "part"),
    ),
    MetricKind(
        name="speedup",
        dimension=Dimension.RATIO,
        better=_HIGH,
        doc="time of another call, or of a file, over the time of this one, both timed in turns",
        scopes=("over", "case"),
        positional="over",
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
        name="worst",
        dimension=_PART,
        better=_LOW,
        doc="the worst of a metric over a parametrised test, with the case that has it",
        scopes=("of", "family"),
        positional="of",
    ),
    MetricKind(name="tflops", dimension=Dimension.FLOPS, better=_HIGH, doc="operations per second", scopes=_TRACED),
    MetricKind(
        name="bandwidth",
        dimension=Dimension.BANDWIDTH,
        better=_HIGH,
        doc="unique bytes per second",
        scopes=_TRACED,
    ),
    MetricKind(
        name="throughput", dimension=Dimension.RATE, better=_HIGH, doc="items per second", scopes=("case", "rank")
    ),
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
    MetricKind(
        name="cv",
        dimension=_PART,
        better=_LOW,
        doc="coefficient of variation: deviation of a process's samples over their mean, the middle process",
        scopes=("case",),
    ),
    MetricKind(name="launch_gap", dimension=_TIME, better=_LOW, doc="host-visible minus device-busy time of a call"),
    MetricKind(
        name="span",
        dimension=_TIME,
        better=_LOW,
        doc="first start to last end of a call's kernels, as `time` is where the timer sees them",
        scopes=("case",),
        source="the cupti timer",
    ),
)

_COUNT, _BYTES = Dimension.COUNT, Dimension.BYTES

_COUNTED = frozenset({_COUNT, _BYTES, Dimension.WORK})
"""What a profile counts: the same program gives the same number."""

_WHO = ("kernel", "arch", "launch")

_CODE, _COUNTERS = "cubin", "ncu"


def _kind(name: str, dimension: Dimension, better: Better, doc: str, source: str, *scopes: str) -> MetricKind:
    return MetricKind(
        name=name, dimension=dimension, better=better, doc=doc, source=source, scopes=scopes or _WHO,
        positional=scopes[0] if scopes and scopes[0] not in _WHO else "", exact=source == _CODE or dimension is _COUNT,
    )  # fmt: skip


KERNEL_KINDS: tuple[MetricKind, ...] = (
    _kind("registers", _COUNT, _LOW, "registers a thread", _CODE),
    _kind("stack", _BYTES, _LOW, "stack frame of a thread", _CODE),
    _kind("spills", _BYTES, _LOW, "local memory a thread: spilled registers and local arrays", _CODE),
    _kind("smem", _BYTES, _LOW, "shared memory a block, with what the launch adds where that is known", _CODE),
    _kind("cliff_distance", _BYTES, _HIGH, "bytes a block until only one block fits; negative above the cliff", _CODE,
          "kernel", "arch", "launch", "threads", "smem"),
    _kind("occupancy_limit", _PART, _HIGH, "theoretical occupancy of a launch", _CODE,
          "kernel", "arch", "launch", "threads", "smem"),
    _kind("count", _COUNT, _NEITHER, "instructions of one opcode, in the kernel or (loop=main) in its main loop", _CODE,
          "opcode", "modifiers", "kernel", "arch", "launch", "loop"),
    _kind("compute_load_ratio", Dimension.PLAIN, _HIGH, "compute instructions for each global load in the main loop",
          _CODE),
    _kind("wide_loads", _PART, _HIGH, "share of global loads that move 16 bytes a thread, in the main loop", _CODE),
    _kind("stall_cycles", _COUNT, _LOW, "sum of stall counts: a signal for differences, not a time", _CODE,
          "kernel", "arch", "launch", "loop"),
    _kind("barrier_waits", _COUNT, _LOW, "instructions that wait for a scoreboard barrier: loads, shared memory", _CODE,
          "kernel", "arch", "launch", "loop"),
    _kind("occupancy", _PART, _HIGH, "achieved occupancy", _COUNTERS),
    _kind("tc_util", _PART, _HIGH, "tensor-core pipe active, of its peak", _COUNTERS),
    _kind("dram", _PART, _HIGH, "DRAM throughput, of its peak", _COUNTERS),
    _kind("sm", _PART, _HIGH, "throughput of the busiest pipe of the multiprocessors, of its peak", _COUNTERS),
    _kind("l2_hit", _PART, _HIGH, "L2 sector hit rate", _COUNTERS),
    _kind("l1_hit", _PART, _HIGH, "L1 sector hit rate", _COUNTERS),
    _kind("waves", Dimension.PLAIN, _HIGH, "waves of blocks a multiprocessor", _COUNTERS),
    _kind("duration", Dimension.TIME, _LOW, "time of the kernel under the profiler", _COUNTERS),
    _kind("stall", _PART, _LOW, "share of a warp's time that it waits for this reason", _COUNTERS,
          "reason", "kernel", "arch", "launch"),
    _kind("executed", _COUNT, _NEITHER, "warp instructions of one opcode that were executed", _COUNTERS,
          "opcode", "modifiers", "kernel", "arch", "launch"),
    _kind("ncu", Dimension.PLAIN, _NEITHER, "any metric of Nsight Compute by its full name, as ncu prints it",
          _COUNTERS, "metric", "kernel", "arch", "launch"),
    _kind("rocprof", Dimension.PLAIN, _NEITHER, "any counter of rocprof by its name", "rocprof",
          "counter", "kernel", "arch", "launch"),
)  # fmt: skip

CODE_NAMES = frozenset(kind.name for kind in KERNEL_KINDS if kind.source == _CODE)
"""What machine code says by itself, without a GPU and without a clock."""

SCOPES = ("stage", "rank", "gpu", "stream", "step", "kernel", "op", "category", "pid")

_SOURCE = "a trace or an nsys export"


def profile_kind(name: str, dimension: Dimension, better: Better, doc: str, positional: str = "stage") -> MetricKind:
    """A kind that a profile produces, with the scopes all profiles share."""
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
    profile_kind("sync_share", Dimension.FRACTION, _LOW, "the same as a fraction of the window", "rank"),
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
    profile_kind("overlap_sum", _PART, _HIGH, "the same, summed per communication kernel"),
    profile_kind("overlap_min", _PART, _HIGH, "the least covered communication kernel"),
    profile_kind("overlap_max", _PART, _HIGH, "the best covered communication kernel"),
    profile_kind("exposed_comm", _TIME, _LOW, "communication that no computation covers, by union"),
    profile_kind("exposed_sum", _TIME, _LOW, "the same, summed per communication kernel"),
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
"""What an argument set of an operator is told apart by."""

_OWN = (*ARGUMENTS, "launcher", "module", "target", "part", "side", "collective", "group")


def _trace_kind(name: str, dimension: Dimension, better: Better, doc: str, positional: str = "rank") -> MetricKind:
    scopes = (*SCOPES, *_OWN)
    return MetricKind(
        name=name,
        dimension=dimension,
        better=better,
        doc=doc,
        scopes=scopes,
        positional=positional,
        source="a PyTorch trace",
        exact=dimension in _COUNTED,
    )


TRACE_KINDS: tuple[MetricKind, ...] = (
    _trace_kind("sync_count", Dimension.COUNT, _LOW, "blocking synchronisations of the host in the window"),
    _trace_kind("coverage", _PART, _HIGH, "GPU time linked to a launch, as a fraction of all GPU time"),
    _trace_kind("idle_micro", _TIME, _LOW, "idle time in gaps up to the threshold (10 µs)"),
    _trace_kind("idle_macro", _TIME, _LOW, "idle time in longer gaps"),
    _trace_kind("memcpy_time", _TIME, _LOW, "time in copies, by union"),
    _trace_kind("memset_time", _TIME, _LOW, "time in memory sets, by union"),
    _trace_kind("step_time", _TIME, _LOW, "time between the first and last GPU work of a step", "step"),
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
    _trace_kind("idle_micro_share", _PART, _LOW, "idle time in gaps up to the threshold as a fraction of the window"),
    _trace_kind("idle_macro_share", _PART, _LOW, "idle time in longer gaps as a fraction of the window"),
    _trace_kind("op_mean", _TIME, _LOW, "GPU time of a call of an operator, the mean", "op"),
    _trace_kind("op_median", _TIME, _LOW, "the same of an argument set, the median", "op"),
    _trace_kind("op_std", _TIME, _LOW, "the same, the sample deviation", "op"),
    _trace_kind("op_min", _TIME, _LOW, "the same, the shortest", "op"),
    _trace_kind("op_max", _TIME, _LOW, "the same, the longest", "op"),
    _trace_kind("op_kernels", _COUNT, _LOW, "kernels, copies and fills a call of an argument set", "op"),
    _trace_kind("op_variants", _COUNT, _NEITHER, "argument sets of an operator", "op"),
    _trace_kind("op_running", _PART, _NEITHER, "share of an operator and of those that took longer", "op"),
    _trace_kind("op_flops", Dimension.WORK, _NEITHER, "operations of a call of an argument set", "op"),
    _trace_kind("op_bytes", Dimension.BYTES, _NEITHER, "unique bytes of a call of an argument set", "op"),
    _trace_kind("kernel_mean", _TIME, _LOW, "time of a kernel by launcher and stream, the mean", "kernel"),
    _trace_kind("kernel_median", _TIME, _LOW, "the same, the median", "kernel"),
    _trace_kind("kernel_std", _TIME, _LOW, "the same, the sample deviation", "kernel"),
    _trace_kind("kernel_min", _TIME, _LOW, "the same, the shortest", "kernel"),
    _trace_kind("kernel_max", _TIME, _LOW, "the same, the longest", "kernel"),
    _trace_kind(
        "kernel_share", _PART, _LOW, "time of a kernel by launcher and stream over that of all GPU rows", "kernel"
    ),
    _trace_kind("time_then", _TIME, _LOW, "GPU time of an argument set if it reached a share of its roof", "op"),
    _trace_kind("gain", _PART, _LOW, "what that would save end to end, at most", "op"),
    _trace_kind("module_time", _TIME, _LOW, "GPU time below all instances of a module of many short kernels", "module"),
    _trace_kind("module_count", _COUNT, _NEITHER, "instances of such a module", "module"),
    _trace_kind("module_kernels", _COUNT, _LOW, "kernels an instance of such a module", "module"),
    _trace_kind(
        "module_saving", _TIME, _LOW, "of such a module: all but the longest kernel of each instance", "module"
    ),
    _trace_kind("module_kernel_mean", _TIME, _HIGH, "mean time of the kernels of such a module", "module"),
    _trace_kind("forward_calls", _COUNT, _NEITHER, "calls of a forward operator that recorded a sequence number", "op"),
    _trace_kind("backward_calls", _COUNT, _NEITHER, "those whose backward pass is in the trace", "op"),
    _trace_kind("forward_time", _TIME, _LOW, "GPU time below a forward operator", "op"),
    _trace_kind("backward_time", _TIME, _LOW, "GPU time of the backward passes that it caused", "op"),
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

PASS_KINDS: tuple[MetricKind, ...] = (
    MetricKind(
        name="peak_memory",
        dimension=Dimension.BYTES,
        better=_LOW,
        doc="memory of the host that a call takes at the most, beyond what stood before it",
        scopes=("by",),
    ),
    MetricKind(
        name="peak_vram",
        dimension=Dimension.BYTES,
        better=_LOW,
        doc="memory of the device that a call holds at the most, beyond what stood before it",
    ),
    MetricKind(
        name="allocations", dimension=Dimension.COUNT, better=_LOW, doc="a call's requests for memory of the device"
    ),
    MetricKind(name="energy", dimension=Dimension.ENERGY, better=_LOW, doc="energy that the device takes for a call"),
    MetricKind(
        name="compile_time",
        dimension=_TIME,
        better=_LOW,
        doc="the first call of a fresh process with cold caches, less a steady one",
    ),
)
"""Of a timed call, in a run of their own; only taken where somebody asks."""

PASSES = tuple(kind.name for kind in PASS_KINDS)

OWN_KIND = MetricKind(
    name="metric",
    dimension=Dimension.PLAIN,
    better=_NEITHER,
    doc="a figure of the test's own, by its name: what the name alone means where the test's file writes it",
    scopes=("name",),
    positional="name",
    source="perfgate.metric() in the test",
)


def own_kind(name: str) -> MetricKind:
    """The kind of a figure that a test takes itself; its unit, and so its dimension, is known when it ran."""
    return replace(OWN_KIND, name=name, scopes=(), positional="")


BUILT_IN: tuple[MetricKind, ...] = (
    *TIMING_KINDS,
    *PASS_KINDS,
    OWN_KIND,
    *OVERLAP_KINDS,
    *TRACE_KINDS,
    *NSYS_KINDS,
    *KERNEL_KINDS,
)


def by_name(extra: Iterable[MetricKind] = ()) -> Mapping[str, MetricKind]:
    """Kinds under every name they answer to; a plugin's kind does not replace a built-in."""
    table: dict[str, MetricKind] = {}
    for kind in (*BUILT_IN, *extra):
        for name in (kind.name, *kind.aliases):
            table.setdefault(name, kind)
    return table
