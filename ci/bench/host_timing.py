"""Empty host benchmarks: a suite's time, one timed call beside pytest-benchmark's, the size of the record."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

SUITE = """
import pytest

@pytest.mark.perfgate("time <= 1s")
@pytest.mark.parametrize("n", range({count}))
def test_empty(perfgate, n):
    perfgate(empty)

def empty():
    pass
"""


def suite(folder: Path, count: int) -> None:
    """Run so many empty benchmarks in full, everything included."""
    (folder / "test_empty.py").write_text(SUITE.format(count=count), encoding="utf-8")
    env = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:benchmark", "--perfgate=full"]
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    took = time.perf_counter() - begun
    assert done.returncode == 0, done.stdout + done.stderr
    records = folder / ".perfgate" / "records"
    record = records / (records / "last").read_text(encoding="utf-8").strip()
    size, samples = record.stat().st_size, record.with_suffix(".samples").stat().st_size
    print(f"{count} empty benchmarks, 3 rounds, full mode, pytest included: {took:.1f} s (budget 60 s for 200)")
    print(f"record: {size / count:.0f} B a case (budget 2048), samples: {samples / count:.0f} B a case")
    json.loads(record.read_text(encoding="utf-8"))


def empty() -> None:
    pass


def ours(calls: int) -> float:
    """Return the nanoseconds of a call that is a sample of its own, the worst case for us."""
    from pytest_perfgate.adapters.timers.host import _singles

    into: list[float] = []
    begun = time.perf_counter_ns()
    _singles(empty, None, time.perf_counter_ns)(calls, into)
    return (time.perf_counter_ns() - begun) / calls


def theirs(calls: int) -> float:
    """Return the nanoseconds of a call in pytest-benchmark's own loop, one call a round, as ``pedantic`` runs it."""
    from pytest_benchmark.fixture import BenchmarkFixture

    fixture = _fixture(BenchmarkFixture)
    begun = time.perf_counter_ns()
    fixture.pedantic(empty, rounds=calls, iterations=1)
    return (time.perf_counter_ns() - begun) / calls


def _fixture(kind: type) -> Any:
    """A fixture as its plugin makes it, without a session around it; statistics keep each duration."""
    node = SimpleNamespace(name="test_empty", nodeid="test_empty")
    settings = dict.fromkeys(inspect.signature(kind).parameters)
    settings |= {
        "node": node,
        "disable_gc": True,
        "timer": SimpleNamespace(target=time.perf_counter),
        "min_rounds": 5,
        "min_time": 5e-6,
        "max_time": 1.0,
        "add_stats": lambda *_: None,
    }
    return kind(**settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--calls", type=int, default=20000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        suite(Path(name), options.count)
    pairs = [(ours(options.calls), theirs(options.calls)) for _ in range(7)]
    us, them = (statistics.median(column) for column in zip(*pairs))
    print(f"one timed call: perfgate {us:.0f} ns, pytest-benchmark {them:.0f} ns, ratio {us / them:.2f} (budget 0.5)")


if __name__ == "__main__":
    main()
