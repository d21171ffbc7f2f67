"""A suspect that two arms acquit: the court names what differs from the accepted sitting."""

from __future__ import annotations

from dataclasses import replace

from pytest_perfgate.app.judge import GateJudge as Court
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.model.measurement import Baseline, Environment, Sitting
from pytest_perfgate.model.plan import Case, Effect, Outcome, Plan
from pytest_perfgate.model.ports import GateTools
from tests.unit.core.gate.bench import HOST, KEY, KINDS, accepted, limit, measured
from tests.unit.core.gate.test_paired import NOT_SLOWER

THEN = Environment(python="3.12.3", packages=(("numpy", "2.0.1"),), facts=(("governor", "performance"),))
NOW = replace(THEN, packages=(("numpy", "2.1.0"),), facts=(("governor", "performance"), ("load", "9.0")))


class Store:
    """One line, and a history that knows the accepted commit's clock."""

    def __init__(self, line: Baseline) -> None:
        self._line = line

    def read(self, device_or_key: object, *rest: object) -> object:
        if device_or_key == KEY:
            return (Sitting(key=KEY, device=HOST.key, time=1e6, when="", commit=self._line.commit, clock_hz=3e9),)
        return {str(KEY): self._line}


def test_what_differs_is_named_in_the_verdict() -> None:
    store = Store(accepted(1e6, surroundings=THEN))
    tools = GateTools(
        kinds=KINDS,
        nursery=None,
        environment=Environment,
        roofed=lambda device: device,
        baselines=store,
        history=store,
        convict=lambda reports, cases: {},
    )
    court = Court(tools, JudgeContext(kinds=KINDS))
    case = Case(nodeid=KEY.nodeid, limits=(limit("slowdown <= 3%"),), plan=Plan(), path=KEY.path)
    here = measured(1.1e6, environment=NOW)
    slow = replace(here, processes=tuple(replace(one, clock_hz=(2.9e9,)) for one in here.processes))
    suspect = court.judged(case, slow)
    assert suspect.worst is Outcome.SUSPECT
    (found,) = court.with_arms(case, suspect, replace(NOT_SLOWER, moved=())).verdicts
    assert found.outcome is Outcome.MOVED
    assert found.sentence.endswith("what differs: clock 3 GHz -> 2.9 GHz, numpy 2.0.1 -> 2.1.0")
    bare = court.with_arms(case, suspect, replace(NOT_SLOWER, bare=True))
    assert bare.verdicts[0].evidence[-1] == ("arms", "it loads nothing of the package: both arms are the same")


def test_what_a_revision_does_not_have_is_held_against_nothing_and_keeps_its_own_limits() -> None:
    line = accepted(1e6)
    tools = GateTools(
        kinds=KINDS, nursery=None, environment=Environment, roofed=lambda device: device, baselines=Store(line)
    )
    court = Court(tools, JudgeContext(kinds=KINDS, policy=CI))
    case = Case(nodeid=KEY.nodeid, limits=(limit("slowdown <= 3%"), limit("time <= 1us")), plan=Plan(), path=KEY.path)
    court.new = frozenset({KEY.nodeid})
    found = court.judged(case, measured(1.1e6))
    slowdown, time = found.verdicts
    assert (slowdown.outcome, slowdown.effect) == (Outcome.UNBASELINED, Effect.WARN)
    assert slowdown.sentence == "new here: nothing to compare with"
    assert (time.outcome, time.effect, found.baseline) == (Outcome.BROKEN, Effect.FAIL, None)


def test_what_the_base_cannot_run_is_judged_by_its_stored_line_and_says_why() -> None:
    tools = GateTools(
        kinds=KINDS, nursery=None, environment=Environment, roofed=lambda device: device, baselines=Store(accepted(1e6))
    )
    court = Court(tools, JudgeContext(kinds=KINDS, policy=CI))
    case = Case(nodeid=KEY.nodeid, limits=(limit("slowdown <= 3%"), limit("time <= 1us")), plan=Plan(), path=KEY.path)
    court.unready = {KEY.nodeid: "base: failed: call: TypeError: exact"}
    slowdown, time = court.judged(case, measured(1.1e6)).verdicts
    assert (slowdown.outcome, slowdown.effect) == (Outcome.SUSPECT, Effect.WARN)
    assert slowdown.evidence[-1] == ("no arms", "base: failed: call: TypeError: exact")
    assert time.outcome is Outcome.BROKEN
    bare = Court(replace(tools, baselines=None), court.context)
    bare.unready = court.unready
    slowdown, _ = bare.judged(case, measured(1.1e6)).verdicts
    assert (slowdown.outcome, slowdown.effect) == (Outcome.UNBASELINED, Effect.WARN)
    assert slowdown.sentence == "nothing to compare with"
