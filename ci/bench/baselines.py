"""Reading a folder of 1,000 accepted cases: line by line as we write them, and the same file as YAML throughout."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from pytest_perfgate.adapters.stores import baseline_text
from pytest_perfgate.adapters.stores.baselines import Baselines
from pytest_perfgate.model.measurement import Baseline, Identity
from pytest_perfgate.model.plan import CaseKey

CASES, FILES, ROUNDS = 1000, 25, 15


def folder(root: Path) -> Baselines:
    store = Baselines(root, devices=("*",))
    identity = Identity(device="NVIDIA-H200", clocks="lock", affinity="all", threads="OMP_NUM_THREADS=4")
    store.write([
        Baseline(
            key=CaseKey(nodeid=f"tests/test_{n % FILES}.py::test_gemm[{n}-bf16]"), device="NVIDIA-H200",
            time=1e5 + n * 321.7, scatter=0.0041, runs=7, commit="0123456789ab", who="A. Founder",
            when="2026-05-02", why="TMA loads", identity=identity,
        )
        for n in range(CASES)
    ])  # fmt: skip
    return store


def seconds(call: object) -> float:
    spent = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        lines = call()
        spent.append(time.perf_counter() - began)
        assert len(lines) == CASES
    return statistics.median(spent)


def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        store = folder(Path(root))
        quick = seconds(lambda: store.read_all("NVIDIA-H200"))
        own = baseline_text.own_entries
        baseline_text.own_entries = lambda *_: None
        whole = seconds(lambda: store.read_all("NVIDIA-H200"))
        baseline_text.own_entries = own
    print(f"{CASES} cases in {FILES} files, median of {ROUNDS}")
    print(f"  as written   {quick * 1e3:7.1f} ms   {0.05 / quick:5.1f} times faster than the 50 ms it may take")
    print(f"  as YAML      {whole * 1e3:7.1f} ms   {whole / quick:5.1f} times as written")


main()
