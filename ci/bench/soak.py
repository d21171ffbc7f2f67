"""Many gated runs in one project: what grows? Files, bytes, temporary files, memory of a run, descriptors of a session.

    python ci/bench/soak.py --runs 1000

Every tenth run measures in fresh processes, the others quickly; behind them come changes that are each measured beside
what was there before. Ends with 1 where something grew that should not.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = '[tool.perfgate]\ndevices = ["*"]\nbudget = "2 ms"\nwarmup = "1 ms"\nsamples = 5\nrounds = 1\n'
TESTS = """
import os, pytest

@pytest.mark.perfgate("time <= 1s")
@pytest.mark.parametrize("n", range(int(os.environ.get("SOAK_TESTS", "1"))))
def test_sum(perfgate, n):
    perfgate(sum, (1, 2, 3))
"""
CONFTEST = """
import os, resource

def open_and_resident():
    return len(os.listdir("/proc/self/fd")), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

def pytest_runtest_teardown(item):
    told = os.environ.get("SOAK_TOLD")
    if told and item.name in ("test_sum[99]", "test_sum[999]"):
        with open(told, "a") as file:
            file.write("%d %d\\n" % open_and_resident())
"""


class State(NamedTuple):
    """What there is after so many runs."""

    runs: int
    files: int
    arms: int
    """Builds of revisions that are kept."""
    kilobytes: int
    temporary: int
    seconds: float
    megabytes: int
    """The largest process so far."""


def command(mode: str, against: str = "") -> list[str]:
    words = ("-q", "-p", "no:cacheprovider", "-p", "pytest_perfgate.plugin", f"--perfgate={mode}")
    return [sys.executable, "-m", "pytest", *words, *([f"--perfgate-against={against}"] if against else [])]


def committed(folder: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    subprocess.run(["git", *who, "commit", "-qm", "a"], cwd=folder, check=True)


def run_suite(folder: Path, room: Path, mode: str, against: str = "", **more: str) -> None:
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PERFGATE_", "CI"))}
    env = {**outer, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "TMPDIR": str(room), **more}
    done = subprocess.run(command(mode, against), cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"a run ended with {done.returncode}:\n{done.stdout[-2000:]}")


def state(folder: Path, room: Path, runs: int, began: float) -> State:
    import resource

    files = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    size = sum(path.stat().st_size for path in files) // 1024
    arms = len(list(folder.glob(".perfgate/arms/*/")))
    return State(runs, len(files), arms, size, len(list(room.rglob("*"))), time.monotonic() - began, largest)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument(
        "--changes", type=int, default=20, help="measured beside what was there before, behind the runs"
    )
    parser.add_argument("--tests", type=int, default=1000, help="of the one long session at the end")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder, room, log = Path(place) / "project", Path(place) / "tmp", Path(place) / "told"
        for one in (folder, room):
            one.mkdir()
        for name, text in (("pyproject.toml", SETTINGS), ("test_k.py", TESTS), ("conftest.py", CONFTEST)):
            (folder / name).write_text(text, encoding="utf-8")
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        committed(folder)
        print(
            "| runs | files | arms | KiB | temporary files | MiB of the largest process | seconds |\n"
            + "| --- " * 7
            + "|"
        )
        began, states = time.monotonic(), []
        for number in range(1, options.runs + 1):
            run_suite(folder, room, "full" if number % 10 == 0 else "quick")
            if number in (10, options.runs) or number % 100 == 0:
                states.append(state(folder, room, number, began))
                print(row(states[-1]), flush=True)
        for number in range(1, options.changes + 1):
            (folder / "test_k.py").write_text(f"{TESTS}\n# {number}\n", encoding="utf-8")
            committed(folder)
            run_suite(folder, room, "full", "HEAD~1")
            if number in (5, 10, options.changes):
                print(row(state(folder, room, options.runs + number, began)), flush=True)
        run_suite(folder, room, "quick", SOAK_TESTS=str(options.tests), SOAK_TOLD=str(log))
        usage = [tuple(map(int, line.split())) for line in log.read_text(encoding="utf-8").splitlines()]
    print(f"one session of {options.tests:,} tests: descriptors and MiB after 100 and at the end: {usage}")
    return 1 if grew(states, usage) else 0


def row(one: State) -> str:
    cells = (
        f"{one.runs:,}",
        one.files,
        one.arms,
        f"{one.kilobytes:,}",
        one.temporary,
        one.megabytes,
        f"{one.seconds:.0f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def grew(states: list[State], usage: list[tuple[int, ...]]) -> bool:
    """Return whether anything but the history grew after 200 runs; records are kept up to a hundred."""
    late = [one for one in states if one.runs >= 200]
    files = len(late) > 1 and late[-1].files > late[0].files
    memory = len(states) > 1 and states[-1].megabytes > 1.2 * states[0].megabytes
    descriptors = len(usage) > 1 and usage[-1][0] > usage[0][0] + 2
    return files or memory or descriptors or any(one.temporary for one in states)


if __name__ == "__main__":
    raise SystemExit(main())
