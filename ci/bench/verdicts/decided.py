"""How often plain ``pytest`` in CI decides, and how often rightly: forty host kernels, a limit of 3 %.

    python ci/bench/verdicts/decided.py live --suites 1 --out decided.jsonl      runs of the real command
    python ci/bench/verdicts/decided.py table --live decided.jsonl --write docs/verdicts.md

Live: a project of forty kernels in a bare repository, baselines accepted by ``perfgate accept`` from a full run, quiet
or beside two busy loops; then a fresh clone, a branch with one commit, and plain ``pytest`` as CI starts it, quiet or
beside two busy loops. The change is a comment, or four kernels each with 5, 10 and 40 % more work. "Quiet" is what this
machine is when nothing is started beside it; the load before each run stands in the table. Interrupted, the next call
goes on.

The replay draws suites of forty from recorded rounds of ten kernels (``replay.py``), by the package's own looks, and
peers' rules on the same suites.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[2])]

from ci.rates import upper_bound  # noqa: E402
from pytest_perfgate.adapters.stores.records import read_record  # noqa: E402

SLOWER = (1.05, 1.10, 1.40)
CONDITIONS = ("quiet", "loaded")
TESTS = """
import pytest
from kern import UNITS, factor, kernels

KERNELS = kernels()


@pytest.mark.perfgate("slowdown <= 3%")
@pytest.mark.parametrize("name", KERNELS)
def test_kernel(perfgate, name):
    units = round(UNITS * factor(name))
    perfgate(lambda: KERNELS[name](units))
"""
FACTOR = """

FACTORS = {factors}


def factor(name):
    return FACTORS.get(name, 1.0)
"""
ACCEPT = "import sys; from pytest_perfgate.cli import main; sys.exit(main(['accept', '--new', '--reason', 'first']))"
SETTINGS = """
[tool.pytest.ini_options]
pythonpath = ["."]
[tool.perfgate]
arms = "worktree"
devices = ["*"]
budget = 0.3
"""


def git(root: Path, *words: str) -> None:
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


def environment(**more: str) -> dict[str, str]:
    """Nothing of an outer pytest or CI."""
    inner = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PERFGATE_", "GITHUB_")) and k != "CI"}
    return {**inner, **more}


@contextmanager
def beside(condition: str) -> Iterator[None]:
    """Two busy loops, or none."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (condition == "loaded"))]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def slowed_names(suite: int) -> dict[str, float]:
    """Four kernels for each slowdown, other ones in each suite."""
    from forty import kernels

    names = list(kernels())
    return {names[(suite + at * 7) % 40]: SLOWER[at % 3] for at in range(12)}


def code(factors: dict[str, float]) -> str:
    return (HERE / "forty.py").read_text(encoding="utf-8") + FACTOR.format(factors=factors)


def origin(folder: Path, condition: str) -> Path:
    """A bare repository whose baselines were accepted under this condition."""
    bare, work = folder / f"{condition}.git", folder / f"{condition}-work"
    if bare.exists():
        return bare
    shutil.rmtree(work, ignore_errors=True)
    (work / "tests").mkdir(parents=True)
    (work / "pyproject.toml").write_text(SETTINGS)
    (work / ".gitignore").write_text(".perfgate/\n__pycache__/\n")
    (work / "tests" / "test_kernels.py").write_text(TESTS)
    (work / "kern.py").write_text(code({}))
    git(work, "init", "-q", "-b", "main")
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "code")
    with beside(condition):
        ran(work, "-m", "pytest", "-q", "--perfgate=full", "-p", "no:cacheprovider")
    accepted = ran(work, "-c", ACCEPT)
    if accepted.returncode:
        raise SystemExit(f"nothing was accepted:\n{accepted.stdout}{accepted.stderr}")
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "baselines")
    git(folder, "clone", "-q", "--bare", str(work), str(bare))
    return bare


def ran(root: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=root, env=environment(**more), capture_output=True, text=True, check=False)


