"""What asking the stopping rule costs a sample, beside reading the clock and beside the shortest sample."""

from __future__ import annotations

import random
import sys
import time
from itertools import repeat
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pytest_perfgate.core.stats.summary import Stopping
from pytest_perfgate.model.plan import Plan

SAMPLES, TIMES, SHORTEST_NS = 2000, 30, 50_000
PLAN = Plan(max_samples=10**9, spread=0.0)


def sample_cost(slice_: int) -> float:
    """Return the nanoseconds of a sample under a rule that is evaluated after each slice."""
    generator = random.Random(1)
    script = [50_000 * (1 + 0.02 * generator.random()) for _ in range(SAMPLES)]
    rule, durations = Stopping(), []
    spent = 0
    for at in range(0, SAMPLES, slice_):
        durations += script[at : at + slice_]
        begun = time.perf_counter_ns()
        rule(durations, 1.0, PLAN)
        spent += time.perf_counter_ns() - begun
    return spent / SAMPLES


def clock() -> float:
    """Return the nanoseconds of reading the clock twice."""
    begun = time.perf_counter_ns()
    for _ in repeat(None, 10_000):
        time.perf_counter_ns()
        time.perf_counter_ns()
    return (time.perf_counter_ns() - begun) / 10_000


def main() -> None:
    reading = median(clock() for _ in range(TIMES))
    for slice_ in (1, 8, 64):
        cost = median(sample_cost(slice_) for _ in range(TIMES))
        print(
            f"asked every {slice_:>2}: {cost:6.1f} ns a sample, {cost / reading:5.2f} x two readings of the clock, "
            f"{100 * cost / SHORTEST_NS:.3f} % of the shortest sample"
        )


if __name__ == "__main__":
    main()
