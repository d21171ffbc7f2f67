"""What killed a measuring child is not let into pytest's own process."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.compare_arms import Comparison
from pytest_perfgate.app.measure import ChildSettings as Crew
from pytest_perfgate.app.measure import Rounds
from pytest_perfgate.core.judge.rounds import Design
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.protocol import Job
from pytest_perfgate.plugin.measure_ahead import fit_results
from pytest_perfgate.plugin.state import spare
from tests.unit.app.duets import World, arm, cases, spec
from tests.unit.app.test_compare_arms import PROOF, slower, staged

FATAL, OTHERS = "t.py::test_1", ("t.py::test_0", "t.py::test_2")


def measured(world: World, *, stopping: bool = False, tell: Any = len) -> Rounds:
    crew = Crew(
        nursery=world,
        spec=lambda some: spec(arm("head"), some, 1),
        job=Job(cases=()),
        timeout_s=1,
        progress=lambda *told: None,
        clock=lambda: 0.0,
        tell=tell,
    )
    rounds = Rounds(cases(3), crew)
    if stopping:
        rounds._stopped = True
        rounds._lap(0, cases(3), {})
    else:
        rounds.run()
    return rounds


def test_a_test_that_kills_its_child_is_told_from_one_that_fails() -> None:
    world = World(time=slower("", 0.0), modules=PROOF, dies={("head", FATAL)})
    found = measured(world).results()
    assert {nodeid: one.outcome for nodeid, one in found.items()} == {
        FATAL: "died", **dict.fromkeys(OTHERS, "passed"),
    }  # fmt: skip
    died: set[str] = set()
    session: Any = SimpleNamespace(died=died, court=SimpleNamespace(read_limits=lambda result: None))
    fit_results(session, found)
    assert died == {FATAL}


def test_a_child_that_an_interrupt_ended_has_killed_nobody() -> None:
    world = World(time=slower("", 0.0), modules=PROOF, dies={("head", OTHERS[0])})
    assert "died" not in {one.outcome for one in measured(world, stopping=True).results().values()}


def test_a_child_that_waits_for_a_device_is_told_of_and_measured() -> None:
    said: list[str] = []
    found = measured(World(time=slower("", 0.0), modules=PROOF, waits=True), tell=said.append).results()
    assert {one.outcome for one in found.values()} == {"passed"}
    assert set(said) == {"process 7 measures on GPU-1"}


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
    spare(item, ())
    with pytest.raises(PerfgateError):
        item.setup()
    spare(item, {FATAL})
    item.setup()
    item.runtest()
