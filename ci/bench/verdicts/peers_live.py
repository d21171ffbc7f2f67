"""pytest-benchmark and asv on the change that perfgate judges: two commits of one repository.

``pytest --benchmark-save`` on the base, then ``--benchmark-compare-fail=mean:5%`` on the change; ``asv continuous
--factor 1.05`` from the base to the change. Both run in an environment of their own, which pip fills from the index.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from forty import BUILD, CKERN

PINS = ("asv==0.6.6", "pytest-benchmark==5.3.1", "virtualenv", "setuptools", "numpy", "pytest")
BENCHES = """
import pytest
from kern import UNITS, factor, kernels

KERNELS = kernels()


@pytest.mark.parametrize("name", KERNELS)
def test_kernel(benchmark, name):
    benchmark(KERNELS[name], round(UNITS * factor(name)))
"""
SUITE = """
from kern import UNITS, factor, kernels

KERNELS = kernels()


class Kernels:
    params = list(KERNELS)

    def setup(self, name):
        self.units = round(UNITS * factor(name))

    def time_kernel(self, name):
        KERNELS[name](self.units)
"""
SETUP = """
from setuptools import Extension, setup

setup(name="kern", version="1", py_modules=["kern"], ext_modules=[Extension("ckern", ["ckern.c"])])
"""
ASV = {
    "version": 1, "project": "kern", "project_url": "https://example.invalid", "repo": ".", "branches": ["main"],
    "environment_type": "virtualenv", "benchmark_dir": "asv_bench", "env_dir": ".asv/env",
    "results_dir": ".asv/results", "matrix": {"req": {"numpy": [], "setuptools": [], "wheel": []}},
}  # fmt: skip
_REGRESSED = re.compile(r"test_kernel\[([^\]]+)\] \(.*Field 'mean' has failed PercentageRegressionCheck")
_SLOWER = re.compile(r"^\|\s*\+\s*\|.*time_kernel\('([^']+)'\)", re.MULTILINE)


class Peers:
    """One repository whose main is the base; a change is committed to it as often as one is judged."""

    def __init__(self, folder: Path, base: str, git: Callable[..., None]) -> None:
        self.python, self._root, self._git = folder / "peers-env" / "bin" / "python", folder / "peers", git
        self._home = folder / "peers-home"
        self._environment(folder / "peers-env")
        if not self._root.exists():
            self._begun(base)

    def _environment(self, place: Path) -> None:
        if not self.python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
            subprocess.run([str(self.python), "-m", "pip", "install", "-q", *PINS], check=True)

    def _begun(self, base: str) -> None:
        scratch = self._root.with_suffix(".part")
        shutil.rmtree(scratch, ignore_errors=True)
        (scratch / "asv_bench").mkdir(parents=True)
        texts = {"kern.py": base, "ckern.c": CKERN, "build.py": BUILD, "setup.py": SETUP, "test_benches.py": BENCHES,
                 "asv_bench/__init__.py": "", "asv_bench/benches.py": SUITE, "asv.conf.json": json.dumps(ASV),
                 ".gitignore": ".asv/\n.benchmarks/\n__pycache__/\n*.so\nbuild/\n*.egg-info/\n"}  # fmt: skip
        for name, text in texts.items():
            (scratch / name).write_text(text, encoding="utf-8")
        self._git(scratch, "init", "-q", "-b", "main")
        self._git(scratch, "add", "-A")
        self._git(scratch, "commit", "-q", "-m", "base")
        scratch.replace(self._root)
        self._home.mkdir(exist_ok=True)
        self._ran("build.py", check=True)
        self._ran("-m", "asv", "machine", "--yes", check=True)

    def changed(self, code: str) -> None:
        """The change as a commit of its own beside the base."""
        self._git(self._root, "checkout", "-q", "-B", "change", "main")
        (self._root / "kern.py").write_text(code, encoding="utf-8")
        self._git(self._root, "commit", "-q", "-a", "-m", "change")

    def pytest_benchmark(self) -> list[str]:
        """The kernels that its comparison fails."""
        shutil.rmtree(self._root / ".benchmarks", ignore_errors=True)
        words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_benches.py")
        self._git(self._root, "checkout", "-q", "main")
        self._ran(*words, "--benchmark-save=base", check=True)
        self._git(self._root, "checkout", "-q", "change")
        done = self._ran(*words, "--benchmark-compare=0001", "--benchmark-compare-fail=mean:5%")
        return _named(_REGRESSED, done, "pytest-benchmark")

    def asv(self) -> list[str]:
        """The kernels that it calls slower."""
        done = self._ran("-m", "asv", "continuous", "--factor", "1.05", "main", "change")
        return _named(_SLOWER, done, "asv")

    def _ran(self, *words: str, check: bool = False) -> subprocess.CompletedProcess[str]:
        steering = ("PYTEST_", "PERFGATE_", "GITHUB_", "PYTHONPATH")
        env = {k: v for k, v in os.environ.items() if not k.startswith(steering) and k != "CI"}
        env |= {"HOME": str(self._home), "PATH": f"{self.python.parent}:{env['PATH']}"}
        command = [str(self.python), *words]
        done = subprocess.run(command, cwd=self._root, env=env, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise SystemExit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done


def _named(pattern: re.Pattern[str], done: subprocess.CompletedProcess[str], tool: str) -> list[str]:
    """Every kernel that the tool fails; where it ends otherwise than it says, nothing is known."""
    names = pattern.findall(done.stdout + done.stderr)
    if bool(names) != bool(done.returncode):
        raise SystemExit(f"{tool} ended with {done.returncode} and named {names}:\n{done.stdout}{done.stderr}")
    return sorted(set(names))
