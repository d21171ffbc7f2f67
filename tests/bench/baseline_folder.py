"""A folder of accepted baselines, for benches that read one."""

from __future__ import annotations

from pathlib import Path

from pytest_perfgate.adapters.stores.baselines import Baselines
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.plan import CaseKey

DEVICE = "host-bench"


def one_device(root: Path, *, cases: int, files: int = 10) -> Baselines:
    """A store with so many accepted cases, spread over files."""
    store = Baselines(root, devices=[DEVICE])
    store.write([_baseline(number, files) for number in range(cases)])
    return store


def _baseline(number: int, files: int) -> Baseline:
    key = CaseKey(nodeid=f"tests/test_{number % files}.py::test_kernel[{number}-bf16]")
    return Baseline(
        key=key,
        device=DEVICE,
        time=1000.0 + number,
        scatter=0.004,
        runs=3,
        commit="a1b2c3d",
        who="someone",
        when="2026-05-02",
        why="first value",
    )
