"""One fresh process of a recording: told on standard input which kernel to run, how much and how often.

Run as ``worker.py hog SEED`` it is a bursty hog instead: it spins and sleeps for random spans.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from kernels import Kernel, kernels


def batch(kernel: Kernel, units: int, samples: int, calls: int) -> list[float]:
    """Wall nanoseconds per call of each sample, then CPU nanoseconds per call of each."""
    walls, busies = [], []
    for _ in range(samples):
        busy, begun = time.thread_time_ns(), time.perf_counter_ns()
        for _ in range(calls):
            kernel(units)
        walls.append((time.perf_counter_ns() - begun) / calls)
        busies.append((time.thread_time_ns() - busy) / calls)
    return walls + busies


def hog(seed: int) -> None:
    """Bursts of 50 to 400 ms of work, pauses as long."""
    dice = random.Random(seed)
    while True:
        until = time.perf_counter() + dice.uniform(0.05, 0.4)
        while time.perf_counter() < until:
            sum(range(1000))
        time.sleep(dice.uniform(0.05, 0.4))


def serve() -> None:
    """Answer ``NAME UNITS SAMPLES CALLS`` until the input ends."""
    calls_by_name = kernels()
    gc.disable()
    for line in sys.stdin:
        name, units, samples, calls = line.split()
        taken = batch(calls_by_name[name], int(units), int(samples), int(calls))
        sys.stdout.write(" ".join(f"{number:.1f}" for number in taken) + "\n")
        sys.stdout.flush()
        if name == "sorting":
            gc.collect()


if __name__ == "__main__":
    if sys.argv[1:2] == ["hog"]:
        hog(int(sys.argv[2]))
    serve()
