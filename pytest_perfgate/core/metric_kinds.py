"""The metrics that limits can name, as one table, and figures that a test takes itself."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_perfgate.core.trace_kinds import NSYS_KINDS, OVERLAP_KINDS, TRACE_KINDS
from pytest_perfgate.model.metric import FigureName, MetricKind
from pytest_perfgate.model.values import OF_ITEMS, UNITS, Better, Dimension, dimension_of, regex

if TYPE_CHECKING:
    from pytest_perfgate.model.errors import PerfgateError
    from pytest_perfgate.model.measurement import Reading
    from pytest_perfgate.model.plan import Limit

_LOW, _HIGH, _NEITHER = Better.LOWER, Better.HIGHER, Better.NEITHER

_TIME, _PART = Dimension.TIME, Dimension.FRACTION

_TRACED = ("case", "op", "category", "rank", "gpu", "step", "shapes", "types", "strides", "scalars")
"""Scopes of a test's own metrics that a trace splits by operator."""

_RATED = (*_TRACED, "kernel", "launcher", "stream")
"""The same of rates, which a trace also splits by kernel."""


def _timed(name: str, dimension: Dimension, better: Better, doc: str, *scopes: str) -> MetricKind:
    """Return a kind of a timed call; its first scope is that of a bare word where it is ``over`` or ``of``."""
    positional = scopes[0] if scopes[:1] in {("over",), ("of",)} else ""
    return MetricKind(name=name, dimension=dimension, better=better, doc=doc, scopes=scopes, positional=positional)


