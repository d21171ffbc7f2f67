"""What is shown while children measure: where it stands, and never more than there is."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest._io import TerminalWriter

from pytest_perfgate.model.plan import Case, Plan
from pytest_perfgate.model.protocol import Finished
from pytest_perfgate.plugin.reporting import Progress, in_columns

CASES = [Case(nodeid=f"t.py::test_{at}", limits=(), plan=Plan(rounds=rounds)) for at, rounds in enumerate((3, 3, 1))]


class Terminal:
    """A reporter that keeps what it is told."""

    def __init__(self, *, live: bool) -> None:
        self.isatty, self.lines = live, []
        self.file = io.StringIO()
        self._tw = TerminalWriter(self.file)
        self._tw.fullwidth = 50

    def ensure_newline(self) -> None:
        """Nothing stands on the line."""

    def write_line(self, text: str) -> None:
        self.lines.append(text)
        self._tw.line(text)


def screen(written: str) -> list[str]:
    """What stands on a terminal when this has been written to it."""
    rows: list[list[str]] = [[]]
    at = 0
    for letter in written:
        if letter in "\r\n":
            at = 0
            rows += [[]] if letter == "\n" else []
        else:
            rows[-1][at : at + 1] = letter
            at += 1
    return ["".join(row).rstrip() for row in rows]


def progress_on(terminal: Terminal) -> Progress:
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda name: terminal))
    return Progress(config, "3 cases", CASES)


@pytest.mark.parametrize("live", [True, False])
def test_rounds_and_cases_are_counted_against_what_there_is(live: bool) -> None:
    terminal = Terminal(live=live)
    progress = progress_on(terminal)
    shown = []
    for number, at, outcome in (
        (0, 0, "passed"),
        (0, 1, "failed"),
        (0, 2, "passed"),
        (1, 0, "passed"),
        (2, 0, "passed"),
    ):
        nodeid = CASES[at].nodeid
        progress(number, CASES[at], Finished(nodeid=nodeid, outcome=outcome))
        shown.append(screen(terminal.file.getvalue())[-1])
    said = [
        "perfgate: round 1 of 3, case 1 of 3: t.py::test_0",
        "perfgate: round 1 of 3, case 2 of 3: t.py::test_1 (failed)",
        "perfgate: round 1 of 3, case 3 of 3: t.py::test_2",
        "perfgate: round 2 of 3, case 1 of 1: t.py::test_0",
        "perfgate: round 3 of 3, case 1 of 1: t.py::test_0",
    ]
    assert terminal.lines == ["perfgate: 3 cases", *([] if live else said[:2] + said[3:])]
    assert not live or shown == [text[:49] for text in said]


def test_what_follows_a_live_line_stands_on_a_clean_line_of_its_own() -> None:
    """pytest's first dot stood in the last column, and its percentage on a line of its own."""
    terminal = Terminal(live=True)
    progress = progress_on(terminal)
    progress(0, CASES[0], Finished(nodeid=CASES[0].nodeid, outcome="passed"))
    progress.tell("10 fresh rounds each")
    progress(1, CASES[0], Finished(nodeid=CASES[0].nodeid, outcome="passed"))
    progress.close()
    assert terminal._tw.width_of_current_line == 0
    terminal._tw.write("...")
    assert screen(terminal.file.getvalue()) == ["perfgate: 3 cases", "perfgate: 10 fresh rounds each", "..."]


@pytest.mark.parametrize("live", [True, False])
def test_rounds_of_two_arms_are_shown_as_they_end(live: bool) -> None:
    """They take the longest of all, and nothing was said for half a minute."""
    terminal = Terminal(live=live)
    progress = progress_on(terminal)
    for at in (1, 2):
        progress.met(f"round 3 of 10, case {at} of 2", at, f"t.py::test_{at}")
    last = screen(terminal.file.getvalue())[-1 if live else -2]
    assert last == f"perfgate: round 3 of 10, case {1 + live} of 2: t.py::test_{1 + live}"[: 49 if live else None]


@pytest.mark.parametrize(("text", "shown"), [("核心", "核 "), ("abcd", "abc"), ("e\u0301", "e\u0301  ")])
def test_wide_letters_take_their_columns(text: str, shown: str) -> None:
    assert in_columns(text, 3) == shown
