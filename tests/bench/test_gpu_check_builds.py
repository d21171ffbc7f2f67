"""The parts of the GPU check that run whole gates, on torch's processor: the projects that they write, and their rows."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ci.gpu import builds
from pytest_perfgate.model.plan import Plan
from tests.late import late

torch = late("torch", reason="torch is not installed")
pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return SimpleNamespace(plan=Plan(), ends=time.monotonic() + 300)


def test_two_builds_of_tiny_kernels_have_a_verdict_each(check: SimpleNamespace, tmp_path: Path) -> None:
    rows = list(builds.builds(check, tmp_path))
    (row,) = rows
    assert row["bar"] == "builds"
    assert row[f"doubled-{builds.FIRST}"] in {"regressed", "undecided"}
    assert row[f"clamped-{builds.FIRST}"] in {"passed", "undecided"}


def test_runs_of_unchanged_kernels_are_counted(check: SimpleNamespace, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(builds, "RUNS", 1)
    fewer = builds.FILES["tinykernels/__init__.py"].replace("range(5)", "range(1)")
    monkeypatch.setattr(builds, "FILES", {**builds.FILES, "tinykernels/__init__.py": fewer})
    *runs, total = builds.repeat(check, tmp_path)
    assert [row["what"] for row in runs] == ["run 1"]
    assert total["verdicts"] == 2
    assert not total["held"]
