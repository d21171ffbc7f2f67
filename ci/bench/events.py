"""Host-side cost of one timed event pair: our loop beside the loop of ``triton.testing.do_bench``.

The device is left out: events and kernel are empty Python methods, so that both loops pay for nothing
but themselves. On a machine with a GPU the same two loops are run with torch's own events.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pytest_perfgate.adapters.runtimes.simulated import SimulatedGpu
from pytest_perfgate.adapters.timers.bench import Bench, Rules
from pytest_perfgate.adapters.timers.pairs import Pairs, queued
from pytest_perfgate.model.plan import Plan

PAIRS, TIMES = 64, 400


class Event:
    """Records nothing and reads one microsecond."""

    def record(self) -> None: ...

    def since(self, earlier: object) -> float:
        del earlier
        return 1_000.0

    def elapsed_time(self, later: object) -> float:
        del later
        return 1e-3


class Nothing(SimulatedGpu):
    """A device that takes no time on the host."""

    def synchronize(self) -> None: ...

    def flush(self) -> None: ...


class Cache:
    """Stands for the buffer that is cleared between calls."""

    def zero_(self) -> None: ...


def kernel() -> None:
    """Stands for a launch."""


def ours() -> float:
    """Nanoseconds a pair of our loop, its reading included."""
    rules = Rules(stop=lambda *_: None, warm=lambda *_: True)
    bench = Bench(call=kernel, plan=Plan(), runtime=Nothing(), rules=rules)
    pairs = Pairs((Event(), Event()) for _ in range(PAIRS))
    return timed(lambda: queued(bench, pairs))


def theirs() -> float:
    """Nanoseconds a pair of a loop of that shape: clear, record, call, record; then read all."""
    starts, ends, cache, grads = [Event() for _ in range(PAIRS)], [Event() for _ in range(PAIRS)], Cache(), None

    def loop() -> list[float]:
        for at in range(PAIRS):
            if grads is not None:
                continue
            cache.zero_()
            starts[at].record()
            kernel()
            ends[at].record()
        return [s.elapsed_time(e) for s, e in zip(starts, ends)]

    return timed(loop)


def timed(loop: Callable[[], object]) -> float:
    """The least of many turns: what the loop costs when nothing disturbs it."""
    spent = []
    for _ in range(TIMES):
        begun = time.perf_counter_ns()
        loop()
        spent.append((time.perf_counter_ns() - begun) / PAIRS)
    return min(spent)


def main() -> None:
    rounds = [(ours(), theirs()) for _ in range(9)]
    here, there = (median(side) for side in zip(*rounds))
    ratio = median(a / b for a, b in rounds)
    print("device        none: empty events and an empty kernel, so the loops alone are compared")
    print(f"ours          {here:7.0f} ns a pair (warm, checked readings, queue watched)")
    print(f"do_bench loop {there:7.0f} ns a pair")
    print(f"ratio         {ratio:7.2f}")


if __name__ == "__main__":
    main()
