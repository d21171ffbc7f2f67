"""In CI a test that its new mark deselected is named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pytest_perfgate.app.changed_tests import newly_marked
from pytest_perfgate.model.plan import Effect, Policy
from pytest_perfgate.model.project import Base
from pytest_perfgate.model.verdict import SuiteNote
from tests.unit.core.gate.bench import KEY, accepted

OLD = "def test_gemm(perfgate):\n    perfgate(pk.gemm)\n"
NEW = f"@pytest.mark.nightly\n{OLD}"


def notes(then: str | None, now: str | None, *, ci: bool = True, left: str = KEY.nodeid) -> list[SuiteNote]:
    repository = SimpleNamespace(touched=lambda _revision, _words: {KEY.path: (then, now)})
    court: Any = SimpleNamespace(
        context=SimpleNamespace(policy=Policy(ci=ci)),
        accepted=SimpleNamespace(base=Base(commit="c0ffee")),
        tools=SimpleNamespace(repository=repository),
    )
    suite: Any = SimpleNamespace(baselines=[accepted(1e6)], deselected=frozenset({left}))
    return list(newly_marked(court, suite))


def test_a_deselected_test_whose_marks_the_change_edits_is_named_in_ci() -> None:
    (note,) = notes(OLD, NEW)
    assert (note.kind, note.effect, note.names) == ("newly marked", Effect.WARN, ("tests/bench.py::test_gemm",))
    assert note.text == "1 accepted test deselected, and their marks are edited since c0ffee"
    assert notes(OLD, OLD) == notes(None, NEW) == notes(OLD, NEW, ci=False) == notes(OLD, NEW, left="other") == []
