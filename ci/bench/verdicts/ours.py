"""perfgate's rule by the package's own functions, with what was tried beside it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from peers import Ruling
from suites import TESTS, Suite

from pytest_perfgate.core.judge.rounds import (
    Design,
    Finding,
    Pairs,
    confirming_rounds,
    convicted,
    finding,
    served,
    suspected,
)
from pytest_perfgate.model.verdict import Decision

COUNTS = dict.fromkeys(range(TESTS), 0.03)


@dataclass(frozen=True)
class Variant:
    """A design with the summary that stands for a process."""

    name: str
    table: str = "median"
    design: Design = field(default_factory=Design)
    turns: str = ""
    """The table of turns: the head is as far from the base as the middle of their turns."""
    screens: bool = True
    """False: no screening, every test gets the confirming rounds at once, uncorrected."""

    def __call__(self, suite: Suite) -> Ruling:
        if not self.screens:
            return self._flat(suite)
        count = self.design.screen
        when = (np.arange(count) + np.arange(TESTS)[:, None] / TESTS) / count
        found = {key: finding(pair, 0.03) for key, pair in self.pairs(suite, np.arange(count), when).items()}
        suspects = suspected(found, COUNTS)
        more = confirming_rounds(len(suspects), self.design) if suspects else 0
        fresh: dict[int, Pairs] = {}
        if suspects:
            planned = self.pairs(suite, np.arange(count, count + more), np.ones((TESTS, more)))
            fresh = {key: served(planned[key], COUNTS[key], self.design) for key in suspects}
            found |= convicted(fresh, COUNTS, self.design)
        return self._ruling(found, count + sum(len(pairs.base) for pairs in fresh.values()) / TESTS)

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
        count = self.design.confirm
        when = (np.arange(count) + np.arange(TESTS)[:, None] / TESTS) / count
        found = {key: finding(pair, 0.03) for key, pair in self.pairs(suite, np.arange(count), when).items()}
        slower = np.array([f.p < 0.01 and f.shift >= 0.03 for f in found.values()])
        return Ruling(slower, np.zeros(TESTS, bool), np.zeros(TESTS, bool), count, count)

    @staticmethod
    def _ruling(found: dict[int, Finding], rounds: float) -> Ruling:
        alarm = np.array([f.decision is Decision.SLOWER for f in found.values()])
        unstable = np.array([f.unstable for f in found.values()]) & ~alarm
        open_ = np.array([f.decision is Decision.UNDECIDED for f in found.values()]) | unstable
        return Ruling(alarm, open_, unstable, rounds, rounds)


FLAT = Variant("paired signed-rank, R=10", screens=False, design=Design(confirm=10))
FIRST = Variant("perfgate: screen 5, confirm 10, medians")
KEPT = Variant("perfgate: screen 5, confirm 10, turns of CPU time", "cpu q10", turns="cpu turn minima")
WALL = Variant("perfgate: screen 5, confirm 10, turns of wall minima", "min", turns="wall turns")
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
    Variant("turns: minima of CPU time (kept)", "cpu q10", turns="cpu turn minima"),
    Variant("turns: medians of CPU time", "cpu q10", turns="cpu turns"),
    Variant("turns: minima of wall time (kept where it waits)", "min", turns="wall turns"),
)
