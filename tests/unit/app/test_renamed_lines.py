from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.accept import Request, decisions
from pytest_perfgate.app.accepted import Accepted
from pytest_perfgate.app.changed_tests import followed, renamed_lines
from pytest_perfgate.core.changes.tests import renamed_nodes, same_bodies
from pytest_perfgate.core.judge.acceptance import Change
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.plan import Effect, Outcome, Policy
from pytest_perfgate.model.project import Base
from pytest_perfgate.model.verdict import SuiteNote
from tests.reports import baseline, case, run

THEN = [baseline("test_one", 1e6), baseline("test_same", 1e6)]


def lines(*found: Baseline) -> dict[str, Baseline]:
    return {str(line.key): line for line in found}


def court_of(
    *now: Baseline, then: list[Baseline] = THEN, ci: bool = True, base: str = "c0ffee", texts: tuple[str, ...] = ()
) -> Any:
    shown = dict(zip((base, "HEAD"), texts))
    repository = SimpleNamespace(base=lambda: Base(commit=base), show=lambda revision, _path: shown.get(revision))
    tools = SimpleNamespace(
        repository=repository,
        baselines=SimpleNamespace(read=lambda _device, _path, revision="": lines(*(then if revision else now))),
    )
    return SimpleNamespace(context=SimpleNamespace(policy=Policy(ci=ci)), accepted=Accepted(tools))


REPORTS = [case("test_uno", 2e6), case("test_same", 1e6, 1e6)]


def notes(*now: Baseline, **given: Any) -> list[SuiteNote]:
    return list(renamed_lines(court_of(*now, **given), REPORTS))


@pytest.mark.parametrize(
    ("time", "why", "effect", "said"),
    [
        (2e6, "", Effect.WARN, "2 ms after tests/test_k.py::test_one 1 ms: +100.0 %, no reason"),
        (2e6, "exact", Effect.WARN, '2 ms after tests/test_k.py::test_one 1 ms: +100.0 %, "exact"'),
        (1.01e6, "", Effect.PASS, "1.01 ms after tests/test_k.py::test_one 1 ms: +1.0 %, no reason"),
    ],
)
def test_a_new_line_where_another_went_is_said(time: float, why: str, effect: Effect, said: str) -> None:
    (note,) = notes(baseline("test_uno", time, why=why), THEN[1])
    assert (note.kind, note.effect, note.names) == ("renamed", effect, (f"tests/test_k.py::test_uno {said}",))


ONE = "def test_one(perfgate, n):\n    'old words'\n    perfgate(kernel, n)\n"
SHARP = "@slow\ndef completely_different(perfgate, n):\n    perfgate( kernel, n)  # as before\n"


@pytest.mark.parametrize(
    ("then", "now", "told"),
    [
        (ONE, SHARP, True),
        (ONE, SHARP.replace("n)", "m)"), False),
        (ONE, SHARP + SHARP.replace("completely", "partly"), False),
        (ONE, "def (", False),
        (ONE, None, False),
    ],
    ids=["same body", "other body", "two with it", "no Python", "no such file"],
)
def test_a_name_wholly_unlike_the_old_one_is_told_by_what_the_test_does(then: str, now: str, *, told: bool) -> None:
    found = notes(baseline("completely_different", 2e6, why=""), THEN[1], texts=(then, now))
    said = [name for note in found for name in note.names]
    expected = "tests/test_k.py::completely_different 2 ms after tests/test_k.py::test_one 1 ms: +100.0 %, no reason"
    assert said == ([expected] if told else [])


@pytest.mark.parametrize(
    ("texts", "new", "told"),
    [
        ((ONE, SHARP), "completely_different", True),
        ((ONE, SHARP.replace("n)", "m)")), "completely_different", False),
        ((ONE, ONE), "test_one[2]", True),
        ((ONE, ONE.replace("kernel", "other")), "test_one[2]", False),
        ((), "test_uno", False),
    ],
    ids=["same body", "other body", "other parameter", "other parameter and body", "no file"],
)
def test_only_what_does_the_same_goes_on_under_another_name(texts: tuple[str, ...], new: str, *, told: bool) -> None:
    found = followed(court_of(baseline(new, 2e6), THEN[1], texts=texts), REPORTS)
    assert found == (frozenset({"tests/test_k.py::test_one"}) if told else frozenset())


def test_parameters_and_calls_go_with_the_name_of_the_function() -> None:
    then, now = "class A:\n def test_a(self): f()\n", "class B:\n async def no(self): f()\n def uno(self): f()\n"
    assert same_bodies(then, now) == {}, "two do the same"
    names = same_bodies(then, now.replace(" async def no(self): f()\n", ""))
    assert names == {"A::test_a": "B::uno"}
    gone, new = ["t.py::A::test_a[1]#x", "t.py::A::test_a[2]"], ["t.py::B::uno[1]#x", "t.py::B::other[2]"]
    assert list(renamed_nodes(gone, new, names)) == [(gone[0], new[0])]


def test_a_change_that_only_adds_or_only_removes_says_nothing() -> None:
    uno = baseline("test_uno", 2e6)
    assert notes(uno, *THEN) == notes(THEN[1]) == notes(uno, THEN[1], ci=False) == []
    assert notes(uno, THEN[1], then=[]) == notes(uno, THEN[1], base="") == []
    assert notes(baseline("test_uno", 2e6, local=True), THEN[1]) == []


def test_a_line_that_was_pruned_first_is_found_at_the_merge_base() -> None:
    store: Any = SimpleNamespace(
        read=lambda device, path, revision="": lines(*THEN) if revision else lines(THEN[1]),
        read_all=lambda device: lines(THEN[1]),
    )
    report = run(case("test_uno", 2e6, None, Outcome.UNBASELINED), filtered=True)
    for base, twin in (("c0ffee", THEN[0]), ("", None)):
        (found,) = decisions(report, Request(new=True, base=base), store, lambda _: ())
        assert (found.change, found.twin) == (Change.NEW, twin)


def test_a_line_that_was_there_is_told_from_one_that_came_with_the_change() -> None:
    court = court_of(baseline("test_uno", 2e6), THEN[1])
    new, same = (report.measurement for report in REPORTS)
    assert (court.accepted.came_with(new), court.accepted.came_with(same)) == (True, False)
    assert not court_of(baseline("test_uno", 2e6), base="").accepted.came_with(new)
