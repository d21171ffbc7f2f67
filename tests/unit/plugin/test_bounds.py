"""What two arms are asked about a call: its own limits count, and are known once it was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_perfgate.plugin.arms import Bounds
from tests.unit.app.test_gate import Lines, captured, case, court
from tests.unit.core.gate.bench import KEY, limit, measured


class Played:
    """A comparison as far as it is asked what its head measured."""

    def __init__(self, *calls: Any) -> None:
        self.calls, self.asked = calls, 0

    def results(self) -> dict[str, Any]:
        self.asked += 1
        return {KEY.nodeid: replace(self.calls[0], case=case(limit("slowdown <= 5%")), captures=(self._captures(),))}

    def _captures(self) -> tuple[Any, ...]:
        return tuple(call.captures[0][0] for call in self.calls)


def test_a_call_is_held_to_its_own_limit() -> None:
    tight = replace(KEY, name="tight")
    played: Any = Played(
        captured(measured(1e6)),
        captured(replace(measured(1e6), key=tight), limits=("slowdown <= 1%",)),
    )
    bounds = Bounds(court(Lines(None)), played)
    assert [bounds(key) for key in (KEY, tight, KEY)] == pytest.approx([0.05, 0.01, 0.05])
    assert played.asked == 1


def test_a_limit_that_does_not_read_leaves_those_of_the_test() -> None:
    bounds = Bounds(court(Lines(None)), Played(captured(measured(1e6), limits=("slowdown =< 1%",))))  # type: ignore[arg-type]
    assert bounds(KEY) == pytest.approx(0.05)
