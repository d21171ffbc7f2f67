"""Two builds heard to a decision: rounds are added until each case is decided, or the budget is spent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_perfgate.app.compare_arms import ROUND, Comparison
from pytest_perfgate.app.lockstep import BASE
from pytest_perfgate.core.judge.context import paired_clocks
from pytest_perfgate.core.judge.rounds import Finding, Pairs, Want, allotted, look, more_slow, wanted
from pytest_perfgate.core.judge.samples import power_limited
from pytest_perfgate.core.render.words import plural
from pytest_perfgate.core.stats.summary import median
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.verdict import Decision, Paired

if TYPE_CHECKING:
    from pytest_perfgate.model.protocol import Capture

Counts = Callable[[CaseKey], float]
"""τ of a case: the smallest slowdown that counts."""


class Screening:
    """One comparison from its first round to what it came to."""

    def __init__(self, comparison: Comparison, counts: Counts, among: int = 0) -> None:
        """``among`` is how many cases the run decides by two builds, where others are compared elsewhere."""
        self._all, self._counts, self._among = comparison, counts, among
        self._pairs: dict[CaseKey, Pairs] = {}
        self._found: dict[CaseKey, Finding] = {}
        self._beyond: frozenset[str] = frozenset()
        """Tests that the budget did not reach, as of the last round."""

    def decide(self) -> None:
        """Rounds of every case until it is decided; then those whose slow processes are what differs."""
        comparison = self._all
        design = comparison.design
        comparison.play(ROUND, dict.fromkeys(comparison.cases, 1))
        comparison.design = replace(design, cases=max(self._among, len(comparison.pairs(ROUND)), 1))
        comparison.play(ROUND, dict.fromkeys(comparison.cases, comparison.design.last), self._over)
        self._look()
        counts = {key: self._counts(key) for key in self._found}
        self._found = more_slow(self._found, self._pairs, counts, design.alpha)
        self._say(self._summary())

    def paired(self, *, revision: bool) -> dict[CaseKey, Paired]:
        """What became of every case that both sides measured."""
        return {key: self._paired(key, result, revision) for key, result in self._found.items()}

    def _look(self) -> None:
        """A case that is settled stays as it was found, though another call of its test has more rounds."""
        for key, pairs in self._all.pairs(ROUND).items():
            before = self._found.get(key)
            if before is None or not before.settled:
                now = look(before, pairs, self._counts(key), self._all.design)
                self._found[key], self._pairs[key] = now, pairs.first(now.rounds)

    def _over(self) -> Iterable[str]:
        """Tests that have no further round: all their calls are settled, or the budget decides others first."""
        self._look()
        wants: dict[str, Want] = {}
        for key, result in self._found.items():
            want = self._want(key, result)
            if not result.settled and (key.nodeid not in wants or want.rounds > wants[key.nodeid].rounds):
                wants[key.nodeid] = want
        over = {key.nodeid for key in self._found} - wants.keys()
        if not self._all.stage.budget_s:
            return over
        self._beyond = frozenset(allotted(wants, self._all.left_s, self._all.start_s).beyond)
        return over | self._beyond

    def _want(self, key: CaseKey, found: Finding) -> Want:
        """What a case asks for up to the last round of all."""
        counts, design = self._counts(key), self._all.design
        rounds = min(wanted(found, counts, design), max(1, design.last - found.rounds))
        return Want(rounds=rounds, seconds=self._all.cost(key.nodeid), suspected=found.shift >= counts)

    def _wants_s(self, key: CaseKey, found: Finding) -> float:
        """Seconds that would decide what is open; groups of processes would only show themselves again."""
        if found.decision is not Decision.UNDECIDED or found.unstable:
            return 0.0
        rounds = wanted(found, self._counts(key), self._all.design)
        return rounds * (self._all.cost(key.nodeid) + self._all.start_s)

    def _paired(self, key: CaseKey, found: Finding, revision: bool) -> Paired:
        return Paired(
            decision=found.decision,
            differences=self._pairs[key].differences,
            shift=found.shift,
            interval=found.interval,
            base=self._all.arms[BASE].revision[:10],
            revision=revision,
            p=found.p,
            threshold=self._all.design.alpha,
            visible=found.visible,
            problems=tuple(self._all.problems.values()),
            unstable=found.unstable,
            same=self._all.same,
            faster=found.faster,
            slow=found.slow,
            wants_s=self._wants_s(key, found),
            base_ns=_usual(self._all, key),
            clocks_hz=paired_clocks(self._rounds(key)),
            limited=power_limited(self._rounds(key)),
        )

    def _rounds(self, key: CaseKey) -> Sequence[tuple[Capture, Capture]]:
        """The rounds that decided a case."""
        return self._all.captures(ROUND).get(key, [])[: self._found[key].rounds]

    def _summary(self) -> str:
        """``38 of 40 decided in 7 to 14 rounds, 2 open after 30``."""
        decided = [one.rounds for one in self._found.values() if one.decision is not Decision.UNDECIDED]
        open_ = [one.rounds for one in self._found.values() if one.decision is Decision.UNDECIDED]
        parts = [f"{len(decided)} of {plural(len(self._found), 'case')} decided"]
        parts[0] += f" in {_span(decided)} rounds" if decided else ""
        if open_:
            short = f", {len(self._beyond)} of them beyond the budget" if self._beyond else ""
            parts.append(f"{len(open_)} open after {_span(open_)}{short}")
        return ", ".join(parts)

    def _say(self, text: str) -> None:
        self._all.stage.say(text)


def _span(rounds: list[int]) -> str:
    low, high = min(rounds), max(rounds)
    return str(low) if low == high else f"{low} to {high}"


def _usual(comparison: Comparison, key: CaseKey) -> float:
    """What a call took in the base arm, summed up as the head's own time is: the two are read side by side."""
    rounds = comparison.captures(ROUND).get(key, ())
    return median(sorted(median(sorted(base.samples[-1].durations)) for base, _ in rounds))
