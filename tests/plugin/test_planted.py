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
    return project.run("--perfgate=full", *options, also=("numpy",), PLANTED=planted)


@pytest.fixture
def example(project: Project) -> Project:
    for file in EXAMPLE.iterdir():
        if file.is_file():
            shutil.copy(file, project.root)
    return project


FIGURES = ("memory", "registers", "compile", "bytes")
BRIEFLY = 'budget = "20 ms"\nwarmup = "5 ms"\n'
"""None of these figures is a time that samples make more certain."""
FIRST_CALLS = """
import kernels

from pytest_perfgate.plugin import measuring

plain, work = kernels.compiled, [0]


def compiled():
    rows = plain()
    work[0] = 80 * len(rows)
    return rows


def clock():
    return work[0]


kernels.compiled = compiled
measuring.HOST_CLOCK = measuring.HOST_CLOCK._replace(wall=clock, thread=clock)
"""
"""The first call takes what it makes: the processor of a shared machine takes twice as long for it at times."""


def test_planted_regressions_are_confirmed_and_no_others(example: Project) -> None:
    """Two at once: each test is held to its own figure, so the other two have to pass beside them."""
    with (example.root / "pyproject.toml").open("a", encoding="utf-8") as settings:
        settings.write(BRIEFLY)
    example.write("conftest.py", FIRST_CALLS)
    for planted in ((), FIGURES[:2], FIGURES[2:]):
        run = measured(example, " ".join((*planted, "tail")), "-k", "not tail")
        outcomes = {name: run.outcome(f"test_{name}") for name in FIGURES}
        assert outcomes == {name: "failed" if name in planted else "passed" for name in FIGURES}, run.text
        assert all("REGRESSED" in run.says(f"test_{name}") for name in planted)


@pytest.mark.slow
@SLOW
def test_a_tail_of_one_call_in_twenty_is_confirmed(example: Project) -> None:
    assert measured(example, "", "-k", "tail").outcome("test_tail") == "passed"
    run = measured(example, "tail", "-k", "tail")
    assert "REGRESSED" in run.says("test_tail")
