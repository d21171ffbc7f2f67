"""Adds rounds until two builds decide each case."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_perfgate.app.compare_arms import ROUND, Comparison, captures_of, figure_pairs, hold_leases, stopped
from pytest_perfgate.core.judge.against_revision import tuning_facts
from pytest_perfgate.core.judge.context import paired_clocks
from pytest_perfgate.core.judge.rounds import FUTILE, all_looks, figure_finding, further_rounds, more_slow
from pytest_perfgate.core.judge.samples import power_limited, sides
from pytest_perfgate.core.limits.merge import scope_within
from pytest_perfgate.core.render.words import about, plural
from pytest_perfgate.core.stats.costs import PAIR_START_S, NeededRounds, allotted, waiting
from pytest_perfgate.core.stats.summary import median
from pytest_perfgate.model.metric import matches
from pytest_perfgate.model.plan import LEAST, CaseKey, Decision, Limit
from pytest_perfgate.model.verdict import Paired

if TYPE_CHECKING:
    from pytest_perfgate.core.judge.rounds import Pairs, RoundsResult
    from pytest_perfgate.model.protocol import Capture

InOpenMeans = Callable[[Mapping[CaseKey, tuple[float, ...]]], Iterable[CaseKey]]
"""Returns the cases of means that the differences of all rounds leave open."""


class ToDecide(NamedTuple):
    """What is to be decided of one call."""

    time: bool = True
    """Whether any limit is on its slowdown."""
    changes: Sequence[Limit] = ()
    """The limits on the change of a figure."""
    gates: int = 1
    """How many figures share the false-alarm rate."""


_REPEATED = 3
"""Rounds after which a figure that is the same each time, or a call without a time, counts as constant."""


class Screening:
    """One comparison, from its first round to its result."""

    def __init__(
        self,
        comparison: Comparison,
        threshold: Callable[[CaseKey], float],
        among: int = 0,
        to_decide: Callable[[CaseKey], ToDecide] = lambda key: ToDecide(),  # noqa: ARG005 - the same for each
        expected: Mapping[str, NeededRounds] = MappingProxyType({}),
        in_open_means: InOpenMeans = lambda differences: (),  # noqa: ARG005 - without means none is open
    ) -> None:
        """``threshold`` is the smallest slowdown that counts; ``among`` counts the cases of all comparisons."""
        self._comparison, self._threshold, self._among, self._to_decide = comparison, threshold, among, to_decide
        self._in_open_means, self._for_means = in_open_means, frozenset[CaseKey]()
        self._pairs: dict[CaseKey, Pairs] = {}
        self._results: dict[CaseKey, RoundsResult] = {}
        self._beyond: frozenset[str] = frozenset()  # tests that the budget did not reach, as of the last round
        self.late = LateTests(comparison, expected)

    def decide(self) -> None:
        """Run rounds of every case until it is decided; then test whether the head has more slow processes."""
        comparison, design = self._comparison, self._comparison.design
        comparison.play(ROUND, dict.fromkeys(comparison.cases, 1), lambda: self.late.among(self.late.expected))
        calls = max(1, len(comparison.pairs(ROUND)) + len(self.late.rounds_for_new_tests()), self._among)
        comparison.design = replace(design, cases=calls)
        counts = dict.fromkeys(comparison.cases, comparison.design.last)
        try:
            with hold_leases(comparison):
                comparison.play(ROUND, counts, self._finished_tests)
                if comparison.waits:  # play the rounds that they missed
                    comparison.play(ROUND, counts, self._finished_tests)
                self._judge_rounds()
                self._for_means = frozenset(self._in_open_means(_differences(comparison, self._pairs)))
                if self._for_means:
                    comparison.play(ROUND, counts, self._finished_tests)
        finally:
            self._judge_rounds()
        judged = {key: self._pairs[key].first(result.rounds) for key, result in self._results.items()}
        thresholds = {key: self._threshold(key) for key in self._results}
        self._results = more_slow(self._results, judged, thresholds, design.alpha)
        comparison.stage.say(self._summary() if self._results else "no call was timed in both builds")

    def paired(self, *, revision: bool) -> dict[CaseKey, Paired]:
        """Return the results of every case that both sides measured; of a stopped one, only an earlier decision."""
        decided = {key: result for key, result in self._results.items() if key not in self.stopped()}
        return {key: self._paired(key, result, revision) for key, result in decided.items()}

    def settled(self, *, revision: bool) -> dict[CaseKey, Paired]:
        """Return the decisions that further rounds would not change, of tests that have one for each of their calls."""
        self._for_means, played = frozenset(), _rounds_played(self._comparison, self._results)
        open_ = {key.nodeid for key, result in self._results.items() if self._is_open(key, played[key], result)}
        open_ |= {key.nodeid for key in (*self._undecided(), *_untimed(self._comparison, self._results))}
        return {key: one for key, one in self.paired(revision=revision).items() if key.nodeid not in open_}

    def stopped(self) -> dict[CaseKey, str]:
        """Return cases that stay undecided because their test failed in the rounds, with the error."""
        reasons = stopped(self._comparison)
        open_ = (key for key in self._undecided() if key.nodeid in reasons)
        return {key: f"it failed in base or head before they decided: {reasons[key.nodeid]}" for key in open_}

    def untimed(self, *, revision: bool) -> dict[CaseKey, Paired]:
        """Return the calls that were not timed: their figures from machine code, files and the test itself."""
        calls = _untimed(self._comparison, self._results)
        return {key: self._result(key, revision, decision=Decision.UNDECIDED) for key in calls}

    def _undecided(self) -> list[CaseKey]:
        undecided = (key for key, result in self._results.items() if result.decision is Decision.UNDECIDED)
        return [key for key in undecided if not cleared_as_same(self._comparison, key)]

    def _judge_rounds(self) -> None:
        """Judge the rounds so far; a settled case keeps its result even if its test has more rounds."""
        self._pairs = self._comparison.pairs(ROUND)
        for key, pairs in self._pairs.items():
            before = self._results.get(key)
            if before is None or not before.settled:
                self._results[key] = all_looks(before, pairs, self._threshold(key), self._comparison.design)

    def _finished_tests(self) -> Iterable[str]:
        """Return tests that need no further round: all their calls are settled, or the budget goes to others first."""
        self._judge_rounds()
        wants, untimed = dict[str, NeededRounds](), _untimed(self._comparison, self._results)
        played = _rounds_played(self._comparison, (*self._results, *untimed))
        for key, result in self._results.items():
            want = _needed_rounds(self._comparison, self._threshold(key), key, result)
            earlier = wants.get(key.nodeid)
            if self._is_open(key, played[key], result) and (earlier is None or want.rounds > earlier.rounds):
                wants[key.nodeid] = want
        for key in untimed:
            if key.nodeid not in wants and self._is_open(key, played[key]):
                wants[key.nodeid] = NeededRounds(rounds=1, seconds=self._comparison.cost(key.nodeid), suspected=False)
        wants |= self.late.rounds_for_new_tests()
        rounds = [round_ for round_ in self._comparison.rounds if round_.phase == ROUND]
        repeated = {round_.nodeid for round_ in rounds if round_.number == _REPEATED - 1}
        over = (repeated | {key.nodeid for key in (*self._results, *untimed)}) - wants.keys()
        plan = allotted(wants, self._comparison.left_s, self._comparison.start_s)
        self._beyond = frozenset(plan.beyond)
        late = self.late.among({name: wants[name] for name in plan.rounds})
        left_s = self._comparison.left_s - self._comparison.start_s
        fits = (name for name in plan.beyond if wants[name].seconds <= left_s)
        nearest = () if plan.rounds else tuple(fits)[:1]  # its estimate is rough, and the time is free
        return over | (self._beyond - set(nearest)) | late

    def _is_open(self, key: CaseKey, played: int, result: RoundsResult | None = None) -> bool:
        """Return whether a further round may decide the time or a figure of a call."""
        request, settled = self._to_decide(key), bool(self._comparison.problems) or result is None or result.settled
        if not (settled or cleared_as_same(self._comparison, key)) and (request.time or played < LEAST):
            return True
        if self._comparison.problems or played >= self._comparison.design.last:
            return False
        return key in self._for_means or open_figures(self._comparison, key, request, played)

    def _paired(self, key: CaseKey, result: RoundsResult, revision: bool) -> Paired:
        pairs, comparison = self._pairs[key], self._comparison
        if cleared_as_same(comparison, key):
            return self._result(key, revision, decision=Decision.NOT_SLOWER, base_ns=_base_time(comparison, key))
        deciding = captures_of(comparison.rounds, ROUND).get(key, [])[: result.rounds]
        return self._result(
            key, revision, decision=result.decision, unstable=result.unstable,
            faster=result.faster and not comparison.has_same_code(key.nodeid), shift=result.shift,
            interval=result.interval, p=result.p, threshold=comparison.design.alpha, visible=result.visible,
            slow=result.slow, differences=pairs.differences[: result.rounds],
            further=pairs.differences[result.rounds :], base_ns=_base_time(comparison, key),
            wants_s=_wants_s(comparison, self._threshold(key), key, result),
            clocks_hz=paired_clocks(deciding), limited=power_limited(deciding), tunings=_tunings(deciding),
        )  # fmt: skip

    def _result(self, key: CaseKey, revision: bool, **of_rounds: Any) -> Paired:
        """Return the fields that rounds decide with those that they do not: the two builds, and the call's figures."""
        comparison = self._comparison
        return Paired(
            base=comparison.arms[0].revision[:10], revision=revision, same=comparison.has_same_code(key.nodeid),
            problems=tuple(comparison.problems.values()), most=comparison.design.most,
            figures=tuple(figure_pairs(comparison, key, self._to_decide(key).changes)), **of_rounds,
        )  # fmt: skip

    def _summary(self) -> str:
        """Return ``38 of 40 cases decided in 7 to 14 rounds, 2 open after 30 rounds``."""
        played = _rounds_played(self._comparison, self._results)
        requests = {key: self._to_decide(key) for key in played}
        open_cases = {key for key in self._undecided() if requests[key].time}
        open_cases |= {key for key in played if open_figures(self._comparison, key, requests[key], played[key])}
        decided, open_ = [n for key, n in played.items() if key not in open_cases], [played[key] for key in open_cases]
        parts = [f"{len(decided)} of {plural(len(self._results), 'case')} decided"]
        parts[0] += f" in {_span(decided)}" if decided else ""
        if open_:
            short = sum(key.nodeid in self._beyond for key in open_cases)
            lack = f", {'' if short == len(open_) else f'{short} of them '}for lack of budget" if short else ""
            parts.append(f"{len(open_)} open after {_span(open_)}{lack}")
        return ", ".join(parts)


