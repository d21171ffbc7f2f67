"""What is shown while the children measure: a live line on a terminal, a line a round elsewhere."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from pytest_perfgate.core.render.text import display_width
from pytest_perfgate.plugin.columns import columns, folded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_perfgate.model.children import Finished
    from pytest_perfgate.model.plan import Case


def say_amid(config: pytest.Config, text: str) -> None:
    """A line in the middle of a test, whose output pytest captures."""
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        Progress(config, text).close()


class Progress:
    """Called for each test that a child has finished."""

    def __init__(self, config: pytest.Config, headline: str, cases: Sequence[Case] = ()) -> None:
        self._out: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._live = bool(self._out and self._out.isatty)
        self._counts: dict[int, int] = {}
        self._rounds = {case.nodeid: case.plan.rounds for case in cases}
        self._width = columns(config)
        self._say(f"perfgate: {headline}")

    def __call__(self, number: int, case: Case, finished: Finished) -> None:
        self._counts[number] = self._counts.get(number, 0) + 1
        mark = "" if finished.outcome == "passed" else f" ({finished.outcome})"
        if mark:
            self._rounds[case.nodeid] = number + 1  # its last
        text = f"perfgate: {self._at(number)}: {case.nodeid}{mark}"
        if self._live:
            self._draw(text)
        elif mark or self._counts[number] == 1:
            self._say(text)

    def _at(self, number: int) -> str:
        """``round 1 of 3, case 2 of 8``."""
        cases = sum(rounds > number for rounds in self._rounds.values())
        return f"round {number + 1} of {max(self._rounds.values())}, case {self._counts[number]} of {cases}"

    def met(self, place: str, number: int, nodeid: str) -> None:
        """Both arms went through a test; elsewhere than on a terminal the first of each round is a line."""
        text = f"perfgate: {place}: {nodeid}"
        if self._live:
            self._draw(text)
        elif number == 1:
            self._say(text)

    def tell(self, text: str) -> None:
        """A line of its own."""
        self.close()
        self._say(f"perfgate: {text}")

    def close(self) -> None:
        if self._live:
            self._draw("")

    def _draw(self, text: str) -> None:
        """On the line that stands, and back to its start: pytest writes its dots there, and counts only its own."""
        writer = self._out._tw  # noqa: SLF001 - as pytest's own plugins do
        before = writer._current_line  # noqa: SLF001
        writer.write(f"\r{in_columns(text, writer.fullwidth - 1)}\r", flush=True)
        writer._current_line = before  # noqa: SLF001

    def _say(self, text: str) -> None:
        if self._out is not None:
            self._out.ensure_newline()
            for line in folded(text, self._width):
                self._out.write_line(line)


def in_columns(text: str, width: int) -> str:
    """As much of the text as so many columns hold, filled up with blanks."""
    while display_width(text) > width:
        text = text[:-1]
    return text + " " * (width - display_width(text))
