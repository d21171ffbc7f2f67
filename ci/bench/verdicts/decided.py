"""How often plain ``pytest`` in CI decides, and how often rightly: forty host kernels, a limit of 3 %.

    python ci/bench/verdicts/decided.py live --suites 5                       all cells, perfgate and its peers
    python ci/bench/verdicts/decided.py live --suites 1 --cell quiet-quiet --change slowed --tools perfgate
    python ci/bench/verdicts/decided.py table --write docs/rates.md

Live: a project of forty kernels in a bare repository, baselines accepted by ``perfgate accept`` from a full run, quiet
or beside two busy loops; then a fresh clone, a branch with one commit, and plain ``pytest`` as CI starts it, quiet or
beside two busy loops. The change is a comment, or four kernels each with 5, 10 and 40 % more work. "Quiet" is what this
machine is when nothing is started beside it; the load before each run stands in the table. pytest-benchmark and asv
judge the same change right after it (``peers_live.py``), in an environment that is made once and filled from the index.

Each run is a line of the results file, with the version of the code that ran: what is there counts, so evenings add up,
and an interrupted call goes on. A suite of perfgate takes two to eight minutes, of pytest-benchmark and of asv two to
four each; accepting takes as long once for each condition. ``--minutes`` starts nothing later than that.

The replay draws suites of forty from recorded rounds of ten kernels (``replay.py``), by the package's own looks, and
peers' rules on the same suites.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[2])]

from forty import BUILD, CKERN  # noqa: E402
from peers_live import Peers  # noqa: E402

from ci.rates import upper_bound  # noqa: E402
from pytest_perfgate.adapters.stores.records import read_record  # noqa: E402

SLOWER = (1.05, 1.10, 1.40)
CONDITIONS = ("quiet", "loaded")
CELLS = [f"{accepted}-{run}" for accepted, run in product(CONDITIONS, CONDITIONS)]
CHANGES = ("slowed", "clean")
TOOLS = ("perfgate", "pytest-benchmark", "asv")
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
build = "{python} build.py"
devices = ["*"]
budget = 0.3
"""


def git(root: Path, *words: str) -> None:
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


def version() -> str:
    """Return the commit of the code that runs, and whether it is edited."""
    here = ["git", "-C", str(HERE.parents[2])]
    commit = subprocess.run([*here, "rev-parse", "--short=10", "HEAD"], check=True, capture_output=True, text=True)
    code = ("pytest_perfgate", "ci/bench/verdicts/*.py")
    edited = subprocess.run([*here, "status", "--porcelain", "--", *code], check=True, capture_output=True, text=True)
    return commit.stdout.strip() + ("+edited" if edited.stdout.strip() else "")


def environment(**more: str) -> dict[str, str]:
    """Return the variables without those of an outer pytest or CI."""
    inner = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PERFGATE_", "GITHUB_")) and k != "CI"}
    return {**inner, "PYTHONPATH": str(HERE.parents[2]), **more}