def cleared_as_same(comparison: Comparison, key: CaseKey) -> bool:
    """Return whether a call ran the same code on both sides, and needs no round that would measure the machine."""
    return comparison.design.clears_same and comparison.has_same_code(key.nodeid) and not comparison.problems


def _differences(comparison: Comparison, pairs: Mapping[CaseKey, Pairs]) -> Mapping[CaseKey, tuple[float, ...]]:
    zeros = (0.0,) * comparison.design.looks[0]
    return {key: zeros if cleared_as_same(comparison, key) else one.differences for key, one in pairs.items()}


class LateTests:
    """Tests that wait until cheaper ones are decided, because the budget may be too short for all."""

    def __init__(self, comparison: Comparison, expected: Mapping[str, NeededRounds]) -> None:
        self._comparison, self.expected = comparison, expected

    def among(self, wants: Mapping[str, NeededRounds]) -> frozenset[str]:
        """Return the tests that wait in the next round."""
        late = waiting(wants, self._comparison.left_s, self._comparison.start_s or PAIR_START_S)
        self._comparison.waits = self._comparison.waits or bool(late)
        return late

    def rounds_for_new_tests(self) -> dict[str, NeededRounds]:
        """Return what tests without a round want."""
        begun = {round_.nodeid for round_ in self._comparison.rounds if round_.phase == ROUND}
        return {name: want for name, want in self.expected.items() if name not in begun | self._comparison.out}

    def waiting(self) -> dict[str, str]:
        """Return the tests without a round, each with what may decide it."""
        wants, start_s = self.rounds_for_new_tests(), self._comparison.start_s
        text = "the budget ended before its first round; {} more may decide"
        return {name: text.format(about(want.cost + want.rounds * start_s)) for name, want in wants.items()}


