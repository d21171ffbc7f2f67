"""perfgate's rule by the package's own functions, with what was tried beside it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from peers import Ruling
from suites import TESTS, Suite

from pytest_perfgate.core.judge.rounds import IN_CI, Design, Pairs, RoundsResult, all_looks, more_slow, one_look
from pytest_perfgate.model.plan import Decision

LIMIT = 0.03
FLAT_ROUNDS = 10


@dataclass(frozen=True)
class Variant:
    """A design with the summary that stands for a process."""

    name: str
    table: str = "median"
    design: Design = field(default_factory=lambda: Design(cases=TESTS))
    turns: str = ""
    """The table of turns: the head is as far from the base as the middle of their turns."""
    looks: bool = True
    """False: every test gets ten rounds and one look, uncorrected."""

    def __call__(self, suite: Suite) -> Ruling:
        if not self.looks:
            return self._flat(suite)
        count = self.design.last
        when = (np.arange(count) + np.arange(TESTS)[:, None] / TESTS) / count
        pairs = self.pairs(suite, np.arange(count), when)
        findings = {key: all_looks(None, pair, LIMIT, self.design) for key, pair in pairs.items()}
        played = {key: pairs[key].first(one.rounds) for key, one in findings.items()}
        findings = more_slow(findings, played, dict.fromkeys(findings, LIMIT), self.design.alpha)
        return self._ruling(findings, sum(one.rounds for one in findings.values()) / TESTS)

    def pairs(self, suite: Suite, at: np.ndarray, when: np.ndarray) -> dict[int, Pairs]:
        base, head = (suite.times(self.table, side, at, when) for side in (False, True))
        if self.turns:
            before, after = (suite.times(self.turns, side, at, when) for side in (False, True))
            head = base * np.median(after / before, axis=-1)
        iqr = "cpu iqr" if self.table.startswith("cpu") else "iqr"
        spread = np.median(suite.times(iqr, False, at, when), axis=1)
        rows = zip(base.tolist(), head.tolist(), spread.tolist())
        return {key: Pairs(base=tuple(b), head=tuple(h), spread=s) for key, (b, h, s) in enumerate(rows)}

    def _flat(self, suite: Suite) -> Ruling:
        count = FLAT_ROUNDS
        when = (np.arange(count) + np.arange(TESTS)[:, None] / TESTS) / count
        findings = {key: one_look(pair, LIMIT) for key, pair in self.pairs(suite, np.arange(count), when).items()}
        share = Design().alpha / Design().level
        slower = np.array([f.p / share < 0.01 and f.shift >= LIMIT for f in findings.values()])
        return Ruling(slower, np.zeros(TESTS, bool), count)

    @staticmethod
    def _ruling(findings: dict[int, RoundsResult], rounds: float) -> Ruling:
        alarm = np.array([f.decision is Decision.SLOWER for f in findings.values()])
        open_ = np.array([f.decision is Decision.UNDECIDED for f in findings.values()])
        return Ruling(alarm, open_, rounds)


FLAT = Variant("paired signed-rank, R=10", looks=False)
FIRST = Variant("perfgate: 7 to 30 rounds, medians")
KEPT = Variant("perfgate: 7 to 30 rounds, turns of CPU time", "cpu q10", turns="cpu turns")
CI = Variant(
    "perfgate in CI: 7 to 60 rounds, turns of CPU time",
    "cpu q10",
    turns="cpu turns",
    design=Design(most=IN_CI, cases=TESTS),
)
WALL = Variant("perfgate: 7 to 30 rounds, turns of wall minima", "min", turns="wall turns")
TRIED = (
    FIRST,
    Variant("minimum", "min"),
    Variant("10 % quantile", "q10"),
    Variant("25 % quantile", "q25"),
    Variant("undisturbed samples, median", "undisturbed"),
    Variant("CPU time, median", "cpu"),
    Variant("CPU time, 25 % quantile", "cpu q25"),
    Variant("CPU time, 10 % quantile", "cpu q10"),
    Variant("CPU time, minimum", "cpu min"),
    Variant("turns: minima of CPU time", "cpu q10", turns="cpu turn minima"),
    Variant("turns: medians of CPU time (kept)", "cpu q10", turns="cpu turns"),
    Variant("turns: minima of wall time (kept where it waits)", "min", turns="wall turns"),
)