TIMING_KINDS: tuple[MetricKind, ...] = (
    _timed("time", _TIME, _LOW, "median time of one call; `q=99%` is a quantile of the calls, `stat=min` the least",
           "q", "stat"),
    _timed("slowdown", _PART, _LOW, "time against the accepted baseline, or the base revision, minus one",
           *_TRACED, "kernel", "stage", "part"),
    _timed("speedup", Dimension.RATIO, _HIGH,
           "time of another call, or of a file, over the time of this one, both timed in turns", "over", "case"),
    _timed("geomean", _PART, _LOW, "geometric mean of a metric over a parametrised test", "of", "family"),
    _timed("worst", _PART, _LOW, "the worst of a metric over a parametrised test, with the case that has it",
           "of", "family"),
    _timed("tflops", Dimension.FLOPS, _HIGH, "operations per second", *_RATED),
    _timed("bandwidth", Dimension.BANDWIDTH, _HIGH, "unique bytes per second", *_RATED),
    _timed("throughput", Dimension.RATE, _HIGH, "items per second, such as samples or tokens", "case", "rank"),
    _timed("intensity", Dimension.INTENSITY, _NEITHER,
           "operations per byte, the arithmetic intensity; memory limits what is below the ridge (balance) point",
           *_TRACED),
    *(
        _timed(f"{stem}{tail}", _PART, _HIGH, f"{what} {of}",
               *(_RATED if f"{stem}{tail}" == "sol_datasheet" else _TRACED), *(roof if not tail else ()))
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
    _timed("cv", _PART, _LOW,
           "coefficient of variation: deviation of a process's samples over their mean, the middle process", "case"),
    _timed("launch_gap", _TIME, _LOW, "host-visible minus device-busy time of a call"),
    replace(
        _timed("span", _TIME, _LOW,
               "first start to last end of a call's kernels, as `time` is where the timer sees them", "case"),
        source="the cupti timer",
    ),
)  # fmt: skip

_COUNT, _BYTES = Dimension.COUNT, Dimension.BYTES

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
    _kind("cliff_distance", _BYTES, _HIGH,
          "shared memory (smem) a block until only one block fits; negative above the cliff", _CODE,
          "kernel", "arch", "launch", "threads", "smem"),
    _kind("occupancy_limit", _PART, _HIGH, "theoretical occupancy of a launch", _CODE,
          "kernel", "arch", "launch", "threads", "smem"),
    _kind("count", _COUNT, _NEITHER,
          "instructions of one opcode, such as HMMA, in the kernel or (loop=main) in its main loop", _CODE,
          "opcode", "modifiers", "kernel", "arch", "launch", "loop"),
    _kind("compute_load_ratio", Dimension.PLAIN, _HIGH,
          "compute instructions for each global load in the main loop; cp.async pays where it is low", _CODE),
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
"""Metrics of machine code alone, without a GPU and without a clock."""

PASS_KINDS: tuple[MetricKind, ...] = (
    _timed("peak_memory", _BYTES, _LOW, "memory of the host that a call takes at the most, beyond what stood before it",
           "by"),
    _timed("peak_vram", _BYTES, _LOW,
           "memory of the device that a call holds at the most, beyond what stood before it"),
    _timed("allocations", _COUNT, _LOW, "a call's requests for memory of the device"),
    _timed("energy", Dimension.ENERGY, _LOW, "energy that the device takes for a call"),
    _timed("compile_time", _TIME, _LOW, "the first call of a fresh process with cold caches, less a steady one"),
)  # fmt: skip
"""Metrics of a timed call in runs of their own, taken only on request."""

PASSES = tuple(kind.name for kind in PASS_KINDS)

OWN_KIND = MetricKind(
    name="metric",
    dimension=Dimension.PLAIN,
    better=_NEITHER,
    doc="a figure of your own, by its name, of the test or a file; a test that takes it may write the name alone",
    scopes=("name",),
    positional="name",
    source="perfgate.metric() in the test",
)


EXAMPLES: Mapping[str, str] = {
    "speedup": "speedup(over=eager) >= 1.2x",
    "geomean": "geomean(slowdown) <= 1%",
    "worst": "worst(cv) <= 10%",
    "metric": "metric(loss) <= 0.1",
    "count": "count(HMMA) >= 1",
    "balance": "balance(over=rank) <= 10%",
}
"""A limit on each metric that has to name a scope, and on some that usually do."""


def own_kind(name: str) -> MetricKind:
    """Return the kind of a figure that a test takes itself; its unit and dimension are known after the run."""
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
    """Return kinds under all of their names; a plugin's kind does not replace a built-in."""
    table: dict[str, MetricKind] = {}
    for kind in (*BUILT_IN, *extra):
        for name in (kind.name, *kind.aliases):
            table.setdefault(name, kind)
    return table


_NAME = regex(r"[A-Za-z_][\w.]*", re.ASCII)

_ITEMS = regex(r"([MGTP]?)([a-z][a-z_-]+/s)", re.ASCII)
"""A unit of items of the user's own: ``tokens/s``; a first k belongs to the name, as in ``kernels/s``."""

_DIRECTIONS = {"lower": Better.LOWER, "higher": Better.HIGHER, "neither": Better.NEITHER}


@cache
def own_title(name: str) -> FigureName:
    """Return a user's figure as limits select it: a name that is no word, or one of perfgate's own, is a scope."""
    return (name, ()) if _NAME.fullmatch(name) and name not in by_name() else (OWN_KIND.name, (("name", name),))


def own_reading(name: str, values: Any, *, unit: str = "", better: str = "lower", exact: bool = False) -> Reading:
    """Return a user's own figure from ``perfgate.metric``; raise if no limit could judge it."""
    from pytest_perfgate.model.measurement import Reading

    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _wrong(f"metric() was given the name {name!r:.60}", "letters, digits and _: metric('bytes_sent', 12)")
    if name in by_name():
        raise _wrong(f"{name} is a metric of perfgate's own", f"give yours another name, such as my_{name}")
    if better not in _DIRECTIONS:
        raise _wrong(f"better={better!r:.60} is no direction", f"better= is one of {', '.join(_DIRECTIONS)}")
    numbers = tuple(_number(one, name) for one in _several(values))
    if not numbers:
        raise _wrong(f"metric({name!r}) was given no value", "give it one, or a list of them")
    factor, dimension = unit_of(unit)
    return Reading(
        name=name,
        values=tuple(number * factor for number in numbers),
        dimension=dimension,
        better=_DIRECTIONS[better],
        exact=bool(exact),
        note=_items_note(unit),
    )


_OF_RATES = {Dimension.BANDWIDTH: "bandwidth", Dimension.FLOPS: "tflops", Dimension.RATE: "throughput"}

COUNTED = "count"
"""The unit of counts, for ``perfgate.record``."""


def recorded(numbers: Sequence[float], unit: str, name: str) -> Reading:
    """Return numbers that are not times: a rate as that metric, others under the call's name."""
    from pytest_perfgate.model.measurement import Reading

    known = "" if unit == COUNTED else unit
    factor, dimension = unit_of(known)
    if dimension in _OF_RATES:
        values = tuple(number * factor for number in numbers)
        return Reading(name=_OF_RATES[dimension], values=values, dimension=dimension, note=_items_note(unit))
    if not name:
        fix = f"name the figure: record([...], {unit!r}, name='launches'), and limit it: launches <= 12"
        raise _wrong(f"record() was given numbers in {unit!r}, and nothing says what they are of", fix)
    return own_reading(name, numbers, unit=known)


def named_among(figures: Mapping[str, Any], limits: Iterable[Limit]) -> tuple[Reading, ...]:
    """Return the numbers that limits name, from the figures that a test reported itself."""
    # A limit on a metric of perfgate's own means that one, whatever else the test calls so.
    named = sorted({limit.metric for limit in limits} & figures.keys() - by_name().keys())
    offered = ((name, figures[name]) for name in named if not isinstance(figures[name], bool))
    numbers = ((name, figure) for name, figure in offered if isinstance(figure, (int, float)))
    return tuple(own_reading(name, number) for name, number in numbers if math.isfinite(number))


def unit_of(unit: str) -> tuple[float, Dimension]:
    """Return the factor to internal units and the dimension of a unit; without a unit, a plain number."""
    if not unit:
        return 1.0, Dimension.PLAIN
    dimension = dimension_of(unit) if isinstance(unit, str) else None
    if dimension is not None:
        return UNITS[dimension][unit], dimension
    if match := _ITEMS.fullmatch(str(unit)):
        return UNITS[Dimension.RATE][f"{match[1]}/s"], Dimension.RATE
    fix = "a unit of limits, such as ms, %, MB, GB/s or /s; of anything else leave unit= out and put it in the name"
    raise _wrong(f"limits know no unit {unit!r:.60}", fix)


def _items_note(unit: str) -> str:
    match = _ITEMS.fullmatch(unit) if dimension_of(unit) is None else None
    return f"{OF_ITEMS}{match[2]}" if match else ""


def _several(values: Any) -> list[Any]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable) or getattr(values, "shape", None) == ():
        return [values]
    return list(values)


def _number(one: Any, name: str) -> float:
    try:
        number = float(one) if not isinstance(one, (str, bytes, bool)) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise _wrong(f"metric({name!r}) was given {one!r:.60}, which is not a finite number", "give it numbers alone")
    return number


def _wrong(what: str, fix: str) -> PerfgateError:
    from pytest_perfgate.model.errors import PerfgateError

    return PerfgateError("call-wrong", what, fix=fix)
