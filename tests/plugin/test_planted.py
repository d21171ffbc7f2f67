"""The suite of examples/planted_regressions: clean once, then with every regression that can be planted."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.plugin.projects import Project, Run

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "planted_regressions"
SLOW = pytest.mark.skipif(not os.environ.get("PERFGATE_SLOW"), reason="it takes a minute: PERFGATE_SLOW=1")


def measured(project: Project, planted: str, *options: str) -> Run:
    return project.run("--perfgate=full", *options, PLANTED=planted, PYTHONPATH=str(project.root))


@pytest.fixture
def example(project: Project) -> Project:
    for file in EXAMPLE.iterdir():
        if file.is_file():
            shutil.copy(file, project.root)
    return project


@pytest.mark.parametrize(
    "chosen", [("memory", "bytes"), ("registers", "memory"), ("bytes", "registers"), ("compile", "bytes")], ids="-".join
)
def test_a_planted_regression_is_confirmed_and_no_other(example: Project, chosen: tuple[str, str]) -> None:
    for planted in ("", chosen[0]):
        run = measured(example, f"{planted} tail", "-k", " or ".join(chosen))
        outcomes = {name: run.outcome(f"test_{name}") for name in chosen}
        assert outcomes == {name: "failed" if name == planted else "passed" for name in chosen}, run.text
    assert "REGRESSED" in run.says(f"test_{planted}")


@pytest.mark.slow
@SLOW
def test_a_tail_of_one_call_in_twenty_is_confirmed(example: Project) -> None:
    assert measured(example, "", "-k", "tail").outcome("test_tail") == "passed"
    run = measured(example, "tail", "-k", "tail")
    assert "REGRESSED" in run.says("test_tail")
