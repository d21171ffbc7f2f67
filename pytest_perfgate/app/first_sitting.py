"""A first sitting goes on until each of its cases sees what its limit asks: it will be accepted, and judged by."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_perfgate.app.measure import measurements
from pytest_perfgate.core.judge.metrics import metrics_of
from pytest_perfgate.core.judge.samples import busy_processors
from pytest_perfgate.core.render.block import short_name
from pytest_perfgate.core.render.words import detectable, plural, span
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.app.judge import GateJudge
    from pytest_perfgate.app.measure import Rounds
    from pytest_perfgate.model.measurement import Measurement
    from pytest_perfgate.model.plan import Case, CaseKey
    from pytest_perfgate.model.protocol import CaseResult

MOST = 10
"""Processes of a first sitting: from three to ten the interval of a kernel came from 253 % down to 24 %."""

SPENDS_S = 30.0
"""What a first run outside CI may take for that in all: somebody waits for it."""

_WORTH = 40
"""Processes beyond which a case needs a quieter machine rather than more of them."""

_NAMED = 5


@value
class Blurred:
    """A call without an accepted time, whose sitting does not see the slowdown that its limit asks about."""

    key: CaseKey
    half: float
    """Of its interval, relative."""
    asks: float
    processes: int
    beside: float = 0.0
    """Processors that others kept busy meanwhile: all its processes may be slow by what those took."""

    @property
    def machine_busy(self) -> bool:
        """Whether no number of processes would help."""
        return self.beside > self.asks

    def __str__(self) -> str:
        """``test_sum can detect +12.0 % after 10 processes, its limit asks for +5.0 %``."""
        count = plural(self.processes, "process", "processes")
        text = f"{short_name(self.key)} can detect {detectable(self.half)} after {count}"
        return f"{text}, its limit asks for {detectable(self.asks)}"

    @property
    def remedy(self) -> str:
        """What would bring it there: the interval narrows by the square root of the processes."""
        needs = math.ceil(self.processes * (self.half / self.asks) ** 2)
        return f"--perfgate-rounds={needs}, or a quieter machine" if needs <= _WORTH else "a quieter machine"


def blurred(result: CaseResult, gate_judge: GateJudge) -> tuple[Blurred, ...]:
    """The calls of a case that will be accepted from this run, and cannot be judged by well yet."""
    if result.outcome != "passed":
        return ()
    found = (_blurred(result, one, gate_judge) for one in measurements(result, gate_judge.tools))
    return tuple(one for one in found if one is not None)


def _blurred(result: CaseResult, measurement: Measurement, gate_judge: GateJudge) -> Blurred | None:
    times = metrics_of(measurement, None).find("time")
    if measurement.problems or not times or times[0].labels:
        return None
    try:
        limits = gate_judge.limits(result.case, measurement)
    except PerfgateError:  # the judge says so of its test
        return None
    asked = [limit.bound for limit in limits if limit.metric == "slowdown" and limit.bound > 0]
    half = (times[0].high - times[0].low) / (2 * times[0].value)
    beside = busy_processors(measurement.processes)
    if not asked or max(half, beside) <= min(asked) or gate_judge.accepted.judging(measurement)[0] is not None:
        return None
    count = len(measurement.processes)
    return Blurred(key=measurement.key, half=half, asks=min(asked), processes=count, beside=beside)


class FirstSitting:
    """Further rounds of what sees too little, as far as the time for it goes."""

    def __init__(self, rounds: Rounds, gate_judge: GateJudge, clock: Callable[[], float]) -> None:
        self._rounds, self._judge, self._clock = rounds, gate_judge, clock

    def left(self, cases: Iterable[Case]) -> list[Blurred]:
        """All calls that see too little by now."""
        results = self._rounds.results()
        return [one for case in cases for one in blurred(results[case.nodeid], self._judge)]

    def _open(self, cases: Iterable[Case]) -> list[str]:
        """The cases that more processes may help, those nearest to their limit first."""
        far: dict[str, float] = {}
        for one in self.left(cases):
            if not one.machine_busy:
                far[one.key.nodeid] = max(one.half / one.asks, far.get(one.key.nodeid, 0.0))
        return sorted(far, key=far.__getitem__)

    def go_on(
        self,
        cases: Sequence[Case],
        play: Callable[[Sequence[Case], int], None],
        tell: Callable[[str], None],
        within_s: float,
        start_s: float,
    ) -> None:
        """Rounds of a fresh process each until all see their limit; says first what it may take, and last what is left.

        ``play`` runs one round, by its number, of some of the cases.
        """
        named = {case.nodeid: case for case in cases}
        first = max((case.plan.rounds for case in cases), default=MOST)
        names = self._open(cases)
        if names and first < MOST and self._fitting(names, within_s, start_s):
            told = f"{plural(len(names), 'case')} without an accepted time cannot see what the limit asks yet"
            tell(f"{told}: up to {plural(MOST - first, 'more round')}, at most {span(within_s)}")
        end = self._clock() + within_s
        for number in range(first, MOST):
            fit = self._fitting(names, end - self._clock(), start_s)
            if not fit:
                break
            play([replace(named[n], plan=replace(named[n].plan, rounds=number + 1)) for n in fit], number)
            names = self._open(named[name] for name in names)
        _tell_left(self.left(cases), tell)

    def _fitting(self, names: list[str], left_s: float, start_s: float) -> list[str]:
        """As many as one round may take."""
        while names and self._cost(names, start_s) > left_s:
            names = names[:-1]
        return names

    def _cost(self, names: Iterable[str], start_s: float) -> float:
        results = self._rounds.results()
        return start_s + math.fsum(results[name].seconds for name in names)


def _tell_left(left: Sequence[Blurred], tell: Callable[[str], None]) -> None:
    """What could not be reached: by how much, and what would."""
    if beside := [one.beside for one in left if one.machine_busy]:
        count = plural(len(beside), "case")
        text = f"others kept {max(beside):.1f} processors busy beside {count} without an accepted time"
        tell(f"{text}, whose times may be slow by as much; next: run again when they are idle, before you accept")
    wide = [one for one in left if not one.machine_busy]
    for one in wide[:_NAMED]:
        tell(f"{one}; next: {one.remedy}")
    if len(wide) > _NAMED:
        tell(f"and {len(wide) - _NAMED} more, which `perfgate accept` names")
