"""How unlike two builds of unchanged code read where threads share a call: kept to one core, and by the plugin's rule.

    python ci/bench/threads.py --minutes 2

``perfgate calibrate`` measures NumPy products, a sum of a single thread, and kernels of PyTorch where it is installed.
Prints a row for each of them under each rule: the time of a call, the shift that unchanged code showed (99 in 100 are
smaller), and how many rounds a limit of that size takes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from pytest_perfgate.model.verdict import PairedRound
from pytest_perfgate.wiring import read_values

RULES = {"every call on one core": "inf", "calls of one thread only": ""}
"""Each with the least processor share of other threads that frees a call; empty for the plugin's own."""
FILES = {
    "pyproject.toml": '[tool.perfgate]\ndevices = ["*"]\n',
    "conftest.py": """\
import os

from pytest_perfgate.model import measurement

measurement.HELPING = float(os.environ.get("LEAST_HELPING") or measurement.HELPING)
""",
    "test_threads.py": """\
import numpy as np
import pytest

try:
    import torch  # before the process keeps to one core: its pool has a thread for each core that it sees
except ImportError:
    torch = None

gated = pytest.mark.perfgate("slowdown <= 3%")


@gated
@pytest.mark.parametrize("size", [128, 512])
def test_numpy_product(perfgate, size):
    a, out = np.random.default_rng(1).random((size, size)), np.empty((size, size))
    perfgate(np.dot, a, a, out)


@gated
def test_numpy_sum(perfgate):
    perfgate(np.sum, np.ones(200_000))


@gated
@pytest.mark.skipif(torch is None, reason="torch is not installed")
@pytest.mark.parametrize("kernel", ["mul", "softmax"])
def test_torch(perfgate, kernel):
    x = torch.ones(1 << 20)
    perfgate((lambda: torch.mul(x, 2.0)) if kernel == "mul" else (lambda: torch.softmax(x.view(1024, -1), 1)))
""",
}


def calibrated(project: Path, minutes: float, least: str) -> dict[str, Any]:
    """Return what a calibration of the project found, with the median time of each test."""
    words = ["calibrate", "--json", "--fresh", "--scaled-only", f"--minutes={minutes}", "--pytest=-p no:cacheprovider"]
    code = "import sys; from pytest_perfgate.cli import main; sys.exit(main())"
    env = {**os.environ, "LEAST_HELPING": least}
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=project, env=env, stdout=subprocess.PIPE, check=True
    )
    tests = {row["test"]: row for row in json.loads(done.stdout)["tests"]}
    times: dict[str, list[float]] = {}
    for one in read_values(project / ".perfgate" / "calibration.bin", PairedRound):
        for capture in one.head:
            times.setdefault(one.nodeid, []).append(median(capture.samples[0].durations))
    return {name: {**row, "time": median(times[name])} for name, row in tests.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=2.0, help="minutes to measure by each rule")
    options = parser.parse_args()
    print(f"{'test':42}{'kept to one core':26}{'time of a call':>16}{'own shift':>12}{'rounds to decide':>18}")
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        for name, text in FILES.items():
            (project / name).write_text(text, encoding="utf-8")
        for rule, least in RULES.items():
            for test, row in calibrated(project, options.minutes, least).items():
                time, shift = f"{row['time'] / 1e3:,.1f} us", f"{row['own_shift']:.1%}"
                print(f"{test:42}{rule:26}{time:>16}{shift:>12}{row['rounds']:>18}", flush=True)


if __name__ == "__main__":
    main()
