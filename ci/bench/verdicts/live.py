"""Live suites of 40: ``pytest --perfgate-against`` on a project of its own, again and again, and what it said.

    python ci/bench/verdicts/live.py --suites 20 --out live.json

Base and head differ by a comment, so that nothing can tell that they do the same. Every suite is a run of the real
command in a project of its own. After the clean ones, ``--slowed N`` suites in which four tests of 40 really do 5 %
more work and four 10 %. Outcomes are appended as they come: interrupted, the next call goes on.
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
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

from ci.rates import upper_bound  # noqa: E402
from pytest_perfgate.adapters.stores.records import read_record  # noqa: E402
from pytest_perfgate.core.stats.inference import clopper_pearson  # noqa: E402

TESTS = """
import pytest
from kern import UNITS, kernels, planted

KERNELS = kernels()


@pytest.mark.perfgate("slowdown <= 3%")
@pytest.mark.parametrize("copy", range(4))
@pytest.mark.parametrize("name", KERNELS)
def test_kernel(perfgate, name, copy):
    perfgate(KERNELS[name], round(UNITS * planted(name, copy)))
"""
PLANTED = """

def planted(name, copy):
    order = ("arithmetic", "dictionary", "json", "matrix", "attributes", "sorting", "regex", "hashing")
    return {factors}.get(order.index(name) // 4 if name in order and copy == 1 else None, 1.0)
"""
SLOWER = {
    "+5 %": ("arithmetic", "dictionary", "json", "matrix"),
    "+10 %": ("attributes", "sorting", "regex", "hashing"),
}
"""What PLANTED makes slower: the second copy of these."""
SETTINGS = """
[tool.pytest.ini_options]
pythonpath = ["."]
[tool.perfgate]
arms = "worktree"
"""


def git(root: Path, *words: str) -> None:
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


def project(root: Path, slowed: bool) -> None:
    """Create a project with a committed base and the head in the working copy."""
    kernels = (HERE / "kernels.py").read_text(encoding="utf-8")
    (root / "tests").mkdir()
    (root / "pyproject.toml").write_text(SETTINGS)
    (root / ".gitignore").write_text(".perfgate/\n__pycache__/\n")
    (root / "tests" / "test_kernels.py").write_text(TESTS)
    (root / "kern.py").write_text(kernels + PLANTED.format(factors={}))
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "base")
    factors = {0: 1.05, 1: 1.10} if slowed else {}
    (root / "kern.py").write_text(kernels + PLANTED.format(factors=factors) + "\n# the head\n")


def environment() -> dict[str, str]:
    """Return the variables without those of an outer pytest or CI."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PERFGATE_")) and k != "CI"}


def one_suite(slowed: bool) -> dict[str, Any]:
    """Return the result of one run of the real command."""
    folder = Path(tempfile.mkdtemp(prefix="live-suite-"))
    try:
        project(folder, slowed)
        words = ["--perfgate-against", "HEAD", "--perfgate-json", "out.json", "-q", "-p", "no:cacheprovider", "tests"]
        began, load = time.monotonic(), os.getloadavg()[0]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if not (folder / "out.json").exists():
            raise SystemExit(f"the suite left no record:\n{done.stdout}{done.stderr}")
        cases = read_record(folder / "out.json").cases
        outcomes = {str(case.key): [verdict.outcome.value for verdict in case.verdicts] for case in cases}
        return {"slowed": slowed, "seconds": time.monotonic() - began, "load": load, "outcomes": outcomes}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def summary(suites: list[dict[str, Any]]) -> str:
    """Return rates with their n and bound."""
    clean = [s for s in suites if not s["slowed"]]
    lines = []
    if clean:
        alarmed = sum(any("regressed" in o for o in s["outcomes"].values()) for s in clean)
        tests = sum(len(s["outcomes"]) for s in clean)
        alarms = sum("regressed" in o for s in clean for o in s["outcomes"].values())
        counts = Counter(o for s in clean for outcomes in s["outcomes"].values() for o in outcomes)
        lines.append(
            f"clean suites of {len(clean[0]['outcomes'])} that alarm: {alarmed}/{len(clean)} "
            f"(≤ {upper_bound(alarmed, len(clean)):.1%}); tests: {alarms}/{tests} (≤ {upper_bound(alarms, tests):.2%})"
        )
        frequencies = ", ".join(f"{name} {count}" for name, count in counts.most_common())
        lines.append(f"outcomes of clean tests: {frequencies}")
    slowed = [s for s in suites if s["slowed"]]
    planted = {f"[{name}-1]": size for size, names in SLOWER.items() for name in names}
    confirmed: dict[str, list[bool]] = {}
    for suite in slowed:
        for key, outcomes in suite["outcomes"].items():
            size = next((size for member, size in planted.items() if member in key), "nothing")
            confirmed.setdefault(size, []).append("regressed" in outcomes)
    for size, hits in sorted(confirmed.items()):
        low, high = clopper_pearson(sum(hits), len(hits)).low, upper_bound(sum(hits), len(hits))
        bound = f"≤ {high:.2%}" if size == "nothing" else f"≥ {low:.0%}"
        lines.append(f"planted {size}, confirmed: {sum(hits)}/{len(hits)} ({bound})")
    seconds, loads = [s["seconds"] for s in suites], [s["load"] for s in suites]
    lines.append(
        f"seconds a suite: {min(seconds):.0f} to {max(seconds):.0f}; "
        f"load before a suite: {min(loads):.1f} to {max(loads):.1f}"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", type=int, default=20)
    parser.add_argument("--slowed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    suites = [json.loads(line) for line in chosen.out.read_text().splitlines()] if chosen.out.exists() else []
    for slowed, wanted in ((False, chosen.suites), (True, chosen.slowed)):
        for _ in range(wanted - sum(s["slowed"] == slowed for s in suites)):
            suites.append(one_suite(slowed))
            with chosen.out.open("a") as file:
                file.write(json.dumps(suites[-1]) + "\n")
            print(f"suite {len(suites)}: {suites[-1]['seconds']:.0f} s", file=sys.stderr)
    print(summary(suites))


if __name__ == "__main__":
    main()
