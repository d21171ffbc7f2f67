"""What a test hands over wrongly is told with the line that did, and in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Case, Plan
from pytest_perfgate.plugin.benches import Bench
from pytest_perfgate.plugin.collect import Collector
from pytest_perfgate.plugin.fixture import Gate
from tests.unit.plugin.test_spelling import OPTIONS

PATH = Path(__file__).relative_to(Path(__file__).parents[3]).as_posix()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda gate: gate(3), "got 3"),
        (lambda gate: gate(int, calls=0), "calls=0 is not a whole number"),
        (lambda gate: gate(int, n=3), "does not take n="),
        (lambda gate: gate(int, setup=3), "setup= must be a callable, got 3"),
        (lambda gate: gate(int, check="x"), "check= must be a callable, got 'x'"),
        (lambda gate: gate(int, work=3), "no work that a call can do"),
        (lambda gate: gate(lambda: map(int, "1")), "an iterator that was never run"),
        (lambda gate: gate.record([1.0], unit="x"), "unit 'x'"),
    ],
)
def test_a_wrong_call_names_its_line(call: Callable[[Gate], Any], said: str) -> None:
    case = Case(nodeid=f"{PATH}::test_a", limits=(), plan=Plan(), path=PATH)
    with pytest.raises(PerfgateError, match=said) as caught:
        call(Gate(case, Bench(case)))
    assert caught.value.place == f"{PATH}:{call.__code__.co_firstlineno}"
    assert str(caught.value).startswith(caught.value.place)


@pytest.mark.parametrize(("option", "place"), [(True, "--perfgate-capture"), (False, "p: tool.perfgate.capture")])
def test_a_capture_that_nobody_takes_is_told_once_where_it_was_asked_for(option: bool, place: str) -> None:
    from pytest_perfgate.core.metric_kinds import by_name
    from pytest_perfgate.model.project import Config

    options: Any = type(OPTIONS)(**{**vars(OPTIONS), "perfgate_capture": ["ncuu"] if option else []})
    with pytest.raises(PerfgateError, match="there is no capture 'ncuu'") as caught:
        Collector(Config(capture=() if option else ("ncuu",), source="p"), options, by_name())
    assert (caught.value.place, caught.value.mend) == (place, "did you mean 'ncu'?")
