"""What the pages of ncu call its metrics, and the units they are scaled to."""

from __future__ import annotations

import re

from pytest_perfgate.model.quantity import TIME_UNITS

_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"

_L1 = "l1tex__throughput.avg.pct_of_peak_sustained_active"
LABELS: dict[tuple[str, str], str] = {
    ("Duration", ""): "gpu__time_duration.sum",
    ("DRAM Throughput", "%"): f"dram__throughput{_ELAPSED}",
    ("Memory Throughput", "%"): f"gpu__compute_memory_throughput{_ELAPSED}",
    ("Memory Throughput", "byte/s"): "dram__bytes.sum.per_second",
    ("Compute (SM) Throughput", "%"): f"sm__throughput{_ELAPSED}",
    ("SM [%]", "%"): f"sm__throughput{_ELAPSED}",
    ("Memory [%]", "%"): f"gpu__compute_memory_throughput{_ELAPSED}",
    ("SOL SM", "%"): f"sm__throughput{_ELAPSED}",
    ("SOL Memory", "%"): f"gpu__compute_memory_throughput{_ELAPSED}",
    ("SOL DRAM", "%"): f"dram__throughput{_ELAPSED}",
    ("SOL FB", "%"): f"dram__throughput{_ELAPSED}",
    ("SOL L2", "%"): f"lts__throughput{_ELAPSED}",
    ("SOL L2 Cache", "%"): f"lts__throughput{_ELAPSED}",
    ("L2 Cache Throughput", "%"): f"lts__throughput{_ELAPSED}",
    ("L1/TEX Cache Throughput", "%"): _L1,
    ("SOL L1/TEX Cache", "%"): _L1,
    ("SOL TEX", "%"): _L1,
    ("L1/TEX Hit Rate", "%"): "l1tex__t_sector_hit_rate.pct",
    ("L2 Hit Rate", "%"): "lts__t_sector_hit_rate.pct",
    ("Achieved Occupancy", "%"): "sm__warps_active.avg.pct_of_peak_sustained_active",
    ("Achieved Active Warps Per SM", ""): "sm__warps_active.avg.per_cycle_active",
    ("Theoretical Occupancy", "%"): "sm__maximum_warps_per_active_cycle_pct",
    ("Theoretical Active Warps per SM", ""): "sm__maximum_warps_avg_per_active_cycle",
    ("Block Limit SM", ""): "launch__occupancy_limit_blocks",
    ("Block Limit Registers", ""): "launch__occupancy_limit_registers",
    ("Block Limit Shared Mem", ""): "launch__occupancy_limit_shared_mem",
    ("Block Limit Warps", ""): "launch__occupancy_limit_warps",
    ("Registers Per Thread", ""): "launch__registers_per_thread",
    ("Waves Per SM", ""): "launch__waves_per_multiprocessor",
    ("Static Shared Memory Per Block", ""): "launch__shared_mem_per_block_static",
    ("Dynamic Shared Memory Per Block", ""): "launch__shared_mem_per_block_dynamic",
    ("Driver Shared Memory Per Block", ""): "launch__shared_mem_per_block_driver",
    ("Shared Memory Configuration Size", ""): "launch__shared_mem_config_size",
    ("Block Size", ""): "launch__block_size",
    ("Threads", ""): "launch__thread_count",
}
"""(label, base unit) to full name; an empty unit answers to any."""

_FULL = re.compile(r"[a-z0-9]\w*__\w+(?:\.\w+)*")
"""A full name, alone or beside its label."""
_PREFIXES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BASES = ("byte", "hz", "Hz", "inst", "cycle", "cycles", "block", "thread", "warp", "sector")
_LONG = {**TIME_UNITS, "nsecond": 1.0, "usecond": 1e3, "msecond": 1e6, "second": 1e9}


_SHARE_MOST = 110.0
"""Percent: passes of one kernel differ, so that a share of a peak may be read a little above all of it."""
_SHARES = frozenset(full for full in LABELS.values() if ".pct_of_peak" in full or full.endswith("_cycle_pct"))
_LEAST = {"launch__registers_per_thread": 1.0, "launch__block_size": 1.0, "launch__waves_per_multiprocessor": 0.0}
_MOST = {"launch__registers_per_thread": 256.0, "launch__block_size": 1024.0}
_COUNTED = frozenset(LABELS.values())


def impossible(name: str, value: float) -> str:
    """Why a known metric cannot have this value; empty where it can."""
    least = _LEAST.get(name, 0.0)
    most = _SHARE_MOST if name in _SHARES else _MOST.get(name)
    if name in _COUNTED and value < least:
        return f"it is at least {least:g}"
    return f"it is at most {100 if name in _SHARES else most:g}" if most is not None and value > most else ""


def full_name(name: str, base: str) -> str:
    """Of a metric by its label, its full name or both, with the base unit that it is told in."""
    known = LABELS.get((name, base)) or LABELS.get((name, ""))
    beside = None if known else _FULL.search(name)
    return known or (beside[0] if beside and " " in name else name)


def scaled(number: float, unit: str) -> tuple[float, str]:
    """The number in the base unit: nanoseconds, bytes, hertz, instructions."""
    if unit in _LONG:
        return number * _LONG[unit], "ns"
    head, slash, tail = unit.partition("/")
    tail = {"second": "s", "nsecond": "ns", "usecond": "us"}.get(tail, tail)
    factor = 1.0
    if head not in _BASES and head[1:] in _BASES and head[0] in _PREFIXES:
        factor, head = _PREFIXES[head[0]], head[1:]
    if tail in {"ns", "us", "ms"}:
        factor, tail = factor * 1e9 / _LONG[tail], "s"
    return number * factor, f"{head.replace('Hz', 'hz')}{slash}{tail}"
