"""The parts of the GPU check that run whole gates, on the host: the projects that they write, and their rows."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ci.gpu import builds, processes
from pytest_perfgate.model.plan import Plan

pytestmark = pytest.mark.slow

NUMPY = """
import numpy as np

class torch:
    mul, clamp = np.multiply, np.clip
    class cuda:
        is_available = staticmethod(lambda: False)
    @staticmethod
    def ones(*shape, device):
        return np.ones(shape, np.float32)
"""
"""As much of torch as the kernels use: it is imported in a tenth of the time, and its kernels take one core."""


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    module = builds.FILES["tinykernels/__init__.py"].replace("import torch", NUMPY.replace("\n", f"\n{8 * ' '}"))
    few = module.replace("range(5)", "range(1)").replace("1 << 20", "1 << 16")
    monkeypatch.setattr(builds, "FILES", {**builds.FILES, "tinykernels/__init__.py": few})
    monkeypatch.setattr(builds, "FIRST", str(1 << 16))
    return SimpleNamespace(plan=Plan(), ends=time.monotonic() + 300)


def test_two_builds_of_tiny_kernels_have_a_verdict_each(check: SimpleNamespace, tmp_path: Path) -> None:
    (row,) = builds.builds(check, tmp_path)
    assert row["bar"] == "builds"
    assert row["doubled-65536"] in {"regressed", "undecided"}, (tmp_path / "builds.txt").read_text()
    assert row["clamped-65536"] in {"passed", "undecided"}


def test_runs_of_unchanged_kernels_are_counted(
    check: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = builds.FILES["pyproject.toml"].rstrip() + '\n        rounds = 2\n        confirmation = "interval"\n'
    monkeypatch.setattr(builds, "FILES", {**builds.FILES, "pyproject.toml": quick})
    monkeypatch.setattr(builds, "RUNS", 1)
    *runs, total = builds.repeat(check, tmp_path)
    assert [row["what"] for row in runs] == ["run 1"]
    assert total["verdicts"] == 2
    assert not total["held"]


@pytest.mark.parametrize(("took", "held"), [(61.0, False), (40.0, None)])
def test_work_that_was_ended_misses_a_bar_only_with_the_time_of_the_bar(took: float, held: bool | None) -> None:
    row = processes.late({"what": "two builds", "refused": "no time", "s": took}, "builds", builds.MOST_S)
    assert row.get("held") is held
    assert ("bar" in row) == (held is False)
