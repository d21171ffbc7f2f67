"""A suite of 30 pytest-benchmark tests, unedited, under ``--perfgate-against``: how long it takes and what it says.

The working copy really does 20 % more work in three of the thirty. pytest-benchmark itself runs the same suite once for
the ratio.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
TESTS = """
import pytest
from kern import UNITS, factor, kernels

KERNELS = kernels()


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("name", KERNELS)
def test_kernel(benchmark, name, size):
    benchmark(KERNELS[name], round(UNITS * size * factor(name, size)))
"""
SLOWED = (("json", 2), ("matrix", 4), ("sorting", 1))
SETTINGS = """
[tool.pytest.ini_options]
pythonpath = ["."]
[tool.perfgate]
arms = "worktree"
"""
FACTOR = "\n\ndef factor(name, size):\n    return 1.2 if (name, size) in {slowed} else 1.0\n"


def git(root: Path, *words: str) -> None:
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.invalid", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


def environment() -> dict[str, str]:
    """Return the variables without those of an outer pytest or CI."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PERFGATE_")) and k != "CI"}


def project(root: Path) -> None:
    kernels = (HERE / "kernels.py").read_text(encoding="utf-8")
    (root / "tests").mkdir()
    (root / "pyproject.toml").write_text(SETTINGS)
    (root / ".gitignore").write_text(".perfgate/\n.benchmarks/\n__pycache__/\n")
    (root / "tests" / "test_kernels.py").write_text(TESTS)
    (root / "kern.py").write_text(kernels + FACTOR.format(slowed=()))
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "base")
    (root / "kern.py").write_text(kernels + FACTOR.format(slowed=SLOWED))


def timed(root: Path, *words: str) -> tuple[float, str]:
    began = time.monotonic()
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, "tests"]
    done = subprocess.run(line, cwd=root, env=environment(), capture_output=True, text=True, check=False)
    return time.monotonic() - began, done.stdout + done.stderr


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="unedited-") as name:
        root = Path(name)
        project(root)
        ours, output = timed(root, "-p", "no:benchmark", "-p", "pytest_perfgate.compat", "--perfgate-against", "HEAD")
        theirs, _ = timed(root, "-p", "no:perfgate")
    print(output)
    regressed = sorted({line.split()[1] for line in output.splitlines() if line.startswith("REGRESSED")})
    planted = sorted(f"test_kernel[{kernel}-{size}]" for kernel, size in SLOWED)
    print(f"30 benchmarks in two arms: {ours:.0f} s; pytest-benchmark, one side once: {theirs:.0f} s")
    print(f"slowed by 20 %: {', '.join(planted)}\nconvicted:       {', '.join(regressed)}")


if __name__ == "__main__":
    main()