@contextmanager
def busy_loops(condition: str) -> Iterator[None]:
    """Run two busy loops in the loaded condition."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (condition == "loaded"))]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def slowed_names(names: Sequence[str], suite: int) -> dict[str, float]:
    """Return four kernels for each slowdown, others in each suite."""
    return {names[(suite + at * 7) % 40]: SLOWER[at % 3] for at in range(12)}


def code(factors: dict[str, float]) -> str:
    return (HERE / "forty.py").read_text(encoding="utf-8") + FACTOR.format(factors=factors)


def prepared(folder: Path) -> tuple[Path, list[str]]:
    """Return a folder for exactly this project, where its extension is built once, and the names of its kernels."""
    place = folder / hashlib.sha256((code({}) + TESTS + SETTINGS).encode()).hexdigest()[:10]
    (place / "names").mkdir(parents=True, exist_ok=True)
    sources(place / "names")
    print_names = "from kern import kernels; print(*kernels(), sep=chr(10))"
    built(place / "names")
    return place, run_python(place / "names", "-c", print_names, check=True).stdout.split()


def sources(root: Path) -> None:
    for name, text in (("kern.py", code({})), ("ckern.c", CKERN), ("build.py", BUILD)):
        (root / name).write_text(text, encoding="utf-8")


def built(root: Path) -> None:
    run_python(root, "build.py", check=True)


def origin(folder: Path, condition: str) -> Path:
    """Return a bare repository whose baselines were accepted under this condition."""
    bare, work = folder / f"{condition}.git", folder / f"{condition}-work"
    if bare.exists():
        return bare
    shutil.rmtree(work, ignore_errors=True)
    (work / "tests").mkdir(parents=True)
    (work / "pyproject.toml").write_text(SETTINGS)
    (work / ".gitignore").write_text(".perfgate/\n__pycache__/\n*.so\n")
    (work / "tests" / "test_kernels.py").write_text(TESTS)
    sources(work)
    built(work)
    git(work, "init", "-q", "-b", "main")
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "code")
    with busy_loops(condition):
        run_python(work, "-m", "pytest", "-q", "--perfgate=full", "-p", "no:cacheprovider")
    run_python(work, "-c", ACCEPT, check=True)
    git(work, "add", "-A")
    git(work, "commit", "-q", "-m", "baselines")
    git(folder, "clone", "-q", "--bare", str(work), str(bare))
    return bare


def run_python(root: Path, *words: str, check: bool = False, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=root, env=environment(**more), capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


Case = tuple[float, str, int, float | None]
"""Work over that of the base, outcome, rounds, and the slowdown that was measured."""


def perfgate(folder: Path, accepted: str, changed: str, factors: dict[str, float]) -> Iterator[dict[str, Case]]:
    """Yield the cases of a fresh clone with the change, after the real command, as CI starts it."""
    clone = Path(tempfile.mkdtemp(prefix="decided-"))
    try:
        git(folder, "clone", "-q", str(origin(folder, accepted)), str(clone / "c"))
        root = clone / "c"
        git(root, "checkout", "-q", "-b", "change")
        (root / "kern.py").write_text(changed)
        git(root, "commit", "-q", "-a", "-m", "change")
        built(root)
        yield {}
        ci = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main", "GITHUB_EVENT_NAME": "pull_request"}
        done = run_python(root, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--perfgate-json", "out.json", **ci)
        if not (root / "out.json").exists():
            raise SystemExit(f"the run left no record:\n{done.stdout}{done.stderr}")
        cases = {}
        for case in read_record(root / "out.json").cases:
            (verdict,) = case.verdicts
            name = str(case.key).partition("[")[2].rstrip("]")
            shift = verdict.metric.value if verdict.metric else None
            cases[name] = (factors.get(name, 1.0), verdict.outcome.value, verdict.rounds, shift)
        yield cases
    finally:
        shutil.rmtree(clone, ignore_errors=True)


def by_peer(
    peers: Peers, judge: Callable[[], list[str]], names: Sequence[str], changed: str, factors: dict[str, float]
) -> Iterator[dict[str, Case]]:
    """Yield what a peer fails after the same change was committed for it."""
    peers.changed(changed)
    yield {}
    failed = judge()
    yield {name: (factors.get(name, 1.0), "regressed" if name in failed else "passed", 0, None) for name in names}


def timed_run(condition: str, steps: Iterator[dict[str, Case]]) -> dict[str, Any]:
    """Return one timed run under a condition; the first step prepares it."""
    next(steps)
    load = os.getloadavg()[0]
    with busy_loops(condition):
        began = time.monotonic()
        cases = next(steps)
        seconds = time.monotonic() - began
    next(steps, None)
    return {"seconds": round(seconds, 1), "load": load, "cases": cases}


def lines_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def live(chosen: argparse.Namespace) -> None:
    """Run the suites of each kind in each cell by each tool, in turns; those that the file has are not run again."""
    until = time.monotonic() + 60 * chosen.minutes
    folder, names = prepared(chosen.folder)
    peers = Peers(folder, code({}), git) if {*chosen.tools} - {"perfgate"} else None
    runs = lines_of(chosen.out)
    for suite, change, cell, tool in product(range(chosen.suites), chosen.change, chosen.cell, chosen.tools):
        accepted, condition = cell.split("-")
        accepted = accepted if tool == "perfgate" else "-"  # the others hold two runs of today against each other
        where = {"tool": tool, "accepted": accepted, "condition": condition, "slowed": change == "slowed"}
        if sum(all(run[k] == v for k, v in where.items()) for run in runs) > suite:
            continue
        if time.monotonic() > until:
            print(f"--minutes {chosen.minutes} are over; the same command goes on", file=sys.stderr)
            return
        factors = slowed_names(names, suite) if change == "slowed" else {}
        changed = code(factors) + "\n# the change\n"
        if tool == "perfgate":
            steps = perfgate(folder, accepted, changed, factors)
        else:
            assert peers is not None
            judge = peers.asv if tool == "asv" else peers.pytest_benchmark
            steps = by_peer(peers, judge, names, changed, factors)
        runs.append({**where, "suite": suite, "version": version(), **timed_run(condition, steps)})
        with chosen.out.open("a") as file:
            file.write(json.dumps(runs[-1]) + "\n")
        counts = Counter(outcome for _, outcome, *_ in runs[-1]["cases"].values())
        print(where, f"{runs[-1]['seconds']:.0f} s", dict(counts), file=sys.stderr, flush=True)


HEADS = (
    "tool",
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
    """Return one row for each tool, cell and slowdown, with counts, and the clean suites that alarm."""
    rows = [cells for place in product(TOOLS, (*CONDITIONS, "-"), CONDITIONS) for cells in rows_of(runs, place)]
    lines = ["| " + " | ".join(cells) + " |" for cells in (HEADS, ["---"] * len(HEADS), *rows)]
    alarms = [alarmed(tool, ours) for tool in TOOLS if (ours := [run for run in runs if run["tool"] == tool])]
    versions = ", ".join(sorted({run["version"] for run in runs if run["tool"] == "perfgate"}))
    return "\n".join([*alarms, f"Versions of perfgate: {versions}.", "", *lines]) + "\n"


def rows_of(runs: list[dict[str, Any]], place: tuple[str, str, str]) -> Iterator[tuple[str, ...]]:
    """Yield the outcomes of unchanged and of slowed cases in one cell of one tool."""
    here = [run for run in runs if (run["tool"], run["accepted"], run["condition"]) == place]
    for by in (1.0, *SLOWER):
        cases = [case for run in here for case in run["cases"].values() if case[0] == by]
        if not cases:
            continue
        outcomes = Counter(case[1] for case in cases)
        passed, regressed = outcomes.pop("passed", 0) + outcomes.pop("improved", 0), outcomes.pop("regressed", 0)
        loads, seconds = ([run[what] for run in here] for what in ("load", "seconds"))
        yield (
            *place, "unchanged" if by == 1 else f"+{100 * (by - 1):.0f} %", str(len(cases)),
            f"{passed} ({passed / len(cases):.0%})", f"{regressed} ({regressed / len(cases):.0%})",
            ", ".join(f"{count} {name}" for name, count in outcomes.items()) or "-",
            f"{sum(case[2] for case in cases) / len(cases):.1f}" if place[0] == "perfgate" else "-",
            f"{min(seconds):.0f} to {max(seconds):.0f}", f"{min(loads):.1f} to {max(loads):.1f}",
        )  # fmt: skip


def alarmed(tool: str, runs: list[dict[str, Any]]) -> str:
    """Return how many clean suites and unchanged cases a tool failed."""
    clean = [run for run in runs if not run["slowed"]]
    suites = sum(any(case[1] == "regressed" for case in run["cases"].values()) for run in clean)
    unchanged = [case for run in runs for case in run["cases"].values() if case[0] == 1.0]
    cases = sum(case[1] == "regressed" for case in unchanged)
    of_suites = f" (≤ {upper_bound(suites, len(clean)):.0%})" if clean else ""
    of_cases = f" (≤ {upper_bound(cases, max(1, len(unchanged))):.2%})"
    return (
        f"{tool}: {len(runs)} live suites of forty kernels; of {len(clean)} clean ones {suites} alarmed{of_suites}; "
        f"of {len(unchanged)} unchanged cases {cases}{of_cases}.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("live", "table"))
    parser.add_argument("--suites", type=int, default=5, help="how many of each kind the results file is to have")
    parser.add_argument("--cell", choices=CELLS, action="append", help="accepted and run; all four without it")
    parser.add_argument("--change", choices=CHANGES, action="append", help="both without it")
    parser.add_argument("--tools", choices=TOOLS, nargs="+", default=TOOLS)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no run after so many")
    parser.add_argument("--out", type=Path, default=HERE / "recordings" / "decided.jsonl")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "perfgate-decided")
    parser.add_argument("--write", type=Path)
    chosen = parser.parse_args()
    chosen.cell, chosen.change = chosen.cell or CELLS, chosen.change or list(CHANGES)
    if chosen.what == "live":
        live(chosen)
    text = live_table(lines_of(chosen.out))
    print(text)
    if chosen.write:
        from replay import write_table

        write_table(chosen.write, "decided", text)


if __name__ == "__main__":
    main()
