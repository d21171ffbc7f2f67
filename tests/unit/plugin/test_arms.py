"""Tests of plugin/arms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Mode
from pytest_perfgate.model.verdict import PairedRound
from pytest_perfgate.plugin import arms
from pytest_perfgate.plugin.arms import ArmRunner, Bounds, FinishedRounds, design_of, in_means
from pytest_perfgate.wiring import read_values
from tests.unit.app.stores import Lines, captured, case, gate_judge
from tests.unit.core.judge.bench import CONTEXT, KEY, accepted, limit, measured


class Played:
    """A comparison as far as it is asked what its head measured."""

    def __init__(self, *calls: Any) -> None:
        self.calls, self.asked, self.rounds = calls, 0, [1]

    def results(self) -> dict[str, Any]:
        self.asked += 1
        return {KEY.nodeid: replace(self.calls[0], case=case(limit("slowdown <= 5%")), captures=(self._captures(),))}

    def _captures(self) -> tuple[Any, ...]:
        return tuple(call.captures[0][0] for call in self.calls)


def test_a_call_is_held_to_its_own_limit() -> None:
    tight = replace(KEY, name="tight")
    played: Any = Played(
        captured(measured(1e6)),
        captured(replace(measured(1e6), key=tight), limits=("slowdown <= 1%",)),
    )
    bounds = Bounds(gate_judge(Lines(None)), played)
    assert [bounds(key) for key in (KEY, tight, KEY)] == pytest.approx([0.05, 0.01, 0.05])
    assert played.asked == 1


def test_what_all_calls_ask_together_is_counted_once_a_round() -> None:
    keys = [replace(KEY, name=f"call{number}") for number in range(50)]
    played: Any = Played(*(captured(replace(measured(1e6), key=key)) for key in keys))
    bounds = Bounds(gate_judge(Lines(None)), played)
    assert [bounds.to_decide(key).gates for key in keys] == [50] * 50
    assert played.asked == 2


def test_a_limit_that_does_not_read_leaves_those_of_the_test() -> None:
    bounds = Bounds(gate_judge(Lines(None)), Played(captured(measured(1e6), limits=("slowdown =< 1%",))))  # type: ignore[arg-type]
    assert bounds(KEY) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("families", "share", "least"), [(0, 1.0, 0), (1, 1.0, 8), (2, 1.0, 9), (10, 1.0, 11), (1, 0.5, 9), (2, 0.125, 12)]
)
def test_every_case_has_the_rounds_that_could_confirm_the_means_of_the_run(
    families: int, share: float, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arms, "share_of", lambda config: share)
    settings = SimpleNamespace(options=SimpleNamespace(perfgate_rounds=None), ci=True, pytest=None)
    mean = limit("geomean(slowdown) <= 5%")
    cases = {f"t.py::test_{n}": replace(case(mean), nodeid=f"t.py::test_{n}", family="") for n in range(families)}
    session: Any = SimpleNamespace(settings=settings, cases=cases)
    assert design_of(session).least == least


ROUNDS = [PairedRound(nodeid="t.py::test_a", phase="screen", number=0)]


def test_they_are_there_for_the_next_run(tmp_path: Path) -> None:
    session: Any = SimpleNamespace(resumable=False)
    lines: list[str] = []
    FinishedRounds(tmp_path / "rounds" / "a.bin", session, lines.append)(ROUNDS)
    assert read_values(tmp_path / "rounds" / "a.bin", PairedRound) == ROUNDS
    assert (session.resumable, lines) == (True, [])


def test_a_disk_that_takes_none_is_said_once_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "rounds").write_text("a file where the folder would be")
    session: Any = SimpleNamespace(resumable=True)
    lines: list[str] = []
    keep = FinishedRounds(tmp_path / "rounds" / "a.bin", session, lines.append)
    keep(ROUNDS)
    keep(ROUNDS)
    assert session.resumable is False
    assert len(lines) == 1
    assert lines[0].startswith("finished rounds cannot be kept for an interrupted run: it cannot be written")


def test_only_means_that_were_open_before_get_more_rounds() -> None:
    """A suspect alone is not its family: the accepted times may have settled the mean without it."""
    played: Any = Played(captured(measured(1e6)))
    session: Any = SimpleNamespace(
        cases={KEY.nodeid: case(limit("geomean(slowdown) <= 5%"))}, gate_judge=SimpleNamespace(context=CONTEXT)
    )
    bounds, rounds = Bounds(gate_judge(Lines(None)), played), {KEY: (-0.2, 0.2) * 5}
    assert in_means(session, bounds)(rounds) == {KEY}
    assert in_means(session, bounds, {KEY})(rounds) == {KEY}
    assert in_means(session, bounds, {replace(KEY, name="other")})(rounds) == set()


def session_that_confirms(monkeypatch: pytest.MonkeyPatch, compared: Any) -> tuple[ArmRunner, Any, list[str]]:
    """A runner whose comparisons are these, with two cases that two commits have to decide; and their reports."""
    monkeypatch.setattr(arms, "in_open_means", lambda judge, reports, cases: frozenset())
    monkeypatch.setattr(arms, "as_at_base", lambda judge, baselines, open_, reports, cases: {})
    monkeypatch.setattr(arms, "same_build", lambda runner, commit, base: False)
    monkeypatch.setattr(arms, "report_unbuilt", lambda config, commit, count, fault: None)
    accepted_times = SimpleNamespace(base=SimpleNamespace(commit=""))
    undecided = SimpleNamespace(accepted=accepted_times, without_arms=lambda case, report, fault, why="": str(fault))
    settings = SimpleNamespace(ci=True, pytest=None, project=SimpleNamespace(baselines="baselines"))
    session = SimpleNamespace(interrupted=False, gate_judge=undecided, settings=settings)
    runner: Any = ArmRunner.__new__(ArmRunner)
    runner.session, runner._config, runner._project = session, None, settings.project
    runner.stopped, commits = {}, []

    def _compare(commit: str, *_: Any) -> Any:
        commits.append(commit)
        return compared(session)

    monkeypatch.setattr(runner, "_compare", _compare)
    return runner, session, commits


def suspect(name: str, commit: str) -> Any:
    line = accepted(1e6, commit=commit, runs=2)
    report = judge(measured(1.2e6), [limit("slowdown <= 5%")], baseline=line, context=replace(CONTEXT, mode=Mode.FULL))
    return replace(report, key=replace(KEY, name=name))


@pytest.mark.parametrize("fails", [True, False])
def test_after_an_interrupt_no_further_commit_is_built(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the rounds that were interrupted cannot be read to their end."""

    def interrupted(session: Any) -> Any:
        session.interrupted = True
        if fails:
            raise PerfgateError("git-failed", "the repository was moved")
        return {}, {}

    runner, _, commits = session_that_confirms(monkeypatch, interrupted)
    reports = {one.key: one for one in (suspect("a", "first"), suspect("b", "second"))}
    changed = runner.confirm(reports, {KEY.nodeid: case()})
    assert len(commits) == 1
    assert len(changed) == (1 if fails else 0)
