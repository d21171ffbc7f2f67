"""A hearing: everybody is screened, suspects are tried in fresh rounds, and the suite is judged together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from pytest_perfgate.app.compare_arms import CONFIRM, SCREEN, Comparison
from pytest_perfgate.app.duet import BASE
from pytest_perfgate.core.gate.budget import (
    SCREENING,
    Allotment,
    Want,
    acquittal_rounds,
    allotted,
    conviction_rounds,
    shrunk,
)
from pytest_perfgate.core.gate.clocks import paired_clocks
from pytest_perfgate.core.gate.rounds import (
    Design,
    Finding,
    Pairs,
    cleared,
    confirming_rounds,
    convicted,
    finding,
    suspected,
)
from pytest_perfgate.core.gate.witness import power_limited
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.core.render.spans import about
from pytest_perfgate.core.stats.interval import median
from pytest_perfgate.model.children import Capture
from pytest_perfgate.model.paired import Decision, Paired
from pytest_perfgate.model.plan import CaseKey

_SHORTEST_NS = 5e6
"""A turn is never cut below this."""
Counts = Callable[[CaseKey], float]
"""τ of a case: the smallest slowdown that counts."""


class Hearing:
    """One comparison from its first round to what it came to."""

    def __init__(self, comparison: Comparison, counts: Counts) -> None:
        self._all, self._counts = comparison, counts
        self._pairs: dict[CaseKey, Pairs] = {}
        self._found: dict[CaseKey, Finding] = {}
        self._untried: set[CaseKey] = set()

    def screen(self) -> None:
        """Rounds for every case; then suspects are tried, and what a budget still holds widens the view of others."""
        comparison = self._all
        comparison.play(SCREEN, dict.fromkeys(comparison.cases, 1))
        self._hasten()
        comparison.play(SCREEN, dict.fromkeys(comparison.cases, comparison.design.screen))
        self._look(comparison.pairs(SCREEN))
        suspects = self._suspects()
        plan = self._allotment(suspects)
        if plan.rounds or plan.beyond:
            self._say(_planned(plan, suspects, len(self._all.cases)))
        self._untried = {key for key in suspects if key.nodeid in plan.beyond}
        self._try([key for key in suspects if key.nodeid in plan.rounds], plan.rounds)
        if comparison.stage.budget_s:
            self._widen()

    def confirm(self, accused: Collection[CaseKey], among: int) -> None:
        """Suspicion was raised elsewhere, of so many in all: these are tried, as far as a budget reaches."""
        comparison = self._all
        fresh = confirming_rounds(among, comparison.design)
        self._say(f"up to {fresh} fresh rounds each")
        comparison.play(CONFIRM, dict.fromkeys(comparison.cases, 1))
        wants = {n: Want(rounds=fresh - 1, seconds=comparison.cost(n), suspected=True) for n in comparison.cases}
        plan = allotted(wants, comparison.left_s, comparison.start_s)
        if plan.beyond:
            self._say(f"{len(plan.beyond)} beyond the budget")
        first = _tried(comparison, accused)
        self._look(first)
        self._untried = {key for key in first if key.nodeid in plan.beyond}
        self._try([key for key in first if key.nodeid in plan.rounds], dict.fromkeys(plan.rounds, fresh), among)

    def paired(self, *, revision: bool) -> Mapping[CaseKey, Paired]:
        """What became of every case that both sides measured."""
        suspects = self._suspects()
        return {key: self._paired(key, found, suspects, revision) for key, found in self._found.items()}

    def _hasten(self) -> None:
        """The first round tells what the rest will take: turns are cut where a budget would go into screening alone."""
        comparison, budget = self._all, self._all.stage.budget_s
        rest, beat = comparison.design.screen - 1, comparison.stage.beat
        tests = rest * sum(comparison.cost(nodeid) for nodeid in comparison.cases)
        has = comparison.left_s - (1 - SCREENING) * budget - rest * comparison.start_s
        part = shrunk(tests, max(0.0, has), min(1.0, _SHORTEST_NS / beat.batch_ns)) if budget else 1.0
        if part < 1:
            shorter = replace(beat, batch_ns=part * beat.batch_ns, warmup_ns=part * beat.warmup_ns)
            comparison.stage = replace(comparison.stage, beat=shorter)
            self._say(f"slower than thought: turns cut to {part:.0%}")

    def _look(self, fresh: Mapping[CaseKey, Pairs]) -> None:
        self._pairs |= fresh
        self._found |= {key: finding(pair, self._counts(key)) for key, pair in fresh.items()}

    def _suspects(self) -> tuple[CaseKey, ...]:
        return suspected(self._found, {key: self._counts(key) for key in self._found})

    def _try(self, suspects: Iterable[CaseKey], rounds: Mapping[str, int], among: int = 0) -> None:
        """Fresh rounds only: what raised the suspicion is not counted again."""
        tried = set(suspects)
        cases = {nodeid: n for nodeid, n in rounds.items() if nodeid in {k.nodeid for k in tried}}
        self._all.play(CONFIRM, cases, lambda: _spared(_tried(self._all, tried), cases, self._counts, self._all.design))
        fresh = _tried(self._all, tried)
        counts = {key: self._counts(key) for key in fresh}
        self._found |= convicted(fresh, counts, self._all.design, among)
        self._pairs |= fresh

    def _widen(self) -> None:
        """More rounds for the undecided that were not tried, as many as are left."""
        tried = set(self._all.pairs(CONFIRM))
        open_ = {key: found for key, found in self._found.items() if key not in tried | self._untried}
        plan = self._reach({key: found for key, found in open_.items() if self._wants(key, found, 1)}, 0)
        if not plan.rounds:
            return
        self._say(
            f"{len(plan.rounds)} undecided: up to {plural(max(plan.rounds.values()), 'round')} more, {about(plan.cost)}"
        )
        self._all.play(SCREEN, {nodeid: self._played(nodeid) + more for nodeid, more in plan.rounds.items()})
        self._look({key: pair for key, pair in self._all.pairs(SCREEN).items() if key in open_})

    def _played(self, nodeid: str) -> int:
        return len({one.number for one in self._all.rounds if (one.nodeid, one.phase) == (nodeid, SCREEN)})

    def _allotment(self, suspects: tuple[CaseKey, ...]) -> Allotment:
        """Without a budget suspects have the rounds of the design; with one what decides them, as far as it goes."""
        if self._all.stage.budget_s:
            return self._reach({key: self._found[key] for key in suspects}, len(suspects))
        fresh = confirming_rounds(len(suspects), self._all.design)
        return Allotment(rounds={key.nodeid: fresh for key in suspects}, beyond={}, cost=0.0)

    def _reach(self, found: Mapping[CaseKey, Finding], suspects: int) -> Allotment:
        wants: dict[str, Want] = {}
        for key, one in found.items():
            want = self._want(key, one, suspects)
            if key.nodeid not in wants or want.rounds > wants[key.nodeid].rounds:
                wants[key.nodeid] = want
        return allotted(wants, self._all.left_s, self._all.start_s)

    def _want(self, key: CaseKey, found: Finding, suspects: int) -> Want:
        """The rounds that would decide a case, at what they cost here: one of so many suspects, or of none."""
        counts, seconds = self._counts(key), self._all.cost(key.nodeid)
        if suspects:
            rounds = conviction_rounds(found, counts, suspects, self._all.design)
            return Want(rounds=rounds, seconds=seconds, suspected=True)
        more = max(1, acquittal_rounds(found, counts) - len(self._pairs[key].base))
        return Want(rounds=more, seconds=seconds, suspected=False)

    def _wants(self, key: CaseKey, found: Finding, suspects: int) -> float:
        """Seconds that would decide what is open; groups of processes would only show themselves again."""
        if found.decision is not Decision.UNDECIDED or found.unstable:
            return 0.0
        beyond = found.shift > self._counts(key)
        want = self._want(key, found, max(1, suspects) if beyond else 0)
        return want.rounds * (want.seconds + self._all.start_s)

    def _paired(self, key: CaseKey, found: Finding, suspects: tuple[CaseKey, ...], revision: bool) -> Paired:
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
            untried=key in self._untried,
            wants_s=self._wants(key, found, len(suspects)),
            base_ns=_usual(self._all, key),
            clocks_hz=paired_clocks(self._last(key)),
            limited=power_limited(self._last(key)),
        )

    def _last(self, key: CaseKey) -> Sequence[tuple[Capture, Capture]]:
        """The rounds that decide a case: fresh ones where it was tried."""
        return self._all.captures(CONFIRM).get(key) or self._all.captures(SCREEN).get(key) or ()

    def _say(self, text: str) -> None:
        self._all.stage.say(text)


def _tried(comparison: Comparison, suspects: Collection[CaseKey]) -> dict[CaseKey, Pairs]:
    return {key: pairs for key, pairs in comparison.pairs(CONFIRM).items() if key in suspects}


def _spared(fresh: Mapping[CaseKey, Pairs], rounds: Mapping[str, int], counts: Counts, design: Design) -> set[str]:
    """Cases with nothing left that a further round could convict."""
    open_ = {key.nodeid for key, pairs in fresh.items() if not cleared(pairs, counts(key), rounds[key.nodeid], design)}
    return {key.nodeid for key in fresh} - open_


def _usual(comparison: Comparison, key: CaseKey) -> float:
    """What a call took in the base arm, summed up as the head's own time is: the two are read side by side."""
    rounds = (both for phase in (SCREEN, CONFIRM) for both in comparison.captures(phase).get(key, ()))
    return median(sorted(median(sorted(base.samples[-1].durations)) for base, _ in rounds))


def _planned(plan: Allotment, suspects: tuple[CaseKey, ...], cases: int) -> str:
    """``1 of 3 suspected: up to 10 fresh rounds each``."""
    head = f"{len({key.nodeid for key in suspects})} of {cases} suspected"
    counts = sorted(set(plan.rounds.values()))
    each = f"up to {plural(counts[0], 'fresh round')} each" if len(counts) == 1 else ""
    each = each or (f"up to {counts[-1]} fresh rounds" if counts else "none within the budget")
    lost = f", {len(plan.beyond)} beyond the budget" if plan.beyond and counts else ""
    cost = f", {about(plan.cost)}" if plan.cost else ""
    return f"{head}: {each}{lost}{cost}"
