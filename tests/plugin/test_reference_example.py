"""examples/reference_kernels: a kernel that got slower is told from a reference that did."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores.records import read_record
from pytest_perfgate.cli import main
from pytest_perfgate.model.plan import Outcome
from tests.plugin.forked import OUTSIDE
from tests.plugin.projects import Project

EXAMPLE = Path(__file__).parents[2] / "examples" / "reference_kernels"

CHANGE = "change(speedup(over=plain)) >= -15%"


def outcomes(project: Project, planted: str) -> set[Outcome]:
    """What the limit on the change came to, over both degrees."""
    project.run("--perfgate=full", "--perfgate-json=run.json", PLANTED=planted)
    cases = [case for case in read_record(project.root / "run.json").cases if case.key.name == "ours"]
    assert len(cases) == 2
    return {verdict.outcome for case in cases for verdict in case.verdicts if verdict.limit.text == CHANGE}


@pytest.mark.slow
def test_the_example_tells_which_of_the_two_got_slower(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EXAMPLE, project.root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    monkeypatch.chdir(project.root)
    for name in OUTSIDE:  # in CI nothing is accepted
        monkeypatch.delenv(name, raising=False)
    assert outcomes(project, "") == {Outcome.UNBASELINED}
    assert main(["accept", "--new"]) == 0
    assert outcomes(project, "") <= {Outcome.PASSED, Outcome.IMPROVED}
    assert outcomes(project, "kernel") == {Outcome.REGRESSED}
    assert outcomes(project, "reference") == {Outcome.MOVED}
