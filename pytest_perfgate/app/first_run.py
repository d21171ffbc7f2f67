"""Adds processes to a first run while its calls are too noisy to be accepted for their limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_perfgate.app.measure import NoisyCall, measurements, report_noisy
from pytest_perfgate.core.judge.metrics import metrics_of
from pytest_perfgate.core.judge.samples import busy_processors
from pytest_perfgate.core.render.words import plural, span
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import SPEEDUP, Compare, Outcome

if TYPE_CHECKING:
    from pytest_perfgate.app.judge import GateJudge
    from pytest_perfgate.app.measure import Rounds
    from pytest_perfgate.model.measurement import Measurement
    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.model.protocol import CaseResult

MOST = 10
"""The most processes of a first run: from three to ten, a kernel's interval narrowed from 253 % to 24 %."""

SPENDS_S = 30.0
"""The most seconds that a first run outside CI spends on more processes, because a person waits."""

PlayRound = Callable[["Sequence[Case]", int], None]  # runs one round, by its number, of some of the cases


def too_noisy(result: CaseResult, gate_judge: GateJudge, *, first: bool = True) -> tuple[NoisyCall, ...]:
    """Return calls that are too noisy to accept, and open speed-ups; only these where two builds decide the others."""
    if result.outcome != "passed":
        return ()
    measured = measurements(result, gate_judge.tools)
    calls = [_noisy_call(result, measurement, gate_judge) for measurement in measured] if first else []
    calls += [_open_speedup(result, measurement, gate_judge) for measurement in measured if measurement.references]
    return tuple(call for call in calls if call is not None)


_LEAST_ASKED = 1e-3


def _open_speedup(result: CaseResult, measurement: Measurement, gate_judge: GateJudge) -> NoisyCall | None:
    """Return a speed-up that more processes may decide, or whose interval is too wide to accept for its limit."""
    try:
        verdicts = gate_judge.judged(result.case, measurement).verdicts
    except PerfgateError:  # the judge reports it for its test
        return None
    for verdict in verdicts:
        metric, limit = verdict.metric, verdict.limit
        if limit.metric != SPEEDUP or metric is None or not metric.low > 0:
            continue
        half = math.log(metric.high / metric.low) / 2
        changing = limit.compare is not Compare.FIGURE
        accepting = changing and verdict.outcome is Outcome.UNBASELINED and half > abs(limit.bound) / 2 > 0
        asks = abs(limit.bound) / 2 if accepting else abs(limit.bound)
        if not changing:
            asks = abs(math.log(metric.value / limit.bound)) if limit.bound > 0 else 0.0
        if accepting or verdict.outcome in {Outcome.UNDECIDED, Outcome.SUSPECT}:
            count = len(measurement.processes)
            return NoisyCall(key=measurement.key, half_width=half, requested=max(asks, _LEAST_ASKED), processes=count)
    return None


def _noisy_call(result: CaseResult, measurement: Measurement, gate_judge: GateJudge) -> NoisyCall | None:
    times = metrics_of(measurement, None).find("time")
    if measurement.problems or not times or times[0].labels:
        return None
    try:
        limits = gate_judge.limits(result.case, measurement)
    except PerfgateError:  # the judge reports it for its test
        return None
    bounds = [limit.bound for limit in limits if limit.metric == "slowdown" and limit.bound > 0]
    half = (times[0].high - times[0].low) / (2 * times[0].value)
    count, busy = len(measurement.processes), busy_processors(measurement.processes)
    line = gate_judge.accepted.judging(measurement)[0]
    if not bounds or max(half, busy) <= min(bounds) or (line and (line.detects <= min(bounds) or busy > min(bounds))):
        return None
    return NoisyCall(key=measurement.key, half_width=half, requested=min(bounds), processes=count, busy=busy)


class FirstRun:
    """Runs more processes of cases that are too noisy, as far as their time allows."""

    def __init__(self, rounds: Rounds, gate_judge: GateJudge, clock: Callable[[], float], *, first: bool) -> None:
        self._rounds, self._judge, self._clock, self._first = rounds, gate_judge, clock, first

    def noisy_calls(self, cases: Iterable[Case]) -> list[NoisyCall]:
        """Return all calls that are still too noisy."""
        results = self._rounds.results()
        return [call for case in cases for call in too_noisy(results[case.nodeid], self._judge, first=self._first)]

    def play_more(
        self, cases: Sequence[Case], play: PlayRound, tell: Callable[[str], None], within_s: float, start_s: float
    ) -> None:
        """Run rounds of one fresh process each until every limit is detectable; announce the time, report the rest."""
        named = {case.nodeid: case for case in cases}
        first = max((case.plan.rounds for case in cases), default=MOST)
        names, more = self._open(cases), f"up to {plural(MOST - first, 'more round')}, at most {span(within_s)}"
        if names and first < MOST and self._affordable(names, within_s, start_s):
            tell(f"{plural(len(names), 'test')} too noisy for the limit so far: {more}")
        end = self._clock() + within_s
        for number in range(first, MOST):
            fit = self._affordable(names, end - self._clock(), start_s)
            if not fit:
                break
            play([replace(named[n], plan=replace(named[n].plan, rounds=number + 1)) for n in fit], number)
            names = self._open(named[name] for name in names)
        report_noisy(self.noisy_calls(cases), tell)

    def _open(self, cases: Iterable[Case]) -> list[str]:
        """Return the cases that more processes may help, those nearest to their limit first."""
        excess: dict[str, float] = {}
        for call in self.noisy_calls(cases):
            if not call.machine_busy:
                excess[call.key.nodeid] = max(call.half_width / call.requested, excess.get(call.key.nodeid, 0.0))
        return sorted(excess, key=excess.__getitem__)

    def _affordable(self, names: list[str], left_s: float, start_s: float) -> list[str]:
        """Return as many cases as the remaining time allows in one round."""
        results = self._rounds.results()
        while names and start_s + math.fsum(results[name].seconds for name in names) > left_s:
            names = names[:-1]
        return names