def one(folder: Path, accepted: str, condition: str, suite: int, slowed: bool) -> dict[str, Any]:
    """One run of the real command, as CI starts it."""
    clone = Path(tempfile.mkdtemp(prefix="decided-"))
    try:
        git(folder, "clone", "-q", str(origin(folder, accepted)), str(clone / "c"))
        root, factors = clone / "c", slowed_names(suite) if slowed else {}
        git(root, "checkout", "-q", "-b", "change")
        (root / "kern.py").write_text(code(factors) + "\n# the change\n")
        git(root, "commit", "-q", "-a", "-m", "change")
        ci = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main", "GITHUB_EVENT_NAME": "pull_request"}
        load = os.getloadavg()[0]
        with beside(condition):
            began = time.monotonic()
            words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--perfgate-json", "out.json")
            done = ran(root, *words, **ci)
            seconds = time.monotonic() - began
        if not (root / "out.json").exists():
            raise SystemExit(f"the run left no record:\n{done.stdout}{done.stderr}")
        told = {}
        for case in read_record(root / "out.json").cases:
            (verdict,) = case.verdicts
            name = str(case.key).partition("[")[2].rstrip("]")
            shift = verdict.metric.value if verdict.metric else None
            told[name] = [factors.get(name, 1.0), verdict.outcome.value, verdict.rounds, shift]
        return {"accepted": accepted, "condition": condition, "slowed": slowed, "seconds": seconds, "load": load,
                "exit": done.returncode, "cases": told}  # fmt: skip
    finally:
        shutil.rmtree(clone, ignore_errors=True)


def live(out: Path, suites: int, folder: Path) -> None:
    """So many suites of each kind in each cell, in turns."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    for suite, slowed, accepted, condition in product(range(suites), (True, False), CONDITIONS, CONDITIONS):
        cell = {"accepted": accepted, "condition": condition, "slowed": slowed}
        if sum(all(run[k] == v for k, v in cell.items()) for run in kept) > suite:
            continue
        kept.append(one(folder, accepted, condition, suite, slowed))
        with out.open("a") as file:
            file.write(json.dumps(kept[-1]) + "\n")
        counts = Counter(outcome for _, outcome, *_ in kept[-1]["cases"].values())
        print(cell, f"{kept[-1]['seconds']:.0f} s", dict(counts), file=sys.stderr, flush=True)


HEADS = (
    "accepted",
    "run",
    "code",
    "cases",
    "PASSED",
    "REGRESSED",
    "other",
    "rounds a case",
    "seconds a suite",
    "load before",
)


def live_table(runs: list[dict[str, Any]]) -> str:
    """One row for each cell and slowdown, with counts; of clean suites those that alarm."""
    rows = []
    for accepted, condition, by in product(CONDITIONS, CONDITIONS, (1.0, *SLOWER)):
        here = [r for r in runs if (r["accepted"], r["condition"]) == (accepted, condition)]
        cases = [c for r in here for c in r["cases"].values() if c[0] == by]
        if not cases:
            continue
        outcomes = Counter(c[1] for c in cases)
        cleared = outcomes["passed"] + outcomes["improved"]
        other = ", ".join(
            f"{n} {name}" for name, n in outcomes.items() if name not in {"passed", "improved", "regressed"}
        )
        code = "unchanged" if by == 1 else f"+{100 * (by - 1):.0f} %"
        low, high = min(r["load"] for r in here), max(r["load"] for r in here)
        took = f"{min(r['seconds'] for r in here):.0f} to {max(r['seconds'] for r in here):.0f}"
        rounds = sum(c[2] for c in cases) / len(cases)
        rows.append((accepted, condition, code, str(len(cases)), f"{cleared} ({cleared / len(cases):.0%})",
                     f"{outcomes['regressed']} ({outcomes['regressed'] / len(cases):.0%})", other or "-",
                     f"{rounds:.1f}", took, f"{low:.1f} to {high:.1f}"))  # fmt: skip
    lines = ["| " + " | ".join(cells) + " |" for cells in (HEADS, ["---"] * len(HEADS), *rows)]
    clean = [r for r in runs if not r["slowed"]]
    alarmed = sum(any(c[1] == "regressed" for c in r["cases"].values()) for r in clean)
    unchanged = [c for r in runs for c in r["cases"].values() if c[0] == 1.0]
    alarms = sum(c[1] == "regressed" for c in unchanged)
    said = (
        f"{len(runs)} live suites of forty kernels; of {len(clean)} clean ones {alarmed} alarmed"
        + (f" (≤ {upper_bound(alarmed, len(clean)):.0%})" if clean else "")
        + f"; of {len(unchanged)} unchanged cases {alarms} (≤ {upper_bound(alarms, max(1, len(unchanged))):.2%}).\n"
    )
    return said + "\n" + "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("live", "table"))
    parser.add_argument("--suites", type=int, default=5)
    parser.add_argument("--out", "--live", type=Path, default=Path("decided.jsonl"))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "perfgate-decided")
    parser.add_argument("--write", type=Path)
    chosen = parser.parse_args()
    if chosen.what == "live":
        live(chosen.out, chosen.suites, chosen.folder)
    text = live_table([json.loads(line) for line in chosen.out.read_text().splitlines()])
    print(text)
    if chosen.write:
        from replay import written

        written(chosen.write, "decided", text)


if __name__ == "__main__":
    main()
