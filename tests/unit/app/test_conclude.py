"""Tests of app/conclude."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.adapters.runtimes.host import device_key
from pytest_perfgate.app.conclude import Ending, _drifting_lines, as_at_base, identical_arms, pages_alone, suite_notes
from pytest_perfgate.app.instrument import key_patterns
from pytest_perfgate.app.judge import GateJudge
from pytest_perfgate.core.changes.marks import EnvironmentEdits
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.policy import CI, LOCAL
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Baseline, Environment, HistoryEntry
from pytest_perfgate.model.metric import Figure
from pytest_perfgate.model.plan import Base, Case, CaseKey, Choice, Decision, Effect, Mode, Outcome, Plan, Policy
from pytest_perfgate.model.ports import GateTools
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import CaseReport, Paired, SuiteNote, Verdict
from tests.unit.core.judge.bench import HOST, KEY, KINDS, accepted, limit, measured

COMMIT = "0123456789abcdef"


def notes(
    policy: Policy = CI,
    *,
    revision: str = COMMIT,
    head: str = COMMIT,
    same_code: bool = True,
    edits: EnvironmentEdits = EnvironmentEdits(),
) -> list[SuiteNote]:
    gate_judge: Any = SimpleNamespace(
        revision=revision,
        same_code=same_code,
        context=SimpleNamespace(policy=policy),
        tools=SimpleNamespace(repository=SimpleNamespace(head=lambda: head)),
        environment_edits=edits,
    )
    return list(identical_arms(gate_judge))


def test_the_commit_under_test_held_against_itself_was_not_compared() -> None:
    (note,) = notes()
    assert (note.kind, note.effect) == ("uncompared", Effect.FAIL)
    assert note.text.startswith("nothing was compared: --perfgate-against means 0123456789, the commit under test")
    assert "without a REV it takes the merge base" in note.text
    assert [note.effect for note in notes(LOCAL)] == [Effect.WARN]


def test_another_commit_with_the_same_code_is_said_and_fails_nothing() -> None:
    (note,) = notes(head="fedcba")
    assert (note.kind, note.effect) == ("uncompared", Effect.WARN)
    assert "0123456789" in note.text
    (note,) = notes(head="fedcba", edits=EnvironmentEdits(files=("uv.lock",)))
    assert note.text.endswith("share what is installed now: this change edits uv.lock, which was not compared")


def test_a_change_that_was_compared_has_no_such_note() -> None:
    assert notes(same_code=False) == notes(revision="") == []


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


class EntriesOf:
    def __init__(self, times: list[float]) -> None:
        self._times = times

    def read(self, key: object, device: str, last: int = 0) -> tuple[HistoryEntry, ...]:
        return tuple(HistoryEntry(key=KEY, device=device, time=time, when="") for time in self._times)


def anchor_notes(times: list[float], now: float, *, anchor: str = "v1", line: Baseline | None = None):
    tools = GateTools(
        kinds=KINDS,
        spawner=None,
        environment=Environment,
        with_measured_ceilings=lambda device: device,
        baselines=Lines(line or accepted(1e6, device=HOST)),
        history=EntriesOf(times),
    )
    gate_judge = GateJudge(tools, JudgeContext(kinds=KINDS))
    case = Case(nodeid=KEY.nodeid, limits=(), plan=Plan(anchor=anchor), path=KEY.path)
    reports = [gate_judge.judged(case, measured(now))]
    all_notes = suite_notes(gate_judge, {KEY.nodeid: case}, reports, ENDING)
    return [note for note in all_notes if note.kind == "anchor"]


def test_ten_steps_of_one_percent_are_said_though_none_of_them_is() -> None:
    times = [1e6 * 1.01**step for step in range(1, 10)]
    (note,) = anchor_notes(times, 1e6 * 1.01**10)
    assert note.effect is Effect.WARN
    assert note.names == (f"{KEY}: +9.4 %",)


def test_what_keeps_to_its_anchor_or_has_none_says_nothing() -> None:
    steps = [1e6 * 1.01**step for step in range(1, 10)]
    assert anchor_notes([1e6, 1.01e6, 0.99e6], 1e6) == []
    assert anchor_notes(steps, 1.1e6, anchor="") == []
    assert anchor_notes(steps, 1.1e6, line=replace(accepted(1e6), local=True)) == []


LINE = accepted(1e6)
SHALLOW = Base(why="this clone is shallow", fix="check out with fetch-depth: 0")
CI_POLICY = Policy(ci=True)


def base_notes(
    line: Baseline | None, base: Base = SHALLOW, policy: Policy = CI_POLICY, paired: Paired | None = None
) -> list[Any]:
    repository: Any = SimpleNamespace(base=lambda: base, last_release=lambda: "", files=lambda *_: ())
    lines: Any = SimpleNamespace(
        read=lambda *_: {str(KEY): line} if line else {},
        read_all=lambda device: {str(KEY): line} if line else {},
        paths=lambda device, revision: (),
    )
    spawner: Any = None
    tools = GateTools(
        kinds=KINDS,
        spawner=spawner,
        environment=Environment,
        with_measured_ceilings=lambda device: device,
        baselines=lines,
        repository=repository,
    )
    gate_judge = GateJudge(tools, JudgeContext(kinds=KINDS, policy=policy))
    gate_judge.paired = {KEY: paired} if paired else {}
    case = Case(nodeid=KEY.nodeid, limits=(limit("slowdown <= 3%"),), plan=Plan(), path=KEY.path)
    reports = [gate_judge.judged(case, measured(1e6))]
    kinds = {"no merge base", "parent"}
    return [note for note in suite_notes(gate_judge, {KEY.nodeid: case}, reports, ENDING) if note.kind in kinds]


@pytest.mark.parametrize("choice", [Choice.WARN, Choice.FAIL])
def test_a_change_that_its_own_lines_judged_says_so_and_fails_where_that_is_asked(choice: Choice) -> None:
    (note,) = base_notes(LINE, policy=replace(CI_POLICY, no_base=choice))
    assert (note.effect, note.names) == (Effect(choice.value), (str(KEY),))
    assert "this clone is shallow; check out with fetch-depth: 0" in note.text


def test_a_revision_that_was_guessed_is_named() -> None:
    (note,) = base_notes(LINE, Base(commit="c0ffee", name="the parent", why="nobody knows"))
    assert (note.kind, note.effect) == ("parent", Effect.WARN)
    assert "c0ffee, the parent," in note.text
    assert note.text.endswith(": nobody knows")


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (LINE, {"base": Base(commit="beef", name="the merge base with main")}),
        (LINE, {"base": Base(name="the first commit")}),
        (LINE, {"policy": Policy()}),
        (LINE, {"paired": Paired(decision=Decision.NOT_SLOWER, differences=(0.0,), shift=0.0, revision=True)}),
        (replace(LINE, local=True), {}),
        (None, {}),
    ],
)
def test_nothing_is_said_where_nothing_went_unheld(line: Baseline | None, fields: dict[str, Any]) -> None:
    assert base_notes(line, **fields) == []


def skip_notes(device: str, line: Any, cases: tuple[str, ...] = (KEY.nodeid,)) -> list[tuple[str, Effect]]:
    store: Any = SimpleNamespace(
        devices=lambda: (device,), read_all=lambda name: {str(line.key): line} if name == device else {}
    )
    spawner: Any = None
    tools = GateTools(
        kinds=KINDS,
        spawner=spawner,
        environment=Environment,
        with_measured_ceilings=lambda card: card,
        baselines=store,
        here=lambda: (HOST.key, "NVIDIA-H200-[0-9]*GiB*"),
    )
    gate_judge = GateJudge(tools, JudgeContext(kinds=KINDS, policy=CI))
    by_nodeid = {nodeid: Case(nodeid=nodeid, limits=(), plan=Plan()) for nodeid in cases}
    ending = replace(ENDING, skipped={KEY.nodeid: "no --run-bench"} if cases else {})
    return [(note.kind, note.effect) for note in suite_notes(gate_judge, by_nodeid, [], ending)]


@pytest.mark.parametrize("device", [HOST.key, "NVIDIA-H200-140GiB-observe"])
def test_a_skip_with_a_line_of_a_device_that_is_here_fails_in_ci(device: str) -> None:
    assert skip_notes(device, accepted(1e6)) == [("skipped", Effect.FAIL)]
    assert skip_notes(device, accepted(1e6), cases=()) == [("dropped", Effect.FAIL)]


def test_a_skip_for_want_of_the_device_is_excused() -> None:
    assert skip_notes("NVIDIA-H200-NVL-140GiB-observe", accepted(1e6)) == []
    assert skip_notes(HOST.key, replace(accepted(1e6), local=True)) == [], "of this checkout alone"


def test_what_the_key_of_a_card_looks_like() -> None:
    card = Device(key="", name="NVIDIA H200", kind="gpu", memory_bytes=150e9)
    host, *patterns = key_patterns(HOST, [card, card])
    assert (host, patterns) == (HOST.key, ["NVIDIA-H200-[0-9]*GiB*"])
    assert fnmatchcase(f"{device_key(card)}-lock", patterns[0])
    limited = replace(card, facts=(("power limit", "600 W"), ("default power limit", "700 W")))
    assert fnmatchcase(f"{device_key(limited)}-observe", patterns[0])


def creep(then: Baseline, edited: Baseline | None, policy: Policy = CI) -> list[SuiteNote]:
    judging = SimpleNamespace(judging=lambda measurement: (then, edited))
    gate_judge: Any = SimpleNamespace(accepted=judging, context=SimpleNamespace(policy=policy, anchor=0.1))
    report = CaseReport(key=KEY, verdicts=(), measurement=measured(1e6))
    return list(_drifting_lines(gate_judge, [report, CaseReport(key=KEY, verdicts=())]))


def test_a_change_that_goes_on_creeping_fails_and_elsewhere_it_is_told() -> None:
    """Five accepted steps of 4 % passed unremarked: the accepted time moved along."""
    then = accepted(1.08e6, anchor=1e6, anchored="2026-09-01")
    edited = accepted(1.125e6, anchor=1e6, anchored="2026-09-01")
    (note,) = creep(then, edited)
    assert (note.kind, note.effect) == ("creep", Effect.FAIL)
    assert note.names == (f"{KEY}: +12.5 % since 2026-09-01",)
    (later,) = creep(edited, None)
    for one in (note, later):
        assert 'perfgate accept --from RECORD --anchor --reason "..."' in one.text
    assert [one.effect for one in creep(then, edited, LOCAL)] == [Effect.WARN]
    assert [one.effect for one in creep(edited, None)] == [Effect.WARN], "a later change that accepts nothing"
    assert [one.effect for one in creep(replace(edited, time=1.2e6), edited)] == [Effect.WARN], "a step back"
    assert creep(then, None) == []
    assert creep(then, replace(edited, anchor=0.0, anchored="")) == [], "a person began anew, and gave a reason"
    assert creep(replace(edited, local=True), None) == []


def test_a_check_of_the_change_that_breaks_costs_no_other_its_note() -> None:
    def broken(_revision: str) -> tuple[str, ...]:
        raise ValueError("half a tree")

    repository: Any = SimpleNamespace(
        base=lambda: Base(commit="c0ffee"),
        last_release=lambda: "",
        changed=broken,
        touched=lambda _revision, _words: None,
        files=lambda _revision, folder: (f"{folder}/history.db",),
    )
    spawner: Any = None
    tools = GateTools(
        kinds=KINDS,
        spawner=spawner,
        environment=Environment,
        with_measured_ceilings=lambda device: device,
        repository=repository,
    )
    gate_judge = GateJudge(tools, JudgeContext(kinds=KINDS, policy=CI_POLICY))
    notes = suite_notes(gate_judge, {}, [], ENDING)
    kinds = [(note.kind, note.effect) for note in notes if note.kind in {"committed", "fault", "limits"}]
    assert kinds == [("committed", Effect.FAIL), ("fault", Effect.FAIL), ("limits", Effect.WARN)]


FIGURE = Figure(name="peak_memory", value=1.0, dimension=Dimension.BYTES)


@pytest.mark.parametrize(
    ("edited", "base", "sentence"),
    [
        (None, "c0ffee", ""),
        ((), "c0ffee", "nothing"),
        (("README.md",), "c0ffee", "README.md only, and no code names such files"),
        (("a.md", "b.md", "c.md", "d.md"), "c0ffee", "4 files only, and no code names such files"),
        (("b/t.py.yaml",), "c0ffee", "b/t.py.yaml only, which perfgate alone writes"),
        (("README.md",), "", ""),
    ],
)
def test_a_change_of_pages_alone_is_said(edited: tuple[str, ...] | None, base: str, sentence: str) -> None:
    repository = SimpleNamespace(pages_alone=lambda revision, baselines: edited)
    tools = SimpleNamespace(repository=repository)
    gate_judge: Any = SimpleNamespace(tools=tools, accepted=SimpleNamespace(base=Base(commit=base)))
    assert pages_alone(gate_judge, "baselines") == sentence


@pytest.mark.parametrize(
    ("limits", "path", "decided"),
    [
        (("slowdown <= 3%",), "t.py", True),
        (("slowdown <= 3%", "change(peak_memory) <= 1%"), "t.py", False),
        (("slowdown <= 3%",), "README.md", False),
        (("time <= 1ns",), "t.py", True),  # it may count in a mean
    ],
)
def test_without_builds_only_times_of_tests_in_python_are_decided(
    limits: tuple[str, ...], path: str, decided: bool
) -> None:
    key = CaseKey(nodeid=f"{path}::test_a")
    verdicts = tuple(
        Verdict(limit=limit(text), outcome=Outcome.UNDECIDED, effect=Effect.WARN, figure=FIGURE) for text in limits
    )
    pairs: dict[str, Paired] = {}
    gate_judge: Any = SimpleNamespace(
        accepted=SimpleNamespace(base=Base(commit="c0ffee")),
        context=JudgeContext(policy=CI),
        tools=SimpleNamespace(repository=SimpleNamespace(pages_alone=lambda revision, baselines: ())),
        with_arms=lambda case, report, paired: pairs.setdefault(case, paired),
    )
    reports, tests = {key: CaseReport(key=key, verdicts=verdicts)}, {key.nodeid: key.nodeid}
    assert bool(as_at_base(gate_judge, "baselines", {"c0ffee": [key]}, reports, tests)) is decided
    assert not as_at_base(gate_judge, "baselines", {"": [key]}, reports, tests), "a line without a commit"
    assert all(paired.without_rounds and paired.base == "c0ffee" for paired in pairs.values())
