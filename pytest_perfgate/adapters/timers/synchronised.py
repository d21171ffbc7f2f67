"""The host's clock from an idle device to an idle device: what a program sees that waits for each call."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from pytest_perfgate.adapters.timers.bench import Bench, Clock, sound
from pytest_perfgate.adapters.timers.undisturbed import Undisturbed
from pytest_perfgate.model.ports import Call, QueueRuntime
from pytest_perfgate.model.samples import IDLE, Samples

WAITS = 32


def synchronised(bench: Bench, resolution: float) -> Samples:
    """Clock, call, wait for the device, clock; launching and waiting are in the time, and their own cost beside it."""
    calls = bench.batch()
    warmth = bench.warm()
    asked = replace(bench, call=_repeated(bench.call, calls))
    with Undisturbed():
        overhead = waiting(bench.runtime, bench.clock)
        durations, stop = bench.sampled(lambda: [asked.once() / calls])
    return Samples(
        durations=tuple(sound(durations, "host")),
        timer="host",
        stop=stop,
        batch=calls,
        overhead=overhead,
        resolution=resolution,
        warmups=warmth.calls,
        warmup_ns=warmth.spent_ns,
        notes=(*bench.runtime.notes(), *warmth.notes, (IDLE, "launching and waiting are in the time")),
    )


def _repeated(call: Call, calls: int) -> Call:
    if calls == 1:
        return call

    def run() -> None:
        for _ in range(calls):
            call()

    return run


def waiting(runtime: QueueRuntime, clock: Clock) -> float:
    """Nanoseconds to wait for a device that is idle."""

    def once() -> float:
        runtime.synchronize()
        begun = clock()
        runtime.synchronize()
        return clock() - begun

    return median(once() for _ in range(WAITS))
