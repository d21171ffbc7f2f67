"""The first word of a line in the colour of what it says, where pytest colours its own."""

from __future__ import annotations

from typing import Any

from pytest_perfgate.core.render.own_gate import HEADING
from pytest_perfgate.model.limit import Outcome

_RED = frozenset({Outcome.REGRESSED, Outcome.BROKEN, Outcome.INVALID})
_GREEN = frozenset({Outcome.PASSED, Outcome.ACCEPTED, Outcome.IMPROVED})
_PLAIN = frozenset({Outcome.NOT_APPLICABLE})
_COLOURS = {
    **{one.value: "red" if one in _RED else "green" if one in _GREEN else "yellow" for one in set(Outcome) - _PLAIN},
    "fail": "red",
    "pass": "green",
    "warn": "yellow",
    "next": "bold",
    HEADING: "yellow",
}


def write_painted(out: Any, line: str) -> None:
    """A line of the terminal's section."""
    word = line.partition("  ")[0]
    colour = _COLOURS.get(word.lower())
    if colour:
        out.write(word, **{colour: True})
    out.write_line(line[len(word) :] if colour else line)
