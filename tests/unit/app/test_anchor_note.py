"""A run says where small steps have added up against the anchor."""

from __future__ import annotations

from dataclasses import replace

from pytest_perfgate.app.conclude import Ending, suite_notes
from pytest_perfgate.app.judge import GateJudge as Court
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.model.measurement import Baseline, Environment, Sitting
from pytest_perfgate.model.plan import Case, Effect, Mode, Plan
from pytest_perfgate.model.ports import GateTools
from tests.unit.core.gate.bench import HOST, KEY, KINDS, accepted, measured

ENDING = Ending(mode=Mode.FULL, started="2026-11-21T07:00:00", seconds=1.0, complete=True, filtered=False, root="/r")


class Lines:
    """Baselines of the anchor's revision and of the work tree."""

    def __init__(self, at_anchor: Baseline | None) -> None:
        self._at_anchor = at_anchor

    def read(self, device: str, path: str, revision: str = "") -> dict[str, Baseline]:
        assert revision in {"v1", ""}
        return {str(KEY): self._at_anchor} if revision and self._at_anchor else {}

    def read_all(self, device: str) -> dict[str, Baseline]:
        return {}


class Sittings:
    def __init__(self, times: list[float]) -> None:
        self._times = times

    def read(self, key: object, device: str, last: int = 0) -> tuple[Sitting, ...]:
        return tuple(Sitting(key=KEY, device=device, time=time, when="") for time in self._times)


def notes(times: list[float], now: float, *, anchor: str = "v1", line: Baseline | None = None):
    tools = GateTools(
        kinds=KINDS,
        nursery=None,
        environment=Environment,
        roofed=lambda device: device,
        baselines=Lines(line or accepted(1e6, device=HOST)),
        history=Sittings(times),
    )
    court = Court(tools, JudgeContext(kinds=KINDS))
    case = Case(nodeid=KEY.nodeid, limits=(), plan=Plan(anchor=anchor), path=KEY.path)
    reports = [court.judged(case, measured(now))]
    found = suite_notes(court, {KEY.nodeid: case}, reports, ENDING)
    return [note for note in found if note.kind == "anchor"]


def test_ten_steps_of_one_percent_are_said_though_none_of_them_is() -> None:
    times = [1e6 * 1.01**step for step in range(1, 10)]
    (note,) = notes(times, 1e6 * 1.01**10)
    assert note.effect is Effect.WARN
    assert note.names == (f"{KEY}: +9.4 %",)


def test_what_keeps_to_its_anchor_or_has_none_says_nothing() -> None:
    steps = [1e6 * 1.01**step for step in range(1, 10)]
    assert notes([1e6, 1.01e6, 0.99e6], 1e6) == []
    assert notes(steps, 1.1e6, anchor="") == []
    assert notes(steps, 1.1e6, line=replace(accepted(1e6), local=True)) == []