def _needed_rounds(comparison: Comparison, threshold: float, key: CaseKey, result: RoundsResult) -> NeededRounds:
    """Return what a case needs: up to the first look, because few rounds show no scatter, then up to the last."""
    likely, slow = further_rounds(result, threshold, comparison.design), result.shift >= threshold
    first, last = comparison.design.looks[0], comparison.design.last
    rounds = max(1, min(likely, (first if result.rounds < first else last) - result.rounds))
    return NeededRounds(rounds=rounds, seconds=comparison.cost(key.nodeid), suspected=slow, likely=likely)


def _wants_s(comparison: Comparison, threshold: float, key: CaseKey, result: RoundsResult) -> float:
    """Return the seconds that would decide an open case, infinite if too many; they do not help against groups."""
    if result.decision is not Decision.UNDECIDED or result.unstable:
        return 0.0
    more = further_rounds(result, threshold, comparison.design)
    round_s = comparison.cost(key.nodeid) + comparison.start_s
    return more * round_s if more + result.rounds < FUTILE else math.inf


def _rounds_played(comparison: Comparison, keys: Iterable[CaseKey]) -> Mapping[CaseKey, int]:
    """Return the number of rounds of each call's test."""
    rounds = Counter(round_.nodeid for round_ in comparison.rounds if round_.phase == ROUND)
    return {key: rounds[key.nodeid] for key in keys}


