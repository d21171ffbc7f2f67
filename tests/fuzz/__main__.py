"""The fuzzer as a command; ci/fuzz makes the environment and calls it."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from tests.fuzz.campaign import Fault, Outcome, campaign, mutant
from tests.fuzz.readers import READERS


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/fuzz", description=__doc__)
    parser.add_argument("--only", default="", help="readers whose name holds this text")
    parser.add_argument("--mutants", type=int, default=1000, help="of each kind of file")
    parser.add_argument("--seconds", type=float, default=math.inf, help="for each kind of file at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, metavar="NUMBER", help="write that mutant to standard output")
    options = parser.parse_args()
    names = [name for name in READERS if options.only in name]
    if not names:
        parser.error(f"no reader's name holds '{options.only}': {', '.join(READERS)}")
    if options.show is not None:
        (name,) = names
        draw = f"{options.seed}/{name}/{options.show}"
        sys.stdout.buffer.write(mutant(READERS[name], dict(READERS[name].seeds()), draw).data)
        return 0
    outcomes = {name: _printed(name, campaign(name, options.mutants, options.seed, options.seconds)) for name in names}
    print("\n".join(_table(outcomes)))
    return 1 if any(outcome.faults for outcome in outcomes.values()) else 0


def _printed(name: str, outcome: Outcome) -> Outcome:
    """Each fault once by what it says, with how to see the mutant again."""
    shown: dict[tuple[str, str], list[Fault]] = {}
    for fault in outcome.faults:
        shown.setdefault((fault.kind, fault.detail[:60]), []).append(fault)
    for (kind, _), faults in shown.items():
        first = faults[0]
        print(f"{name}: {len(faults)} x {kind}: {first.detail}")
        print(f"    --only {name!r} --show {first.number}   {first.seed}: {', '.join(first.ways)}", flush=True)
    print(_row(name, outcome), flush=True)
    return outcome


KINDS = ("refused", "same", "noticed", "other", "crash", "hang", "memory", "silent", "impossible")


def _table(outcomes: dict[str, Outcome]) -> list[str]:
    lines = [f"| reader | mutants | {' | '.join(KINDS)} | seconds |", "| --- " * (len(KINDS) + 3) + "|"]
    return [*lines, *(_row(name, outcome) for name, outcome in outcomes.items())]


def _row(name: str, outcome: Outcome) -> str:
    counts, _, seconds = outcome
    cells = " | ".join(f"{counts[kind]:,}" for kind in KINDS)
    return f"| {name} | {sum(counts.values()):,} | {cells} | {seconds:.0f} |"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    raise SystemExit(main())
