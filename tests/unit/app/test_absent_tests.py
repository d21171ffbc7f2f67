"""Against a revision, a test that it has and the change has not is listed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pytest_perfgate.app.changed_project import absent_tests
from pytest_perfgate.core.changes.tests import Reach
from pytest_perfgate.core.judge.suite import Suite
from pytest_perfgate.model.plan import Effect
from pytest_perfgate.model.verdict import SuiteNote
from tests.unit.core.gate.bench import CONTEXT

OLD = """
def made(perfgate): return 1
def test_a(perfgate): perfgate(sum)
def test_b(perfgate): perfgate(len)
def test_plain(): pass
"""
Texts = dict[str, tuple[str | None, str | None]]


def notes(
    texts: Texts, hiding: Texts | None = None, every: Texts | None = None, *, revision: str = "c0ffee", **given: Any
) -> list[SuiteNote]:
    answers = {"perfgate": texts, "collect_ignore": hiding or {}}
    repository = SimpleNamespace(
        touched=lambda at, words: answers[words[0]] if at == revision else every,
    )
    court: Any = SimpleNamespace(revision=revision, tools=SimpleNamespace(repository=repository))
    suite = Suite(**{"context": CONTEXT, "collected": frozenset({"t.py::test_a[1]"}), **given})
    return list(absent_tests(court, suite))


def test_a_test_of_the_revision_alone_is_listed_with_what_became_of_it() -> None:
    (note,) = notes({"t.py": (OLD, OLD), "gone.py": (OLD, None), "n.py": (OLD, OLD.replace("test_b", "test_c"))})
    assert (note.kind, note.effect) == ("absent", Effect.WARN)
    assert note.text == "5 gated tests of c0ffee alone, not compared"
    assert note.names == (
        "gone.py::test_a: gone",
        "gone.py::test_b: gone",
        "n.py::test_a: here, and not collected",
        "n.py::test_b: now test_c",
        "t.py::test_b: here, and not collected",
    )


def test_what_a_conftest_of_the_change_hides_is_listed_though_its_file_is_untouched() -> None:
    every: Texts = {"t.py": (None, OLD)}
    (note,) = notes({}, {"conftest.py": (None, "collect_ignore = ['t.py']")}, every)
    assert note.names == ("t.py::test_b: here, and not collected",)
    assert notes({}, {"pk/other.py": (None, "collect_ignore")}, every) == notes({}, {}, every) == []


def test_only_of_a_whole_run_against_a_revision_and_where_it_looked() -> None:
    texts: Texts = {"t.py": (OLD, None)}
    assert notes(texts) != []
    assert notes(texts, revision="") == notes(texts, complete=False) == []
    assert notes(texts, reach=Reach(unknown="--lf")) == notes(texts, reach=Reach(beneath=("other",))) == []
    assert notes(texts, deselected=frozenset({"t.py::test_b"})) == []
