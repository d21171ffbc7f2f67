"""A change is judged by its own marks; in CI each limit that it loosens is named."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from pytest_perfgate.app.changed_tests import relaxed_limits
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.limits.merge import merge_limits
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.plan import Case, Effect, Plan, Policy
from pytest_perfgate.model.project import Base
from pytest_perfgate.model.verdict import SuiteNote

TEXT = "@pytest.mark.perfgate('slowdown <= {}%')\ndef test_x(perfgate): pass\n"


def asked(text: str, source: str = "marker") -> Case:
    limit = parse_limit(text, kinds=by_name(), source=source)
    return Case(nodeid="t.py::test_x[1]", limits=(limit,), plan=Plan())


def notes(
    now: str | None, *cases: Case, ci: bool = True, base: str = "c0ffee", then: str = TEXT.format(3)
) -> list[SuiteNote]:
    def touched(_revision: str, words: Sequence[str]) -> dict[str, tuple[str, str]] | None:
        found = any(word in text for word in words for text in (then, now or then))
        return None if now is None else {"t.py": (then, now)} if found else {}

    repository = SimpleNamespace(touched=touched)
    court: Any = SimpleNamespace(
        context=SimpleNamespace(policy=Policy(ci=ci)),
        accepted=SimpleNamespace(base=Base(commit=base)),
        tools=SimpleNamespace(repository=repository, kinds={}),
        merged=lambda _nodeid, layers: merge_limits(*layers),
    )
    return list(relaxed_limits(court, {case.nodeid: case for case in cases}))


def test_a_limit_that_the_change_loosens_is_named_in_ci() -> None:
    (note,) = notes(TEXT.format(30))
    assert (note.kind, note.effect) == ("limits", Effect.WARN)
    assert note.text == "1 limit or setting of tests changed since c0ffee; this run was judged by the new"
    assert note.names == ("t.py::test_x: slowdown <= 3% -> slowdown <= 30%",)
    assert notes(TEXT.format(1))[0].effect is Effect.PASS, "what tightens a limit is for the reader, and no warning"
    assert notes(TEXT.format(1).replace("')", "', rounds=1)"))[0].effect is Effect.WARN
    assert notes(TEXT.format(30), ci=False) == notes(TEXT.format(30), base="") == notes(TEXT.format("3.0")) == []


def test_where_git_does_not_answer_that_is_said() -> None:
    (note,) = notes(None)
    assert (note.effect, note.names) == (Effect.WARN, ())
    assert note.text.startswith("which limits of tests changed since c0ffee is not known")


def test_what_the_file_does_not_tell_the_run_does() -> None:
    """A class of another module, or a limit that is made: what the run was asked is what holds."""
    made = "@pytest.mark.perfgate(*made())\ndef test_x(perfgate): pass\n"
    for now in ("class TestK(Far): pass\n", made):
        assert notes(now, asked("slowdown <= 3%")) == []
        (note,) = notes(now, asked("slowdown <= 30%"))
        assert note.names == ("t.py::test_x: slowdown <= 3% -> slowdown <= 30%",)
    (note,) = notes(made, asked("slowdown <= 3%", "command line"))
    assert note.names == ("t.py::test_x: slowdown <= 3% -> not literal: *made()",)


def test_an_excuse_of_a_test_that_the_fixture_alone_gates_is_named() -> None:
    then = "import pytest\n\n\ndef test_x(perfgate): pass\n"
    now = then.replace("def test", "@pytest.mark.xfail\ndef test")
    assert notes(now, then=then)[0].names == ("t.py::test_x: xfail: unset -> always",)
    (note,) = notes(now.replace("xfail", "skip(reason='later')"), then=then)
    assert (note.effect, note.names) == (Effect.WARN, ("t.py::test_x: skip: unset -> reason='later'",))
