"""Eight shards against one run of the same suites: ``python ci/bench/verdicts/shards.py``.

Suites of forty tests are drawn as ``replay.py`` draws them, two of them slower, wherever they lie. One run decides all
forty by two builds; eight shards, divided by the package's own rule, decide theirs with their share of the chance of an
alarm. Both play up to the sixty rounds of CI. Once every test is open, once a quarter of them: then the correction of
one run is over ten, and a shard's over however many of those it has.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[2])]
from ours import CI, LIMIT  # noqa: E402
from replay import PARTS  # noqa: E402
from suites import ARM, CONDITIONS, TESTS, Library, Suite, suite  # noqa: E402

from ci.rates import upper_bound  # noqa: E402
from pytest_perfgate.core.judge.rounds import IN_CI, Design, Pairs, all_looks, more_slow  # noqa: E402
from pytest_perfgate.core.stats.costs import divided  # noqa: E402
from pytest_perfgate.core.stats.inference import clopper_pearson  # noqa: E402
from pytest_perfgate.model.plan import Decision  # noqa: E402

SHARDS, SLOWED, PERCENT = 8, 2, 10
NAMES = [f"tests/test_k.py::test_{at}" for at in range(TESTS)]
Decisions = dict[int, Decision]


@dataclass
class Tally:
    """Both ways under one condition."""

    suites: int = 0
    alarmed: Counter[str] = field(default_factory=Counter)
    detected: Counter[str] = field(default_factory=Counter)
    tests: int = 0
    same: int = 0
    planted: int = 0

    def add(self, other: Tally) -> None:
        """The suites of another part."""
        for name in ("suites", "alarmed", "detected", "tests", "same", "planted"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def row(self, condition: str, share: float) -> list[str]:
        cells = [condition, f"{share:.0%}"]
        for way in ("one run", "shards"):
            count = self.alarmed[way]
            cells.append(f"{count / self.suites:.2%} (≤ {upper_bound(count, self.suites):.1%})")
        for way in ("one run", "shards"):
            hits = self.detected[way]
            cells.append(f"{hits / self.planted:.0%} (≥ {clopper_pearson(hits, self.planted).low:.0%})")
        return [*cells, f"{self.same / self.tests:.2%}"]


def pairs_of(one: Suite) -> dict[int, Pairs]:
    count = Design(most=IN_CI, cases=TESTS).last
    when = (np.arange(count) + np.arange(TESTS)[:, None] / TESTS) / count
    return CI.pairs(one, np.arange(count), when)


def decided(pairs: dict[int, Pairs], alpha: float) -> Decisions:
    """Return the decisions of two builds, with so much of the chance of an alarm for all of these."""
    design = Design(alpha=alpha, most=IN_CI, cases=max(1, len(pairs)))
    least = min((len(pair.base) for pair in pairs.values()), default=0)
    design = replace(design, most=min(design.most, least) or design.most)
    findings = {key: all_looks(None, pair, LIMIT, design) for key, pair in pairs.items()}
    played = {key: pairs[key].first(one.rounds) for key, one in findings.items()}
    findings = more_slow(findings, played, dict.fromkeys(findings, LIMIT), alpha)
    return {key: one.decision for key, one in findings.items()}


def by_shards(pairs: dict[int, Pairs], costs: dict[str, float]) -> Decisions:
    homes, alpha = divided(NAMES, SHARDS, costs), Design().alpha
    decisions: Decisions = {}
    for index in range(1, SHARDS + 1):
        mine = {at for at, name in enumerate(NAMES) if homes[name] == index}
        own = {at: pair for at, pair in pairs.items() if at in mine}
        decisions |= decided(own, alpha * len(mine) / TESTS)
    return decisions


def tallied(library: Library, count: int, seed: int, kind: tuple[float, str, int]) -> Tally:
    """Judge one part of the suites; every part draws all of them."""
    share, condition, part = kind
    dice, tally = np.random.default_rng(seed), Tally()
    for at in range(count):
        costs = dict(zip(NAMES, dice.uniform(0.2, 4.0, TESTS).tolist()))
        open_ = set(dice.permutation(TESTS)[: round(share * TESTS)].tolist())
        clean = suite(library, condition, 0, 0, dice)
        where = set(dice.permutation(TESTS)[:SLOWED].tolist())
        arm = np.array([ARM[PERCENT] if test in where else ARM[0] for test in range(TESTS)])
        if at % PARTS != part:
            continue
        tally.suites += 1
        for one, planted in ((clean, set[int]()), (replace(clean, arm=arm), where)):
            pairs = {at: pair for at, pair in pairs_of(one).items() if at in open_}
            ways = {"one run": decided(pairs, Design().alpha), "shards": by_shards(pairs, costs)}
            slower = {
                way: {at for at, d in decisions.items() if d is Decision.SLOWER} for way, decisions in ways.items()
            }
            tally.tests += len(pairs)
            tally.planted += len(planted & open_)
            tally.same += sum(ways["one run"][test] is ways["shards"][test] for test in pairs)
            for way, alarms in slower.items():
                tally.alarmed[way] += bool(alarms) and not planted
                tally.detected[way] += len(alarms & planted)
    return tally


HEADS = ("condition", "open", "clean suites alarmed: one run", "eight shards", f"+{PERCENT} % found: one run")
HEADS += ("eight shards", "same decisions")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recordings", type=Path, default=HERE / "recordings")
    parser.add_argument("--suites", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    kinds = tuple(product((1.0, 0.25), CONDITIONS, range(PARTS)))
    lines_of = {(share, condition): Tally() for share, condition, _ in kinds}
    with ProcessPoolExecutor() as pool:
        parts = pool.map(partial(tallied, Library(chosen.recordings), chosen.suites, chosen.seed), kinds)
        for (share, condition, _), part in zip(kinds, parts):
            lines_of[share, condition].add(part)
    rows = [tally.row(condition, share) for (share, condition), tally in lines_of.items()]
    lines = ["| " + " | ".join(cells) + " |" for cells in (HEADS, ["---"] * len(HEADS), *rows)]
    note = (
        f"{chosen.suites} clean suites of {TESTS} a line, and as many with {SLOWED} slower tests; seed {chosen.seed}."
    )
    print("\n".join((note, "", *lines)))


if __name__ == "__main__":
    main()
