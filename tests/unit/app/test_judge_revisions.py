"""Tests of app/judge: what differs from a revision, and what a judge cannot read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app import judge as gate
from pytest_perfgate.app.judge import GateJudge
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.model.errors import PerfgateError, error_summary
from pytest_perfgate.model.measurement import Baseline, Environment, HistoryEntry
from pytest_perfgate.model.plan import Case, Effect, Outcome, Plan
from pytest_perfgate.model.ports import GateTools
from pytest_perfgate.plugin.measure_ahead import judge_measured
from tests.unit.app.stores import Lines, captured, case, gate_judge
from tests.unit.core.judge.bench import HOST, KEY, KINDS, accepted, limit, measured, samples
from tests.unit.core.judge.paired_builds import NOT_SLOWER

THEN = Environment(python="3.12.3", packages=(("numpy", "2.0.1"),), facts=(("governor", "performance"),))
NOW = replace(THEN, packages=(("numpy", "2.1.0"),), facts=(("governor", "performance"), ("load", "9.0")))


class Store:
    """One line, and a history that knows the accepted commit's clock."""

    def __init__(self, line: Baseline) -> None:
        self._line = line

    def read(self, device_or_key: object, *rest: object) -> object:
        if device_or_key == KEY:
            return (HistoryEntry(key=KEY, device=HOST.key, time=1e6, when="", commit=self._line.commit, clock_hz=3e9),)
        return {str(KEY): self._line}


def test_what_differs_is_named_in_the_verdict() -> None:
    store = Store(accepted(1e6, surroundings=THEN))
    tools = GateTools(
        kinds=KINDS,
        spawner=None,
        environment=Environment,
        with_measured_ceilings=lambda device: device,
        baselines=store,
        history=store,
        confirm=lambda reports, cases: {},
    )
    gate_judge = GateJudge(tools, JudgeContext(kinds=KINDS))
    case = Case(nodeid=KEY.nodeid, limits=(limit("slowdown <= 3%"),), plan=Plan(), path=KEY.path)
    here = measured(1.1e6, environment=NOW)
    slow = replace(here, processes=tuple(replace(one, clock_hz=(2.9e9,)) for one in here.processes))
    suspect = gate_judge.judged(case, slow)
    assert suspect.worst is Outcome.SUSPECT
    (report,) = gate_judge.with_arms(case, suspect, replace(NOT_SLOWER, moved=())).verdicts
    assert report.outcome is Outcome.MOVED
    assert report.sentence.endswith("what differs: clock 3 GHz -> 2.9 GHz, numpy 2.0.1 -> 2.1.0")
    bare = gate_judge.with_arms(case, suspect, replace(NOT_SLOWER, outside=True))
    assert bare.verdicts[0].evidence[-1] == (
        "builds",
        "it loads nothing of the package: base and head are the same, except for programs that it starts",
    )


def test_what_a_revision_does_not_have_is_held_against_nothing_and_keeps_its_own_limits() -> None:
    line = accepted(1e6)
    tools = GateTools(
        kinds=KINDS,
        spawner=None,
        environment=Environment,
        with_measured_ceilings=lambda device: device,
        baselines=Store(line),
    )
    gate_judge = GateJudge(tools, JudgeContext(kinds=KINDS, policy=CI))
    case = Case(nodeid=KEY.nodeid, limits=(limit("slowdown <= 3%"), limit("time <= 1us")), plan=Plan(), path=KEY.path)
    gate_judge.new = frozenset({KEY.nodeid})
    report = gate_judge.judged(case, measured(1.1e6))
    slowdown, time = report.verdicts
    assert (slowdown.outcome, slowdown.effect) == (Outcome.UNBASELINED, Effect.WARN)
    assert slowdown.sentence == "new here: nothing to compare with"
    assert (time.outcome, time.effect, report.baseline) == (Outcome.BROKEN, Effect.FAIL, None)


def test_what_the_base_cannot_run_is_judged_by_its_stored_line_and_says_why() -> None:
    tools = GateTools(
        kinds=KINDS,
        spawner=None,
        environment=Environment,
        with_measured_ceilings=lambda device: device,
        baselines=Store(accepted(1e6)),
    )
    gate_judge = GateJudge(tools, JudgeContext(kinds=KINDS, policy=CI))
    case = Case(nodeid=KEY.nodeid, limits=(limit("slowdown <= 3%"), limit("time <= 1us")), plan=Plan(), path=KEY.path)
    gate_judge.base_errors = {KEY.nodeid: "base: failed: call: TypeError: exact"}
    slowdown, time = gate_judge.judged(case, measured(1.1e6)).verdicts
    assert (slowdown.outcome, slowdown.effect) == (Outcome.SUSPECT, Effect.WARN)
    assert slowdown.evidence[-1] == ("no verdict by base and head", "base: failed: call: TypeError: exact")
    assert time.outcome is Outcome.BROKEN
    bare = GateJudge(replace(tools, baselines=None), gate_judge.context)
    bare.base_errors = gate_judge.base_errors
    slowdown, _ = bare.judged(case, measured(1.1e6)).verdicts
    assert (slowdown.outcome, slowdown.effect) == (Outcome.UNBASELINED, Effect.WARN)
    assert slowdown.sentence == "nothing to compare with"


