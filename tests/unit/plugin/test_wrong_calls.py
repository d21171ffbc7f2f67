"""Calls of the fixture whose arguments do not fit say what is wrong and how the call looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Case, Plan
from pytest_perfgate.plugin.benches import Bench
from pytest_perfgate.plugin.fixture import Perfgate

WRONG: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "nothing": (lambda gate: gate(), "perfgate(): missing a required argument: 'fn'", "perfgate(lambda: multiply(a, b))"),
    "a keyword": (lambda gate: gate(fn=int), "perfgate(): ", "perfgate(lambda: multiply(a, b))"),
    "a number": (lambda gate: gate(499500), "needs a callable, got 499500", "perfgate(lambda: multiply(a, b))"),
    "limits": (lambda gate: gate(int, limits=5), "a limit must be a text, got 5", "time <= 3 ms"),
    "region": (lambda gate: gate.region("a", foo=1), "perfgate.region(): got an unexpected keyword", "with perfgate.region("),
    "record nothing": (lambda gate: gate.record(), "perfgate.record(): missing", "perfgate.record([12.5, 12.4]"),
    "record units": (lambda gate: gate.record([1.0], units="s"), "keyword argument 'units'", "perfgate.record(["),
    "record a number": (lambda gate: gate.record(12), "record() cannot take 12", "perfgate.record(["),
    "read nothing": (lambda gate: gate.read(), "perfgate.read(): missing", 'perfgate.read("trace.json")'),
    "read a number": (lambda gate: gate.read(5), "read() cannot take 5", 'perfgate.read("trace.json")'),
    "same": (lambda gate: gate.same(), "perfgate.same(): missing a required argument: 'as_'", "check=perfgate.same(as_="),
    "note": (lambda gate: gate.note("a"), "perfgate.note(): missing a required argument: 'value'", "perfgate.note("),
    "attach": (lambda gate: gate.attach("a"), "perfgate.attach(): missing a required argument", "perfgate.attach("),
}  # fmt: skip


@pytest.mark.parametrize("form", WRONG)
def test_a_wrong_call_says_what_a_right_one_is(form: str) -> None:
    call, message, fix = WRONG[form]
    case = Case(nodeid="t.py::test_a", limits=(), plan=Plan())
    with pytest.raises(PerfgateError) as caught:
        call(Perfgate(case, Bench(case)))
    assert caught.value.code.name == "call-wrong"
    assert message in caught.value.what
    assert fix in caught.value.fix


def test_a_second_measurement_without_a_name_says_where_it_is_and_what_to_write() -> None:
    case = Case(nodeid="tests/unit/plugin/test_wrong_calls.py::test_a", limits=(), plan=Plan())
    gate = Perfgate(case, Bench(case))
    gate._key("")
    with pytest.raises(PerfgateError, match="two measurements without a name in one test") as caught:
        gate._key("")
    assert caught.value.place.startswith("tests/unit/plugin/test_wrong_calls.py:")
    assert 'perfgate(fn, name="' in caught.value.fix


def test_a_fault_of_the_call_itself_stays_its_own() -> None:
    case = Case(nodeid="t.py::test_a", limits=(), plan=Plan())

    class Raising(Bench):
        def take(self, call: Any) -> Any:
            return call.fn()

    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        Perfgate(case, Raising(case))(lambda a: a)
