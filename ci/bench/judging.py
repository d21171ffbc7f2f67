"""Judge 1,000 cases as a run does, and print what it costs."""

from __future__ import annotations

import argparse
import random
import statistics
import time

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.device import Basis, Device, Roof
from pytest_perfgate.model.measurement import Baseline, Identity, Measurement, Samples, Stop
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import Work

LIMITS = {"slowdown alone": ("slowdown <= 3%",), "slowdown and mfu, with work": ("slowdown <= 3%", "mfu >= 40%")}
TARGET = 0.1
"""Seconds for 1,000 cases."""

Bench = list[tuple[Measurement, Baseline]]


def cases(count: int, samples: int, seed: int, *, worked: bool) -> Bench:
    """Measurements with baselines, some of them slower."""
    source = random.Random(seed)
    roof = Roof(basis=Basis.CEILING, compute=(("fp32", 1e11),), bandwidth=1e10)
    device = Device(key="host-bench", name="bench", kind="host", cache_bytes=1e6, roofs=(roof,))
    identity = Identity(device=device.key)
    work = Work(flops=2e7, bytes=4e6, dtype="fp32") if worked else None
    found: Bench = []
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
        found.append((measurement, Baseline(key=key, device=device.key, time=4e5, identity=identity)))
    return found


def seconds(bench: Bench, texts: tuple[str, ...], *, read: bool = False) -> float:
    """User and system time of judging all of them once, and of reading every metric, as writing a record does."""
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
    """Seconds to read so many limits."""
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
    asked = parser.parse_args()
    target = TARGET * asked.cases / 1000
    print(f"judging {asked.cases} cases of 3 x {asked.samples} samples, target {target:.3f} s")
    worst = 0.0
    for name, texts in LIMITS.items():
        bench = cases(asked.cases, asked.samples, seed=1, worked=len(texts) > 1)
        took = [seconds(bench, texts) for _ in range(asked.repeats)]
        whole = [seconds(bench, texts, read=True) for _ in range(asked.repeats)]
        worst = max(worst, min(took))
        print(
            f"  {name}: best {min(took):.4f} s, median {statistics.median(took):.4f} s, "
            f"{min(took) / target:.2f} x target; every metric read as well: {min(whole):.4f} s"
        )
    print(f"reading {asked.cases} limits: {parsing(asked.cases):.4f} s")
    return int(worst > target)


if __name__ == "__main__":
    raise SystemExit(main())
