"""Replays a recording as suites of 40 tests and prints every rule's errors: ``python ci/bench/verdicts/replay.py``.

``--write docs/rates.md`` puts the table between the page's markers of ``--mark``. Rates carry their n and the 95 %
Clopper-Pearson bound. ``--rules ours`` runs perfgate's rule alone, ``tried`` the designs that were tried instead.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[2])]
import ours  # noqa: E402
import peers  # noqa: E402
from suites import CONDITIONS, TESTS, Library, suite  # noqa: E402

from ci.rates import upper_bound  # noqa: E402
from pytest_perfgate.core.stats.inference import clopper_pearson  # noqa: E402

SLOWED = 2
"""Tests of a suite that really are slower, where power is measured."""
SLOWDOWNS = (3, 5, 10, 40)
PARTS = 6
"""Into how many parts the suites of a condition are divided."""
Rule = Callable[[object], peers.Ruling]


@dataclass
class Tally:
    """One rule under one condition."""

    suites: int = 0
    alarmed_suites: int = 0
    undecided: int = 0
    processes: list[float] = field(default_factory=list)
    detected: dict[int, int] = field(default_factory=dict)

    def clean(self, ruling: peers.Ruling) -> None:
        self.suites += 1
        self.alarmed_suites += bool(ruling.alarm.any())
        self.undecided += int(ruling.undecided.sum())
        self.processes.append(ruling.processes)

    def slowed(self, percent: int, ruling: peers.Ruling) -> None:
        self.detected[percent] = self.detected.get(percent, 0) + int(ruling.alarm[:SLOWED].sum())
        self.processes.append(ruling.processes)

    def add(self, other: Tally) -> None:
        """The suites of another part."""
        for name in ("suites", "alarmed_suites", "undecided", "processes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for percent, hits in other.detected.items():
            self.detected[percent] = self.detected.get(percent, 0) + hits

    def row(self, rule: str, condition: str, powers: int) -> list[str]:
        bound = upper_bound(self.alarmed_suites, self.suites)
        cells = [rule, condition, f"{self.alarmed_suites}/{self.suites} (≤ {bound:.1%})"]
        for percent in SLOWDOWNS:
            hits = self.detected.get(percent, 0)
            low = clopper_pearson(hits, powers).low
            cells.append(f"{hits / powers:.0%} (≥ {low:.0%})")
        return [*cells, f"{self.undecided / self.suites / TESTS:.1%}", f"{np.mean(self.processes):.2f}"]


HEADS = ("rule", "condition", "suites that alarm", *(f"sees +{percent} %" for percent in SLOWDOWNS))
HEADS += ("undecided", "processes a side")


def tallied(library: Library, chosen: str, count: int, seed: int) -> dict[tuple[str, str], Tally]:
    """Tally all rules on the same suites; a process takes a part of the suites of a condition."""
    tallies = {(name, condition): Tally() for name in rules(chosen) for condition in CONDITIONS}
    parts = tuple(product(CONDITIONS, range(PARTS)))
    with ProcessPoolExecutor() as pool:
        for (condition, _), part in zip(parts, pool.map(partial(_tallied, library, chosen, count, seed), parts)):
            for name, tally in part.items():
                tallies[name, condition].add(tally)
    return tallies


def _tallied(library: Library, chosen: str, count: int, seed: int, which: tuple[str, int]) -> dict[str, Tally]:
    """Tally one part of the suites; every part draws all of them, so that their number changes nothing."""
    condition, part = which
    dice, tallies = np.random.default_rng(seed), {name: Tally() for name in rules(chosen)}
    for at in range(count):
        clean = suite(library, condition, 0, 0, dice)
        slowed = {percent: suite(library, condition, percent, SLOWED, dice) for percent in SLOWDOWNS}
        for name, rule in rules(chosen).items() if at % PARTS == part else ():
            tallies[name].clean(rule(clean))
            for percent, one in slowed.items():
                tallies[name].slowed(percent, rule(one))
    return tallies


def table(tallies: dict[tuple[str, str], Tally], count: int) -> str:
    rows = [tally.row(rule, condition, count * SLOWED) for (rule, condition), tally in sorted_by_rule(tallies)]
    lines = ["| " + " | ".join(cells) + " |" for cells in (HEADS, ["---"] * len(HEADS), *rows)]
    return "\n".join(lines) + "\n"


def sorted_by_rule(tallies: dict[tuple[str, str], Tally]) -> list[tuple[tuple[str, str], Tally]]:
    order = list(dict.fromkeys(rule for rule, _ in tallies))
    return sorted(tallies.items(), key=lambda item: order.index(item[0][0]))


def rules(chosen: str) -> dict[str, Rule]:
    others: dict[str, Rule] = {
        "pytest-benchmark mean:5%": peers.benchmark_mean,
        "pytest-benchmark min:5%": peers.benchmark_min,
        "asv-like, factor 1.1": peers.asv,
        "pooled Mann-Whitney p<.05": peers.pooled,
        "Welch 90 % > 5 %, R=5": peers.welch,
        "benchmatrix 1.2, 6 pairs": peers.benchmatrix,
    }
    own: dict[str, Rule] = {v.name: v for v in (ours.FLAT, ours.WALL, ours.KEPT, ours.CI)}
    tried: dict[str, Rule] = {v.name: v for v in ours.TRIED}
    return {"all": others | own, "ours": own, "tried": tried}[chosen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recordings", type=Path, default=HERE / "recordings")
    parser.add_argument("--suites", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rules", choices=("all", "ours", "tried"), default="all")
    parser.add_argument("--mark", default="table")
    parser.add_argument("--write", type=Path)
    chosen = parser.parse_args()
    if chosen.write and not chosen.write.is_file():
        parser.error(f"--write {chosen.write}: no such page; a table goes between the markers of one that is there")
    library = Library(chosen.recordings)
    text = table(tallied(library, chosen.rules, chosen.suites, chosen.seed), chosen.suites)
    note = (
        f"{chosen.suites} clean suites of {TESTS} a condition, block-resampled from {library.rounds} recorded rounds of "  # noqa: E501
        f"{len(library.kernels)} kernels; power over {chosen.suites * SLOWED} slowed tests a cell; seed {chosen.seed}.\n"  # noqa: E501
    )
    print(note + "\n" + text)
    if chosen.write:
        write_table(chosen.write, chosen.mark, note + "\n" + text, rows=chosen.rules == "ours")


def write_table(page: Path, mark: str, text: str, *, rows: bool = False) -> None:
    """Replace a table between its markers; by ``rows``, rows of other rules stay."""
    old = page.read_text(encoding="utf-8")
    head, begin, rest = old.partition(f"<!-- begin {mark} -->\n")
    before, end, tail = rest.partition(f"<!-- end {mark} -->")
    if not begin or not end:
        raise SystemExit(f"{page} has no markers for the {mark}")
    if rows and text.splitlines()[:4] == before.splitlines()[:4]:
        lines = {_rule(line): line for part in (before, text) for line in part.splitlines()[4:]}
        text = "\n".join((*before.splitlines()[:4], *lines.values())) + "\n"
    page.write_text(head + begin + text + end + tail, encoding="utf-8")


def _rule(line: str) -> tuple[str, ...]:
    """Return the rule and the condition of a row."""
    return tuple(line.split("|")[1:3])


if __name__ == "__main__":
    main()
