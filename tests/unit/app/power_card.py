"""A card in a few lines: its clock follows its power, its power its load, and heat comes behind both."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random

from pytest_perfgate.model.measurement import Samples, Stop
from pytest_perfgate.model.metric import Problem
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.model.protocol import Taken
from tests.unit.app.scripted_pairs import ScriptedChild, World

HIGHEST, LOWEST, STEP = 1980.0, 800.0, 3.0
IDLE_W, LIMIT_W = 120.0, 700.0
TICK_S, TAU_S = 0.005, 0.4
HOT = 90.0


@dataclass
class Build:
    """What one side's kernel needs: cycles of a call, watts above idling at the highest clock."""

    cycles: float = 350_000.0
    watts: float = 800.0


@dataclass
class Card:
    """Power is averaged over half a second, as drivers do, and the clock steps down while the average is too high."""

    ambient: float = 30.0
    noise: Random = field(default_factory=lambda: Random(7))
    clock: float = HIGHEST
    watts: float = IDLE_W
    heat: float = 40.0

    def load(self, build: Build, seconds: float) -> list[tuple[float, float, float, bool]]:
        """(nanoseconds of a call, clock, watts, at the limit) of every tick under load."""
        readings = []
        for _ in range(max(1, round(seconds / TICK_S))):
            drawn = IDLE_W + build.watts * (self.clock / HIGHEST) ** 2.5
            self.watts += (drawn - self.watts) * -math.expm1(-TICK_S / TAU_S)
            self.heat += (self.ambient + self.watts / 13 - self.heat) * -math.expm1(-TICK_S / 5)
            low, high = LIMIT_W - 2, LIMIT_W
            self.clock += -STEP if self.watts > high else STEP if self.watts < low else 0.0
            self.clock = max(LOWEST, min(HIGHEST, self.clock))
            time = build.cycles / self.clock * 1e3 * (1 + self.noise.gauss(0, 0.002))
            readings.append((time, self.clock * 1e6, self.watts, self.clock < HIGHEST))
        return readings

    def warm(self, build: Build, plan: Plan) -> None:
        """Until the power holds still, for 3 s at most; a turn without warm-up has none."""
        self.load(build, (plan.warmup_ns + plan.settle_ns) / 1e9)
        for _ in range(12 if plan.warmup_ns else 0):
            before = self.watts
            self.load(build, 0.25)
            if abs(self.watts / before - 1) < 0.03:
                return


class PoweredWorld(World):
    """Both arms work on one card, in turns."""

    def __init__(self, card: Card, base: Build, head: Build) -> None:
        super().__init__(time=lambda *_: 0.0, modules={"base": (("/base/k.py", "1"),), "head": (("/head/k.py", "2"),)})
        self.card, self.builds = card, {"base": base, "head": head}
        self.plans: list[Plan] = []

    def spawn(self, spec) -> PoweredChild:
        self.card.load(Build(watts=0.0), 3.0)  # processes start, and the card idles
        return PoweredChild(spec, self)


class PoweredChild(ScriptedChild):
    _world: PoweredWorld

    def _measure(self, plan: Plan) -> None:
        world, build = self._world, self._world.builds[self.label]
        world.plans.append(plan)
        world.card.warm(build, plan)
        readings = world.card.load(build, plan.budget_ns / 1e9)
        samples = sampled(readings, world.card)
        self._taken.append(samples)
        self._out.append(Taken(key=self._key, samples=samples))


def sampled(readings: list[tuple[float, float, float, bool]], card: Card) -> Samples:
    times, clocks, watts, capped = zip(*readings)
    hot = (Problem(code="throttled", what="the device lowered its clocks: software thermal slowdown"),)
    return Samples(
        durations=times, timer="events", stop=Stop.BUDGET, clock_hz=clocks, watts=sorted(watts)[len(watts) // 2],
        capped=sum(capped) / len(capped), problems=hot if card.heat > HOT else (),
    )  # fmt: skip
