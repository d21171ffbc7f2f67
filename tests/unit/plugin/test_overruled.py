"""In CI no hook of the project ends a run with 0 over verdicts that failed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.model.plan import Effect, Outcome
from pytest_perfgate.model.verdict import SuiteNote
from pytest_perfgate.plugin.ending import stand_by
from pytest_perfgate.plugin.options import STARTED_WITH
from tests.reports import case

SLOWER = case("test_a", 2e6, 1e6, Outcome.REGRESSED)
NOTE = SuiteNote(kind="dropped", effect=Effect.FAIL, text="gone")


def ended(*, exitstatus: int = 0, ci: str = "true", **given: Any) -> tuple[int, str]:
    """The exit code after all, and what was said."""
    lines: list[str] = []
    plugins = {
        "session": SimpleNamespace(exitstatus=exitstatus),
        "terminalreporter": SimpleNamespace(write_line=lambda text, **_: lines.append(text)),
    }
    config: Any = SimpleNamespace(
        stash={STARTED_WITH: {"CI": ci}}, pluginmanager=SimpleNamespace(get_plugin=plugins.get)
    )
    known = {"judged": {"test_a"}, "reports": {"test_a": (SLOWER,)}, "notes": (), "excused": []}
    docket: Any = SimpleNamespace(**{**known, **given})
    stand_by(docket, config)
    return int(plugins["session"].exitstatus), "".join(lines)


def test_a_failed_verdict_outlasts_who_ends_the_run_with_0() -> None:
    code, said = ended()
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "1 verdict of this run failed, and a conftest or a plugin ended it with 0  [run-overruled]" in said
    assert ended(reports={}, notes=(NOTE,))[0] == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    "given",
    [
        {"ci": ""},
        {"exitstatus": 2},
        {"judged": set()},
        {"reports": {"test_a": (case("test_a", 1e6, 1e6),)}},
        {"excused": [f"{SLOWER.worst.value}: {SLOWER.key}"]},
    ],
    ids=lambda given: next(iter(given)),
)
def test_what_failed_nothing_or_failed_already_is_left_as_it_is(given: dict[str, Any]) -> None:
    assert ended(**given) == (given.get("exitstatus", 0), "")
