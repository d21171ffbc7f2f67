"""How often the prediction interval confirms, without a second arm: unchanged and slowed code, alone and beside hogs.

Real runs of the real command with 30 ms of sampling in each of three processes, against times that a quiet machine
would read. Prints, by condition and by how much the code was slowed, how many verdicts are REGRESSED, and how many
would be if what a call queued and what its neighbours used did not count.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from pytest_perfgate.adapters.stores.records import read_record
from pytest_perfgate.cli.output import plain

CONFIGURATION = """[tool.pytest.ini_options]
pythonpath = ["."]
[tool.perfgate]
budget = 0.03
warmup = 0.02
devices = ["*"]
confirmation = "interval"
"""
KERNELS = """import os, zlib
import numpy as np
TIMES = int(os.environ.get("TIMES", 1))
DATA, FLAT, SQUARE = bytes(2**20), np.zeros(4_000_000), np.ones((300, 300))
def squares(n):
    return sum(i * i for i in range(n))
def strings(n):
    return sorted({str(i): i for i in range(n)})
CALLS = {
    "squares-short": lambda: squares(300), "squares": lambda: squares(30_000), "squares-long": lambda: squares(100_000),
    "strings-short": lambda: strings(300), "strings": lambda: strings(10_000), "checksum": lambda: zlib.crc32(DATA * 4),
    "copy": FLAT.copy, "product": lambda: SQUARE @ SQUARE,
}
def repeated(call):
    def run():
        for _ in range(TIMES):
            call()
    return run
"""
TESTS = """import pytest
from kernels import CALLS, repeated
@pytest.mark.perfgate("slowdown <= 10%")
@pytest.mark.parametrize("name", CALLS)
def test_call(perfgate, name):
    perfgate(repeated(CALLS[name]))
"""
QUIET = """import json, time
from kernels import CALLS
def quarter(call):
    call()
    times, end = [], time.time() + 0.7
    while time.time() < end:
        begun = time.thread_time_ns()
        call()
        times.append(time.thread_time_ns() - begun)
    return sorted(times)[len(times) // 4]
print(json.dumps({name: quarter(call) for name, call in CALLS.items()}))
"""
EXCUSED = re.compile(r"chance explains up to [^;]*; ")


def run_python(folder: Path, *command: str, times: int = 1) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "CI"))}
    environment |= {"TIMES": str(times), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, check=False, capture_output=True, text=True
    ).stdout


def one_run(folder: Path, times: int = 1) -> list[dict[str, object]]:
    """The verdicts of one run."""
    run_python(folder, "-m", "pytest", "-q", "--perfgate=full", times=times)
    record = max((folder / ".perfgate" / "records").glob("*.json"))
    (folder / ".perfgate" / "history.db").unlink(missing_ok=True)
    return [verdict for case in plain(read_record(record))["cases"] for verdict in case["verdicts"]]


def make_project(folder: Path) -> None:
    """A project whose accepted times are those of a machine at rest: processor times, the lower quartile."""
    for name, text in (("pyproject.toml", CONFIGURATION), ("kernels.py", KERNELS), ("test_it.py", TESTS)):
        (folder / name).write_text(text)
    one_run(folder)
    run_python(
        folder,
        "-c",
        "import sys; from pytest_perfgate.cli import main; sys.exit(main())",
        "accept",
        "--new",
        "--reason",
        "first",
    )
    quiet = json.loads(run_python(folder, "-c", QUIET))
    (lines,) = (folder / "baselines").glob("*/test_it.py.yaml")
    text = lines.read_text()
    for name, took in quiet.items():
        pattern = rf"(test_call\[{re.escape(name)}\]': {{time: )[^,]*, (detects: [^,]*, )?"
        text, count = re.subn(pattern, rf"\g<1>{took}ns, ", text)
        assert count == 1, name
    lines.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--hogs", type=int, default=3)
    parser.add_argument("--times", type=int, nargs="+", default=(1, 2, 5), help="how many times slower")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_project(folder)
        print("| beside | code | verdicts | REGRESSED | by time alone | load |\n| --- | --- | --- | --- | --- | --- |")
        for hogs in (0, options.hogs):
            for times in options.times:
                running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(hogs)]
                try:
                    verdicts = [v for _ in range(options.runs) for v in one_run(folder, times)]
                finally:
                    for one in running:
                        one.kill()
                        one.wait()
                count = Counter(v["outcome"] for v in verdicts)
                alone = count["regressed"] + sum(1 for v in verdicts if EXCUSED.search(str(v["sentence"])))
                load = os.getloadavg()[0]
                what = "unchanged" if times == 1 else f"{times} x slower"
                counts = f"{len(verdicts)} | {count['regressed']} | {alone}"
                print(f"| {hogs or 'no'} busy loops | {what} | {counts} | {load:.1f} |", flush=True)


if __name__ == "__main__":
    main()
