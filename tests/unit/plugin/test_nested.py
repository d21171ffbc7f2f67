"""A call inside a measured call is made as often as that is: it is told so, and not that its name stands twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Case, Plan
from pytest_perfgate.plugin.benches import Bench
from pytest_perfgate.plugin.fixture import Gate

CASE = Case(nodeid="t.py::test_a", limits=(), plan=Plan())


@pytest.mark.parametrize(
    "inner",
    [
        lambda gate: gate(int, name="inner"),
        lambda gate: gate.record([1.0], name="inner"),
        lambda gate: gate.read(Path("results.json"), name="inner"),
    ],
    ids=["call", "record", "read"],
)
def test_it_is_refused_and_the_next_call_is_not(inner: Callable[[Gate], object]) -> None:
    gate = Gate(CASE, Bench(CASE))
    with pytest.raises(PerfgateError, match="called within a call that is measured") as said:
        gate(lambda: inner(gate))
    assert "region()" in said.value.mend
    assert gate(int, name="inner").result == 0


def test_a_region_of_a_measured_call_is_a_part_of_it() -> None:
    gate, entered = Gate(CASE, Bench(CASE)), []

    def call() -> None:
        with gate.region("part"):
            entered.append(1)

    gate(call)
    assert entered == [1]


def test_another_thread_measures_for_itself() -> None:
    gate, seen = Gate(CASE, Bench(CASE)), []

    def call() -> None:
        beside = Thread(target=lambda: seen.append(gate(int, name="beside").result))
        beside.start()
        beside.join()

    gate(call)
    assert seen == [0]
