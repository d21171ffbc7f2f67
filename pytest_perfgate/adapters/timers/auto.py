"""Chooses a timer by what it can see of the call, and says what it chose and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from pytest_perfgate.adapters.timers.bench import Bench, Rules, queue_of
from pytest_perfgate.adapters.timers.event_pairs import TRIALS, Empty, allocate, calibrated, queued
from pytest_perfgate.model.capabilities import SupportsWait
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.model.measurement import Samples
    from pytest_perfgate.model.plan import Plan
    from pytest_perfgate.model.ports import Call, Runtime, Timer

_OUT = ("cupti-unproved", "timer-too-coarse")
"""An instrument that is out before it has measured anything; the next in order may stand for it, and this is said."""

MARGIN, STAYS = 1.25, 1.05
"""Events are taken for calls so many times the shortest that they can time, and kept a little below that: what is taken
is not refused a moment later, nor another timer taken in the next process."""

TRIAL_PAIRS = 32
"""So many calls in flight show whether the host keeps up."""


@value
class Choice:
    """The timers in order of preference, and the reason in words."""

    names: tuple[str, ...]
    why: str


class AutoTimer:
    """Stands for the first fitting timer; the samples bear that timer's name, which joins the identity."""

    name = "auto"

    def __init__(self, rules: Rules, timers: Sequence[Timer]) -> None:
        self._rules = rules
        self._timers = {timer.name: timer for timer in timers}

    def leave_out(self, name: str) -> None:
        """A timer that is known not to be fit."""
        self._timers.pop(name, None)

    def availability(self, runtime: Runtime) -> Availability:
        usable = [name for name, timer in self._timers.items() if timer.availability(runtime).usable]
        return Availability(
            name=self.name,
            usable=bool(usable),
            why="" if usable else f"no timer works with the {runtime.name} runtime",
            version=", ".join(usable),
        )

    def measure(self, call: Call, plan: Plan, runtime: Runtime, setup: Call | None = None) -> Samples:
        choice = self.choice(call, plan, runtime, setup)
        passed: list[str] = []
        coarse = None
        for name in choice.names:
            availability = self._timers[name].availability(runtime) if name in self._timers else None
            if availability and availability.usable:
                try:
                    samples = self._timers[name].measure(call, plan, runtime, setup)
                except PerfgateError as error:
                    if error.code.name not in _OUT:
                        raise
                    coarse = error if error.code.name == "timer-too-coarse" else coarse
                    passed.append(f"not {name}: {error.code.title}")
                    continue
                text = "; ".join([f"{name}: {choice.why}", *passed])
                return replace(samples, notes=(("timer", text), *samples.notes))
            passed.append(f"not {name}: {availability.why if availability else 'not there'}")
        if coarse is not None:
            raise coarse
        code = "timer-too-coarse" if "short" in choice.why else "timer-unsuited"
        raise PerfgateError(code, f"{choice.why}; {'; '.join(passed)}")

    def choice(self, call: Call, plan: Plan, runtime: Runtime, setup: Call | None = None) -> Choice:
        """Which timers fit this call, from a short trial."""
        if not isinstance(runtime, SupportsWait):
            return Choice(names=("host",), why=f"the {runtime.name} runtime works on the host")
        bench = Bench(call=call, plan=plan, runtime=queue_of(runtime, self.name), rules=self._rules, setup=setup)
        calls = bench.batch()
        bench.once()
        empty = calibrated(bench)
        queued(bench, allocate(bench.runtime, TRIALS), calls)
        trial, dry = queued(bench, allocate(bench.runtime, TRIAL_PAIRS), calls)
        return leant(chosen(median(trial) * calls, empty, dry, plan.leaning), plan.leaning)


def leant(choice: Choice, leaning: str) -> Choice:
    """The timer that was taken before, in front: any but events can time what events can, and they refuse by chance."""
    if not leaning or leaning == "events" or choice.names == ("host",):
        return choice
    others = tuple(name for name in choice.names if name != leaning)
    return Choice(names=(leaning, *others), why=f"{choice.why}; taken for this call before")


def chosen(duration: float, empty: Empty, dry: bool, leaning: str = "") -> Choice:
    """Too short for events, a host slower than the device, or the plain case."""
    times = duration / (empty.overhead + empty.resolution)
    text = f"a sample takes {duration:.0f} ns, {times:.0f} times the overhead and resolution of an event pair"
    if duration < empty.shortest * (STAYS if leaning == "events" else MARGIN):
        return Choice(names=("cupti", "graph"), why=f"{text}, too short for it")
    if dry:
        return Choice(
            names=("cupti", "blocking", "graph"), why=f"{text}, but the host launches more slowly than the device works"
        )
    return Choice(names=("events", "cupti", "graph"), why=text)
