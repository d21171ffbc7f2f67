"""Host-side cost of one timed event pair: our loop beside the loop of ``triton.testing.do_bench``.

The device is left out: events and kernel are empty Python methods, so that both loops pay for nothing
but themselves. Once with events of one layer, and once with events shaped as torch's, whose ``record``
looks the current stream up and hands over to the method below. On a machine with a GPU ``ci/gpu-check``
runs both loops with torch's own events.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pytest_perfgate.adapters.runtimes.torch import TorchEvent
from pytest_perfgate.adapters.timers.bench import Rules, TimedCall
from pytest_perfgate.adapters.timers.event_pairs import EventPairs, queued
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.testing import SimulatedGpu

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


class Below:
    """What torch's event is made over: empty here as well."""

    def record(self, stream: object) -> None: ...

    def elapsed_time(self, later: object) -> float:
        del later
        return 1e-3


class Shaped(Below):
    """With the layer that torch puts over it."""

    def record(self, stream: object = None) -> None:
        if stream is None:
            stream = current_stream()
        super().record(stream)

    def elapsed_time(self, later: object) -> float:
        return super().elapsed_time(later)


def current_stream() -> object:
    """Nothing is looked up: torch's own asks its library and makes an object."""


class Nothing(SimulatedGpu):
    """A device that takes no time on the host."""

    def synchronize(self) -> None: ...

    def flush(self) -> None: ...


class Cache:
    """Stands for the buffer that is cleared between calls."""

    def zero_(self) -> None: ...


def kernel() -> None:
    """Do nothing, in place of a launch."""


def ours(event: Callable[[], Any]) -> float:
    """Return the nanoseconds of one pair in our loop, its reading included."""
    rules = Rules(stop=lambda *_: None, warm=lambda *_: True)
    bench = TimedCall(call=kernel, plan=Plan(), runtime=Nothing(), rules=rules)
    pairs = EventPairs((event(), event()) for _ in range(PAIRS))
    return timed(lambda: queued(bench, pairs))


def theirs(event: Callable[[], Any]) -> float:
    """Return the nanoseconds of one pair in a loop of that form: clear, record, call, record; then read all."""
    starts, ends, cache, grads = [event() for _ in range(PAIRS)], [event() for _ in range(PAIRS)], Cache(), None

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
    """Return the shortest of many turns: the cost of the loop when nothing disturbs it."""
    spent = []
    for _ in range(TIMES):
        begun = time.perf_counter_ns()
        loop()
        spent.append((time.perf_counter_ns() - begun) / PAIRS)
    return min(spent)


def main() -> None:
    print("device        none: empty events and an empty kernel, so the loops alone are compared")
    for name, mine, other in (
        ("events of one layer", Event, Event),
        ("events as torch's", lambda: TorchEvent(Shaped(), None), Shaped),
    ):
        rounds = [(ours(mine), theirs(other)) for _ in range(9)]
        here, there = (median(side) for side in zip(*rounds))
        ratios = sorted(a / b for a, b in rounds)
        print(f"{name}")
        print(f"  ours          {here:7.0f} ns a pair (warm, checked readings, queue watched)")
        print(f"  do_bench loop {there:7.0f} ns a pair")
        print(f"  ratio         {median(ratios):7.2f}   ({ratios[0]:.2f} to {ratios[-1]:.2f} in {len(ratios)} rounds)")


if __name__ == "__main__":
    main()
