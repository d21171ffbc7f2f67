"""Tests of plugin/state."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.compare_arms import Comparison
from pytest_perfgate.app.judge import off_reason
from pytest_perfgate.app.measure import ChildSettings, Rounds
from pytest_perfgate.core.judge.policy import CI, LOCAL, effect
from pytest_perfgate.core.judge.rounds import Design
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Effect, Mode, Outcome
from pytest_perfgate.model.protocol import ChildJob
from pytest_perfgate.plugin.measure_ahead import fit_results
from pytest_perfgate.plugin.state import SessionState, Settings, outside, skip_rest
from tests.unit.app.scripted_pairs import PROOF, World, arm, cases, slower, spec, staged


@pytest.mark.parametrize("option", ["usepdb", "trace"])
@pytest.mark.parametrize(("policy", "done"), [(CI, Effect.FAIL), (LOCAL, Effect.PASS)])
def test_a_debugger_is_no_measurement(option: str, policy: Any, done: Effect) -> None:
    options = {"usepdb": False, "trace": False, "perfgate_mode": "full", "perfgate_against": None} | {option: True}
    config: Any = SimpleNamespace(option=SimpleNamespace(**options))
    session = SessionState(Settings(config))
    assert session.settings.debugging
    assert session.mode is Mode.OFF
    assert effect(Outcome.NOT_MEASURED, policy, session.mode) is done
    assert off_reason(Mode.FULL, session.settings.debugging) == "--pdb skips measuring"


def item(top: Path, path: Path, nodeid: str) -> Any:
    config = SimpleNamespace(rootpath=top, invocation_params=SimpleNamespace(dir=top.parent))
    return SimpleNamespace(config=config, path=path, nodeid=f"{nodeid}::test_a")


def test_a_test_of_the_project_beside_is_refused_by_its_path(tmp_path: Path) -> None:
    one, other = tmp_path / "a", tmp_path / "b"
    assert outside(item(one, one / "tests/test_a.py", "tests/test_a.py")) is None
    fault = outside(item(one, other / "tests/test_a.py", "tests/test_a.py"))
    assert fault is not None
    assert fault.code.name == "test-outside"
    assert "b/tests/test_a.py lies outside the rootdir, a" in fault.text()
    assert "run each project by itself" in fault.text()


def test_a_test_that_its_node_id_leads_to_by_a_link_is_inside(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "test_a.py").touch()
    top = tmp_path / "link"
    top.symlink_to(tmp_path / "real")
    assert outside(item(top, tmp_path / "real" / "test_a.py", "test_a.py")) is None


FATAL, OTHERS = "t.py::test_1", ("t.py::test_0", "t.py::test_2")


def measured(world: World, *, stopping: bool = False, tell: Any = len) -> Rounds:
    child_settings = ChildSettings(
        spawner=world,
        spec=lambda some: spec(arm("head"), some, 1),
        job=ChildJob(cases=()),
        timeout_s=1,
        progress=lambda *arguments: None,
        clock=lambda: 0.0,
        tell=tell,
    )
    rounds = Rounds(cases(3), child_settings)
    if stopping:
        rounds._stopped = True
        rounds._run_round(0, cases(3), {})
    else:
        for number in range(rounds.most):
            rounds.round(number, cases(3))
    return rounds


def test_a_test_that_kills_its_child_is_told_from_one_that_fails() -> None:
    world = World(time=slower("", 0.0), modules=PROOF, dies={("head", FATAL)})
    results = measured(world).results()
    assert {nodeid: one.outcome for nodeid, one in results.items()} == {
        FATAL: "died", **dict.fromkeys(OTHERS, "passed"),
    }  # fmt: skip
    died: set[str] = set()
    session: Any = SimpleNamespace(died=died, gate_judge=SimpleNamespace(read_limits=lambda result: None))
    fit_results(session, results)
    assert died == {FATAL}


def test_a_child_that_an_interrupt_ended_has_killed_nobody() -> None:
    world = World(time=slower("", 0.0), modules=PROOF, dies={("head", OTHERS[0])})
    assert "died" not in {one.outcome for one in measured(world, stopping=True).results().values()}


def test_a_child_that_waits_for_a_device_is_told_of_and_measured() -> None:
    lines: list[str] = []
    results = measured(World(time=slower("", 0.0), modules=PROOF, waits=True), tell=lines.append).results()
    assert {one.outcome for one in results.values()} == {"passed"}
    assert set(lines) == {"process 7 measures on GPU-1"}


@pytest.mark.parametrize("side", ["base", "head"])
def test_the_same_where_two_arms_are_measured(side: str) -> None:
    world = World(time=slower("", 0.0), modules=PROOF, dies={(side, FATAL)})
    comparison = Comparison((arm("base"), arm("head")), cases(3), staged(world, [], []), Design())
    comparison.play("round", {case.nodeid: 1 for case in cases(3)})
    assert {n: one.outcome for n, one in comparison.results().items()} == {
        FATAL: "died", **dict.fromkeys(OTHERS, "passed"),
    }  # fmt: skip


def test_neither_its_fixtures_nor_its_body_run() -> None:
    class Item:
        nodeid = FATAL

        def setup(self) -> None:
            raise PerfgateError("child-crashed", "here too")

        runtest = setup

    item: Any = Item()
    skip_rest(item, ())
    with pytest.raises(PerfgateError, match="here too"):
        item.setup()
    skip_rest(item, {FATAL})
    item.setup()
    item.runtest()
