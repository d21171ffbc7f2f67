"""Measurements to judge, with known truths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.rounds import Pairs, RoundsResult, one_look
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.device import Basis, Device, Roof
from pytest_perfgate.model.measurement import Baseline, Identity, Measurement, Samples, Stop
from pytest_perfgate.model.metric import Interval, Metric, MetricKind, MetricSet
from pytest_perfgate.model.plan import CaseKey, Outcome
from pytest_perfgate.model.values import Better, Dimension, Work
from tests import reports

EXTRA = (
    MetricKind(
        name="count",
        dimension=Dimension.COUNT,
        better=Better.NEITHER,
        doc="instructions",
        positional="opcode",
        exact=True,
        scopes=("kernel",),
        source="cubin",
    ),
    MetricKind(name="ncu", dimension=Dimension.PLAIN, better=Better.NEITHER, doc="counters", positional="name"),
    MetricKind(name="overlap", dimension=Dimension.FRACTION, better=Better.HIGHER, doc="", scopes=("stage", "rank"),
               source="a trace or an nsys export"),
)  # fmt: skip
KINDS = {**by_name(), **{kind.name: kind for kind in EXTRA}}

KEY = CaseKey(nodeid="tests/bench.py::test_gemm[4096-bf16]")
CEILING = Roof(basis=Basis.CEILING, compute=(("bf16", 1e12),), bandwidth=1e11)
HOST = Device(key="host-epyc-2", name="AMD EPYC 7763", kind="host", cache_bytes=32e6, roofs=(CEILING,))
GPU = Device(
    key="NVIDIA-H200-lock",
    name="NVIDIA H200",
    kind="gpu",
    arch="sm_90",
    cache_bytes=50e6,
    roofs=(
        Roof(basis=Basis.CLOCK, compute=(("bf16", 800e12),), bandwidth=4.8e12),
        Roof(basis=Basis.DATASHEET, compute=(("bf16", 989e12),), bandwidth=4.8e12),
        Roof(basis=Basis.CEILING, compute=(("bf16", 700e12),), bandwidth=4.2e12),
    ),
)
SHAPE = (0.999, 1.0, 1.001)
"""Processes scatter by 0.1 %."""


def samples(centre: float, *, count: int = 21, spread: float = 0.002, **fields) -> Samples:
    """One process whose median is exactly ``centre``."""
    steps = [(n - (count - 1) / 2) / count for n in range(count)]
    durations = tuple(centre * (1 + spread * step) for step in steps)
    quiet = {"unqueued": centre, "others": 0.0}
    return Samples(**{"durations": durations, "timer": "host", "stop": Stop.SETTLED} | quiet | fields)


def measured(time: float, *, device: Device = HOST, shape=SHAPE, clocks="off", work=None, **fields) -> Measurement:
    return Measurement(
        **{
            "key": KEY,
            "processes": tuple(samples(time * factor) for factor in shape),
            "device": device,
            "identity": Identity(device=device.key, clocks=clocks),
            "work": work,
        }
        | fields
    )


def ticking(time: float, shape: Sequence[float], resolution: float) -> dict[str, tuple[Samples, ...]]:
    """Processes whose timer has a tick of so large a share of a millisecond."""
    return {"processes": tuple(samples(time * factor, resolution=resolution * 1e6) for factor in shape)}


def accepted(time: float, *, device: Device = HOST, clocks="off", **fields) -> Baseline:
    return Baseline(
        **{
            "key": KEY,
            "device": device.key,
            "time": time,
            "identity": Identity(device=device.key, clocks=clocks),
            "commit": "a1b2c3d4e5",
            "when": "2026-05-02",
            "why": "TMA loads",
        }
        | fields
    )


def shown(shift: float, scatter: float = 0.0) -> RoundsResult:
    """What rounds show, as far as their number depends on it."""
    rounds = Pairs(base=(1.0,) * 10, head=(1.0 + shift,) * 10, spread=0.0)
    return replace(one_look(rounds, threshold=0.0), shift=shift, scatter=scatter)


def limit(text: str, **fields):
    return parse_limit(text, kinds=KINDS, **fields)


GEMM = Work(flops=2.0 * 4096**3, bytes=3 * 2 * 4096.0**2, dtype="bf16")

CONTEXT = JudgeContext(kinds=KINDS, gates=40)
FLOORED = JudgeContext(kinds=KINDS, gates=40, floor_ns=2000.0)
SLOWDOWN = (limit("slowdown <= 3%"),)


def verdict(time=1e6, limits=SLOWDOWN, baseline="accepted", context=CONTEXT, paired=None, **fields):
    device = fields.get("device", HOST)
    line = accepted(1e6, device=device) if baseline == "accepted" else baseline
    (result,) = judge(measured(time, **fields), limits, baseline=line, context=context, paired=paired).verdicts
    return result


def outcome_of(*args, **fields) -> Outcome:
    return verdict(*args, **fields).outcome


def judged_time(text: str, time: float, *, context=CONTEXT, **fields):
    return judge(measured(time, **fields), [limit(text)], baseline=accepted(1e6), context=context).verdicts[0]


def share(name: str, low: float, value: float, high: float) -> Metric:
    return Metric(name=name, value=value, dimension=Dimension.FRACTION, interval=Interval(low=low, high=high))


def pairs(*ratios: float, spread: float = 0.01) -> Pairs:
    return Pairs(base=(100.0,) * len(ratios), head=tuple(100.0 * r for r in ratios), spread=spread)


def timed(time: float):
    report = reports.case("test_a", 1e6)
    metrics = MetricSet(metrics=(Metric(name="time", value=time, dimension=Dimension.TIME),))
    return replace(report, measurement=replace(report.measurement, metrics=metrics))
