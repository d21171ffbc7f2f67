"""The kills as a command; ci/kill makes the environment and calls it."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from random import Random

from tests import postgres_server
from tests.kill.kills import SCENARIOS, Killed


def main() -> int:
    parser = argparse.ArgumentParser(prog="ci/kill", description=__doc__)
    parser.add_argument("--times", type=int, default=200, help="kills of each kind")
    parser.add_argument("--only", default="", help="kinds whose name holds this text")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    names = [name for name in SCENARIOS if options.only in name]
    if not names:
        parser.error(f"no kind holds '{options.only}': {', '.join(SCENARIOS)}")
    lines, faults = ["| what was killed | times | at work | lost or left | seconds |", "| --- " * 5 + "|"], 0
    for name in names:
        began = time.monotonic()
        kills = list(killed(name, options.times, options.seed))
        bad = [kill for kill in kills if kill.faults]
        for kill in bad:
            print(f"{name}: {kill.faults}", flush=True)
        busy, seconds = sum(kill.busy for kill in kills), time.monotonic() - began
        lines.append(f"| {name} | {len(kills)} | {busy} | {len(bad)} | {seconds:.0f} |")
        faults += len(bad)
    print("\n".join(lines))
    if why := postgres_server.missing():
        print(f"PostgreSQL was not killed: {why}")
    return 1 if faults else 0


def killed(name: str, times: int, seed: int) -> list[Killed]:
    """So many kills of one kind; runs share one project, everything else has a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        results = []
        for number in range(times):
            place = Path(folder) / ("project" if name.startswith("a run") else str(number))
            place.mkdir(exist_ok=True)
            results.append(SCENARIOS[name](Random(f"{seed}/{name}/{number}"), place))
        return results


if __name__ == "__main__":
    raise SystemExit(main())
