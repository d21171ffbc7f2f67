"""Metrics of one kernel: counters and machine code."""

from __future__ import annotations

from pytest_perfgate.model.metric import MetricKind
from pytest_perfgate.model.quantity import Better, Dimension

_LOW, _HIGH, _NEITHER = Better.LOWER, Better.HIGHER, Better.NEITHER
_PART, _COUNT, _BYTES = Dimension.FRACTION, Dimension.COUNT, Dimension.BYTES
_WHO = ("kernel", "arch", "launch")
_CODE, _COUNTERS = "cubin", "ncu"


def _kind(name: str, dimension: Dimension, better: Better, doc: str, source: str, *scopes: str) -> MetricKind:
    return MetricKind(
        name=name, dimension=dimension, better=better, doc=doc, source=source, scopes=scopes or _WHO,
        positional=scopes[0] if scopes and scopes[0] not in _WHO else "",
    )  # fmt: skip


KINDS: tuple[MetricKind, ...] = (
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
CODE_NAMES = frozenset(kind.name for kind in KINDS if kind.source == _CODE)
"""What machine code says by itself, without a GPU and without a clock."""
