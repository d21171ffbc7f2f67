"""What is shown while children measure: where it stands, and never more than there is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.model.children import Finished
from pytest_perfgate.model.plan import Case, Plan
from pytest_perfgate.plugin.progress import Progress

CASES = [Case(nodeid=f"t.py::test_{at}", limits=(), plan=Plan(rounds=rounds)) for at, rounds in enumerate((3, 3, 1))]


class Terminal:
    """A reporter that keeps what it is told."""

    def __init__(self, *, live: bool) -> None:
        self.isatty, self.lines = live, []
        self._tw = SimpleNamespace(fullwidth=80)

    def ensure_newline(self) -> None:
        """Nothing stands on the line."""

    def write_line(self, text: str) -> None:
        self.lines.append(text)

    def rewrite(self, text: str, **_: Any) -> None:
        self.lines.append(text)


@pytest.mark.parametrize("live", [True, False])
def test_rounds_and_cases_are_counted_against_what_there_is(live: bool) -> None:
    terminal = Terminal(live=live)
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda name: terminal))
    progress = Progress(config, "3 cases", CASES)
    for number, at, outcome in (
        (0, 0, "passed"),
        (0, 1, "failed"),
        (0, 2, "passed"),
        (1, 0, "passed"),
        (2, 0, "passed"),
    ):
        nodeid = CASES[at].nodeid
        progress(number, CASES[at], Finished(nodeid=nodeid, outcome=outcome))
    said = [
        "perfgate: 3 cases",
        "perfgate: round 1 of 3, case 1 of 3: t.py::test_0",
        "perfgate: round 1 of 3, case 2 of 3: t.py::test_1 (failed)",
        *(["perfgate: round 1 of 3, case 3 of 3: t.py::test_2"] if live else []),
        "perfgate: round 2 of 3, case 1 of 1: t.py::test_0",
        "perfgate: round 3 of 3, case 1 of 1: t.py::test_0",
    ]
    assert terminal.lines == said
