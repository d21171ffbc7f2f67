from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.policy import parse_policy
from pytest_perfgate.model.plan import Effect
from pytest_perfgate.model.project import Config, ConfigPattern
from pytest_perfgate.plugin.selection import pattern_notes, skipped_files, unread_notes

TABLES = (
    ConfigPattern(pattern="*::test_gemm[[]*", place="tool.perfgate.tests[0]"),
    ConfigPattern(pattern="*::test_gemm[*", place="tool.perfgate.tests[1]"),
    ConfigPattern(pattern="tests/t.py::test_sofmax", place="tool.perfgate.tests[2]"),
)


def session(*, ci: bool = True, complete: bool = True, skipped: tuple[Any, ...] = ()) -> Any:
    reporter = SimpleNamespace(stats={"skipped": list(skipped)})
    config = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda name: reporter), stash=pytest.Stash())
    return SimpleNamespace(
        complete=complete,
        cases={"tests/t.py::test_gemm[4-fp16]": None},
        faults={"tests/t.py::test_softmax": None},
        settings=SimpleNamespace(project=Config(tests=TABLES), pytest=config),
        gate_judge=SimpleNamespace(context=JudgeContext(policy=parse_policy((), ci=ci, place=""))),
    )


@pytest.mark.parametrize(("ci", "effect"), [(True, Effect.FAIL), (False, Effect.WARN)])
def test_a_table_for_no_test_is_told_of_a_whole_run_only(ci: bool, effect: Effect) -> None:
    (note,) = pattern_notes(session(ci=ci), filtered=False)
    assert note.effect is effect
    assert [name.partition(":")[0] for name in note.names] == ["tool.perfgate.tests[0]", "tool.perfgate.tests[2]"]
    assert "tests/t.py::test_softmax" in note.names[1]
    assert pattern_notes(session(ci=ci), filtered=True) == ()
    assert pattern_notes(session(ci=ci, complete=False), filtered=False) == ()


def test_a_file_that_skipped_itself_may_hide_the_tests() -> None:
    hidden = pytest.CollectReport(nodeid="tests/gpu.py", outcome="skipped", longrepr=None, result=None)
    (note,) = pattern_notes(session(skipped=(hidden,)), filtered=False)
    assert note.effect is Effect.WARN
    assert "tests/gpu.py skipped" in note.text


def test_settings_below_the_root_of_the_run_are_named(tmp_path: Path) -> None:
    """A monorepo whose packages have settings of their own, run from its top."""
    paths = ("libs/my dsp/tests/t.py", "libs/plain/t.py", "t.py")
    for folder in ("libs/my dsp/tests", "libs/plain"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.perfgate]\n")
    (tmp_path / "libs/plain/pyproject.toml").write_text("[project]\nname = 'about [tool.perfgate]'\n")
    cases = {path: SimpleNamespace(path=path) for path in paths}
    state: Any = SimpleNamespace(cases=cases, settings=SimpleNamespace(pytest=SimpleNamespace(rootpath=tmp_path)))
    assert list(unread_notes(state)) == []
    own = tmp_path / "libs/my dsp/pyproject.toml"
    own.write_text("# [tool.perfgate]\n[tool.perfgate-report]\ncolour = 1\n")
    assert list(unread_notes(state)) == [], "of another tool"
    own.write_text("[[tool.perfgate.tests]]\npattern = '*'\n")
    assert len(list(unread_notes(state))) == 1
    own.write_text("[tool.perfgate.policy]\nmissing = 'warn'\n")
    (note,) = unread_notes(state)
    assert (note.names, note.effect) == (("libs/my dsp/pyproject.toml",), Effect.WARN)
    assert note.text.endswith("cd 'libs/my dsp' && pytest")


def test_a_file_that_skipped_itself_says_why() -> None:
    why = ("tests/gpu.py", 3, "Skipped: could not import 'cupy'")
    hidden = pytest.CollectReport(nodeid="tests/gpu.py", outcome="skipped", longrepr=why, result=None)
    assert skipped_files(session(skipped=(hidden,)).settings.pytest) == {"tests/gpu.py": "could not import 'cupy'"}
    assert skipped_files(SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda _: None))) == {}  # type: ignore[arg-type]
