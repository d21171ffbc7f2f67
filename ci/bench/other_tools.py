"""pytest-benchmark, asv and perfgate on the same changes: nothing, one kernel of three 10 % slower, a test gone.

    python ci/bench/other_tools.py --trials 10 --loops 2 --out FOLDER

Needs pytest-benchmark, asv and virtualenv beside perfgate. Every tool gets base and head as two commits of one
project and the threshold 5 %; a trial counts as failed where the tool's command exits with another code than 0.
``--loops`` busy processes work and pause for 50 to 400 ms meanwhile. What the commands print is kept in the folder.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

BIN = Path(sys.executable).parent
PACKAGE = """
def poly(n=SIZE):
    return sum(i * i % 7 for i in range(n))

def tokens(n=400):
    return len(("a bc def " * n).split())

def ranks(n=1500):
    return sorted((i * 7919) % 1000 for i in range(n))[0]
"""
KERNELS = ("poly", "tokens", "ranks")
BASE, SLOWER = 3000, 3300
SETUP = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "mykern"
version = "1"
[tool.setuptools]
py-modules = ["mykern"]
[tool.perfgate]
devices = ["*"]
"""
ASV = {
    "version": 1, "project": "mykern", "project_url": "https://example.invalid", "repo": ".", "branches": ["main"],
    "environment_type": "virtualenv", "benchmark_dir": "asv_bench", "env_dir": ".asv/env",
    "results_dir": ".asv/results",
}  # fmt: skip


def tests(names: tuple[str, ...], mark: str, fixture: str) -> str:
    each = [f"{mark}def test_{name}({fixture}):\n    {fixture}(mykern.{name})\n" for name in names]
    return "import pytest\nimport mykern\n\n" + "\n".join(each)


def asv_suite(names: tuple[str, ...]) -> str:
    return "import mykern\n\n" + "\n".join(f"def time_{name}():\n    mykern.{name}()\n" for name in names)


class Project:
    """A repository with a base on main, its baselines with it, and one commit a change."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.rmtree(root, ignore_errors=True)
        (root / "asv_bench").mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        (root / "pyproject.toml").write_text(SETUP)
        (root / "asv.conf.json").write_text(json.dumps(ASV))
        (root / ".gitignore").write_text(".asv/\n.benchmarks/\n.perfgate/\n__pycache__/\nbuild/\n*.egg-info/\n")
        (root / "asv_bench" / "__init__.py").write_text("")
        self.write(BASE, KERNELS)
        self.commit("base")
        self.run(str(BIN / "asv"), "machine", "--yes")
        self.run(str(BIN / "pytest"), "-q", "-p", "no:benchmark", "test_gate.py", "--perfgate=full")
        self.run(str(BIN / "perfgate"), "accept", "--new", "--in-ci", "--reason", "first")
        self.commit("baselines")
        for name, size, kernels in (
            ("same", BASE, KERNELS),
            ("slower", SLOWER, KERNELS),
            ("dropped", BASE, KERNELS[1:]),
        ):
            self.git("checkout", "-q", "-b", name, "main")
            self.write(size, kernels)
            (root / "note.txt").write_text(name)
            self.commit(name)

    def write(self, size: int, kernels: tuple[str, ...]) -> None:
        (self.root / "mykern.py").write_text(PACKAGE.replace("SIZE", str(size)))
        (self.root / "asv_bench" / "benchmarks.py").write_text(asv_suite(kernels))
        (self.root / "test_benchmark.py").write_text(tests(kernels, "", "benchmark"))
        mark = '@pytest.mark.perfgate("slowdown <= 5%")\n'
        (self.root / "test_gate.py").write_text(tests(kernels, mark, "perfgate"))

    def commit(self, subject: str) -> None:
        self.git("add", "-A")
        self.git("-c", "user.name=A", "-c", "user.email=a@example.invalid", "commit", "-qm", subject)

    def git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self.root, check=True)

    def run(self, *words: str) -> tuple[int, str]:
        outer = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PERFGATE_"))}
        env = {**outer, "CI": "true", "PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONPATH": str(self.root)}
        done = subprocess.run([*words], cwd=self.root, env=env, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


def pytest_benchmark(project: Project, head: str) -> tuple[int, str]:
    """Run base and head right after each other, as one job does; the fixture is pytest-benchmark's own."""
    shutil.rmtree(project.root / ".benchmarks", ignore_errors=True)
    command = [str(BIN / "pytest"), "-q", "-p", "no:perfgate", "test_benchmark.py"]
    project.git("checkout", "-q", "main")
    project.run(*command, "--benchmark-save=base")
    project.git("checkout", "-q", head)
    return project.run(*command, "--benchmark-compare=0001", "--benchmark-compare-fail=median:5%")


def asv(project: Project, head: str) -> tuple[int, str]:
    project.git("checkout", "-q", head)
    return project.run(str(BIN / "asv"), "continuous", "--factor", "1.05", "main", head)


def perfgate(project: Project, head: str) -> tuple[int, str]:
    project.git("checkout", "-q", head)
    return project.run(str(BIN / "pytest"), "-q", "-p", "no:benchmark", "test_gate.py", "--perfgate-against=main")


TOOLS: dict[str, Callable[[Project, str], tuple[int, str]]] = {
    "pytest-benchmark": pytest_benchmark, "asv": asv, "perfgate": perfgate,
}  # fmt: skip


def busy(seed: int) -> None:
    """Work and pause for 50 to 400 ms, again and again."""
    chance = random.Random(seed)
    while True:
        end = time.perf_counter() + chance.uniform(0.05, 0.4)
        while time.perf_counter() < end:
            pass
        time.sleep(chance.uniform(0.05, 0.4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--loops", type=int, default=2)
    parser.add_argument("--tools", nargs="*", default=list(TOOLS))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    project = Project(options.out / "project")
    for tool in options.tools:
        TOOLS[tool](project, "same")  # environments and arms are built once
    loops = [multiprocessing.Process(target=busy, args=(at,), daemon=True) for at in range(options.loops)]
    for loop in loops:
        loop.start()
    failed: dict[tuple[str, str], list[int]] = {}
    for trial in range(options.trials):
        for change in ("same", "slower", *(("dropped",) if trial == 0 else ())):
            for tool in options.tools:
                begun = time.perf_counter()
                code, text = TOOLS[tool](project, change)
                failed.setdefault((tool, change), []).append(code)
                (options.out / f"{tool}-{change}-{trial}.txt").write_text(text)
                print(f"{trial} {change:8} {tool:17} exit {code}  {time.perf_counter() - begun:.0f} s", flush=True)
    for loop in loops:
        loop.terminate()
    for (tool, change), codes in sorted(failed.items()):
        print(f"{tool:17} {change:8} failed {sum(code != 0 for code in codes)} of {len(codes)}  {sorted(set(codes))}")


if __name__ == "__main__":
    main()