def _untimed(comparison: Comparison, timed: Collection[CaseKey]) -> Sequence[CaseKey]:
    heads = (capture for round_ in comparison.rounds if round_.phase == ROUND for capture in round_.head)
    return list(dict.fromkeys(capture.key for capture in heads if not capture.samples and capture.key not in timed))


def _tunings(rounds: Sequence[tuple[Capture, Capture]]) -> tuple[tuple[str, str], ...]:
    return tuning_facts(dict(zip(("base", "head"), sides(rounds))))


def open_figures(comparison: Comparison, key: CaseKey, request: ToDecide, played: int) -> bool:
    """Return whether the rounds leave a figure with a limit undecided."""
    for pairs in figure_pairs(comparison, key, request.changes):
        for limit in request.changes:
            if limit.metric == pairs.name and matches(pairs.labels, scope_within(limit, key)):
                decision = figure_finding(pairs, limit, request.gates, comparison.design.most).decision
                if (pairs.repeats and played < _REPEATED) or (not pairs.repeats and decision is Decision.UNDECIDED):
                    return True
    return False


def _span(rounds: list[int]) -> str:
    low, high = min(rounds), max(rounds)
    return plural(high, "round") if low == high else f"{low} to {high} rounds"


def _base_time(comparison: Comparison, key: CaseKey) -> float:
    """Return the time of a call in the base arm, summarised as the head's own, for display beside it."""
    rounds = captures_of(comparison.rounds, ROUND).get(key, ())
    return median(sorted(median(sorted(base.samples[-1].durations)) for base, _ in rounds))