def test_a_fault_of_the_judge_is_one_failed_case_with_its_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any, **named: Any) -> Any:
        raise ZeroDivisionError("float division by zero")

    monkeypatch.setattr(gate, "judge", broken)
    measurement = measured(1e6)
    report = gate_judge(Lines(None)).judged(case(limit("slowdown <= 3%"), limit("time <= 2ms")), measurement)
    assert report.measurement is measurement
    assert [(v.outcome, v.effect) for v in report.verdicts] == [(Outcome.INVALID, Effect.FAIL)] * 2
    assert f"ZeroDivisionError: float division by zero ({Path(__file__).name}:" in report.verdicts[0].sentence
    assert report.problems[0].code == "judging-failed"


@pytest.mark.parametrize("recorded", [(1e-300, 1e-320), (1e300, 1e308), (1e-7,), (1e19,)])
def test_what_is_no_time_of_a_call_is_invalid(recorded: tuple[float, ...]) -> None:
    measurement = measured(1e6, processes=(replace(samples(1e6), durations=recorded),))
    report = judge(measurement, [limit("slowdown <= 3%")], baseline=accepted(1e7), context=JudgeContext(kinds=KINDS))
    assert report.worst is Outcome.INVALID
    assert "and no call can take such a time  [bad-timing]" in report.verdicts[0].sentence
    assert len(report.verdicts[0].sentence) < 120


def test_a_time_of_which_nothing_is_left_is_faster_without_end() -> None:
    measurement = measured(2e-6)
    report = judge(measurement, [limit("slowdown <= 3%")], baseline=accepted(1e18), context=JudgeContext(kinds=KINDS))
    assert report.worst is Outcome.IMPROVED


class Torn(Lines):
    """Baselines of which those of one revision do not read."""

    def __init__(self, revision: str) -> None:
        super().__init__(accepted(1e6), accepted(1e6))
        self.revision = revision

    def devices(self) -> tuple[str, ...]:
        return ("host",)

    def read(self, device: str, path: str, revision: str = "") -> dict[str, Baseline]:
        if revision == self.revision:
            raise PerfgateError("baseline-unreadable", "line 1 does not read")
        return super().read(device, path, revision)


@pytest.mark.parametrize("revision", ["", "base"])
def test_files_are_read_before_anything_is_measured(revision: str) -> None:
    with pytest.raises(PerfgateError, match="does not read"):
        gate_judge(Torn(revision)).read_baselines([case()])
    gate_judge(Torn("another")).read_baselines([case()])
    gate_judge(Torn(revision)).read_baselines([])


def test_what_was_measured_is_kept_without_a_verdict() -> None:
    session: Any = SimpleNamespace(gate_judge=gate_judge(Torn("")), reports={}, faults={}, died=set())
    with pytest.raises(PerfgateError, match="does not read"):
        judge_measured(session, {KEY.nodeid: captured(measured(1e6))})
    ((report,),) = session.reports.values()
    assert report.measurement is not None
    assert report.worst is Outcome.NOT_MEASURED


PIP = """the base build: pip install: exit 1
    error: subprocess-exited-with-error
    × Preparing metadata did not run successfully.
      error: Multiple top-level packages discovered in a flat-layout: ['k', 'baselines'].
      To avoid accidental inclusion of unwanted files or directories,
    note: This error originates from a subprocess
    error: metadata-generation-failed"""


@pytest.mark.parametrize(
    ("what", "place", "lines"),
    [
        (PIP, "build.log", ["the base build: pip install: exit 1",
                            "error: Multiple top-level packages discovered in a flat-layout: ['k', 'baselines'].",
                            "all of it: build.log"]),
        ("make: exit 2\n  k.c:3:1: error: no ;\n  make: *** [k.o]", "", ["make: exit 2", "k.c:3:1: error: no ;"]),
        ("it is full\n  left free: 0 MB", "", ["it is full", "left free: 0 MB"]),
        ("one line", "build.log", ["one line"]),
    ],
)  # fmt: skip
def test_the_line_that_calls_itself_the_error(what: str, place: str, lines: list[str]) -> None:
    assert error_summary(PerfgateError("arm-build-failed", what, place=place)).splitlines() == lines
