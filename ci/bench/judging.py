"""Judge 1,000 cases as a run does, and print what it costs."""

from __future__ import annotations

import argparse
import random
import statistics
import time
from dataclasses import replace

from pytest_perfgate.adapters.stores.records import render_record
from pytest_perfgate.core.judge.accepting_figures import accepted_figure
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.device import Basis, Device, Roof
from pytest_perfgate.model.measurement import Baseline, Environment, Identity, Measurement, Samples, Stop
from pytest_perfgate.model.metric import Metric, MetricSet
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import Dimension, Work
from pytest_perfgate.model.verdict import RunReport

GATED = (
    "change(registers) <= 0", "change(spills) <= 0", "change(smem) <= 1%", "change(overlap(stage=stage2)) >= -2pp",
    "change(duration) <= 5%", "change(bandwidth) >= -5%",
)  # fmt: skip
LIMITS = {
    "slowdown alone": ("slowdown <= 3%",),
    "slowdown and mfu, with work": ("slowdown <= 3%", "mfu >= 40%"),
    "slowdown and six gated figures, with work": ("slowdown <= 3%", *GATED),
}
TARGET, TARGET_GATED = 0.1, 0.2
"""Seconds for 1,000 cases, and for as many with six gated figures."""

Bench = list[tuple[Measurement, Baseline]]


READ = tuple(
    Metric(name=name, value=number, dimension=dimension, labels=scope)
    for name, number, dimension, scope in (
        ("registers", 128.0, Dimension.COUNT, (("kernel", "gemm"),)),
        ("spills", 0.0, Dimension.BYTES, (("kernel", "gemm"),)),
        ("smem", 98304.0, Dimension.BYTES, (("kernel", "gemm"),)),
        ("overlap", 0.831, Dimension.FRACTION, (("stage", "stage2"),)),
        ("duration", 3.9e5, Dimension.TIME, (("kernel", "gemm"),)),
        ("tc_util", 0.62, Dimension.FRACTION, (("kernel", "gemm"),)),
    )
)
BANDWIDTH = Metric(name="bandwidth", value=1e10, dimension=Dimension.BANDWIDTH)
MOVED = (1.0, 1.0, 1.0, 1.003, 0.99, 1.0, 1.02)
"""What repeats itself was accepted as it is, what is measured nearly so."""


def cases(count: int, samples: int, seed: int, *, worked: bool, figures: bool = False) -> Bench:
    """Return measurements with baselines, some of them slower."""
    source = random.Random(seed)
    roof = Roof(basis=Basis.CEILING, compute=(("fp32", 1e11),), bandwidth=1e10)
    device = Device(key="host-bench", name="bench", kind="host", cache_bytes=1e6, roofs=(roof,))
    identity = Identity(device=device.key)
    work = Work(flops=2e7, bytes=4e6, dtype="fp32") if worked else None
    pairs: Bench = []
    for number in range(count):
        key = CaseKey(nodeid=f"tests/bench.py::test_kernel[{number}]")
        time_ns = 4e5 * source.choice([1.0, 1.0, 1.1, 0.9])
        processes = tuple(
            Samples(
                durations=tuple(time_ns * source.lognormvariate(0, 0.01) for _ in range(samples)),
                timer="host",
                stop=Stop.SETTLED,
            )
            for _ in range(3)
        )
        measurement = Measurement(key=key, processes=processes, device=device, identity=identity, work=work)
        own = READ
        if figures:
            own = tuple(replace(one, value=one.value + number) if one.value >= 1 else one for one in READ)
            measurement = measurement.with_metrics(MetricSet(metrics=own))
        accepted = tuple(
            accepted_figure(replace(one, value=one.value * moved)) for one, moved in zip((*own, BANDWIDTH), MOVED)
        )
        line = Baseline(key=key, device=device.key, time=4e5, identity=identity, figures=accepted if figures else ())
        pairs.append((measurement, line))
    return pairs


def seconds(bench: Bench, texts: tuple[str, ...], *, read: bool = False) -> float:
    """Return the CPU time of judging all of them once, and of reading every metric, as writing a record does."""
    kinds = by_name()
    limits = [parse_limit(text, kinds=kinds) for text in texts]
    context = JudgeContext(gates=len(bench))
    start = time.process_time()
    for measurement, baseline in bench:
        judged = judge(measurement, limits, baseline=baseline, context=context).measurement
        if read and judged is not None:
            _ = judged.metrics.metrics, judged.metrics.absent
    return time.process_time() - start


def parsing(count: int) -> float:
    """Return the seconds of reading so many limits."""
    kinds = by_name()
    start = time.process_time()
    for _ in range(count):
        parse_limit("count(HMMA) >= 1" if "count" in kinds else "mfu >= 55%", kinds=kinds)
    return time.process_time() - start


def main() -> int:
    """Print the figures; fail when the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(f"judging {options.cases} cases of 3 x {options.samples} samples")
    missed = False
    for name, texts in LIMITS.items():
        gated = set(GATED) <= set(texts)
        target = (TARGET_GATED if gated else TARGET) * options.cases / 1000
        bench = cases(options.cases, options.samples, seed=1, worked=len(texts) > 1, figures=gated)
        took = [seconds(bench, texts) for _ in range(options.repeats)]
        whole = [seconds(bench, texts, read=True) for _ in range(options.repeats)]
        missed = missed or min(took) > target
        print(
            f"  {name}: best {min(took):.4f} s, median {statistics.median(took):.4f} s, "
            f"{min(took) / target:.2f} x target of {target:.3f} s; every metric read as well: {min(whole):.4f} s"
        )
    print(f"reading {options.cases} limits: {parsing(options.cases):.4f} s")
    each = record_bytes(cases(options.cases, options.samples, seed=1, worked=False, figures=True)) / options.cases
    print(f"a record of {options.cases} cases with the time and six gated figures: {each:.0f} bytes each")
    return int(missed)


def record_bytes(bench: Bench) -> int:
    """Return the size of their record on disk, without their samples."""
    kinds = by_name()
    texts = ("slowdown <= 3%", *GATED[:-1], "change(tc_util) >= -2pp")
    parsed = [parse_limit(text, kinds=kinds) for text in texts]
    context = JudgeContext(gates=len(bench))
    reports = tuple(judge(m, parsed, baseline=line, context=context) for m, line in bench)
    report = RunReport(cases=reports, environment=Environment(), mode="full", started="2026-06-01T10:00:00+00:00")
    return len(render_record(report, {"file": "x.samples"}))


if __name__ == "__main__":
    raise SystemExit(main())
