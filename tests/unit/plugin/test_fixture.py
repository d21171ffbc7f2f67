"""Tests of plugin/fixture."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Absent, Metric, MetricSet
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.values import Dimension, Work
from pytest_perfgate.plugin.benches import Bench
from pytest_perfgate.plugin.calls import Brought, MeasuredCall, View
from pytest_perfgate.plugin.fixture import Perfgate, error_text, note_text, unknown_arguments

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
def test_it_is_refused_and_the_next_call_is_not(inner: Callable[[Perfgate], object]) -> None:
    gate = Perfgate(CASE, Bench(CASE))
    with pytest.raises(PerfgateError, match="called inside a measured call") as caught:
        gate(lambda: inner(gate))
    assert "region()" in caught.value.fix
    assert gate(int, name="inner").result == 0


def test_a_region_of_a_measured_call_is_a_part_of_it() -> None:
    gate, entered = Perfgate(CASE, Bench(CASE)), []

    def call() -> None:
        with gate.region("part"):
            entered.append(1)

    gate(call)
    assert entered == [1]


class Taking(Bench):
    """Keeps what a test took itself."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.taken: list[Brought] = []

    def bring(self, brought: Brought) -> None:
        super().bring(brought)
        self.taken.append(brought)


def test_each_entry_of_a_region_is_timed_by_the_wall_and_by_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    wall, thread = iter([100, 105, 200, 207]), iter([10, 12, 20, 23])
    clock = SimpleNamespace(wall=wall.__next__, thread=thread.__next__)
    monkeypatch.setattr("pytest_perfgate.plugin.fixture.HOST_CLOCK", clock)
    bench = Taking(CASE)
    gate = Perfgate(CASE, bench)
    for _ in range(2):
        with gate.region("part", limits=["time <= 1s"]):
            pass
    (brought,) = bench.taken
    assert (brought.durations, brought.cpu, brought.limits) == ([5.0, 7.0], [2.0, 3.0], ("time <= 1s",))


@pytest.mark.parametrize(
    ("first", "again", "refused"),
    [
        ({"limits": ["time <= 1s"]}, {}, False),
        ({"limits": ["time <= 1s"]}, {"limits": ["time <= 1s"]}, False),
        ({"limits": ["time <= 1s"]}, {"limits": ["time <= 2s"]}, True),
        ({}, {"limits": ["time <= 1s"]}, True),
        ({"work": Work(flops=1.0)}, {"work": Work(flops=1.0)}, False),
        ({"work": Work(flops=1.0)}, {"work": Work(flops=2.0)}, True),
    ],
)
def test_a_region_keeps_the_limits_and_the_work_of_its_first_entry(first: Any, again: Any, refused: bool) -> None:
    gate = Perfgate(CASE, Bench(CASE))
    with gate.region("part", **first):
        pass
    with pytest.raises(PerfgateError, match="is entered again with") if refused else nullcontext():
        with gate.region("part", **again):
            pass


@pytest.mark.parametrize(("calls", "count"), [(1, 1), (8, 8), (0, None), (-1, None), (1.0, None), ("2", None)])
def test_one_call_stands_for_a_whole_number_of_calls(calls: Any, count: int | None) -> None:
    taken: list[MeasuredCall] = []

    class Calls(Bench):
        def take(self, call: MeasuredCall) -> View:
            taken.append(call)
            return super().take(call)

    gate = Perfgate(CASE, Calls(CASE))
    if count is None:
        with pytest.raises(PerfgateError, match="is not a whole number from 1") as error:
            gate(int, calls=calls)
        assert error.value.code.name == "call-wrong"
    else:
        gate(int, calls=calls)
    assert [call.calls for call in taken] == ([] if count is None else [count])


def test_one_thread_measures_at_a_time() -> None:
    """Both would be slowed, and answer each other's messages in a child."""
    bench, faults = Bench(CASE), []
    gate = Perfgate(CASE, bench)

    def beside() -> None:
        with pytest.raises(PerfgateError, match="while another thread was in a measured call") as caught:
            gate(int, name="beside")
        faults.append(caught.value.code.name)

    def call() -> None:
        thread = Thread(target=beside)
        thread.start()
        thread.join()

    gate(call)
    assert faults == ["call-wrong"]
    assert [key.name for key in bench.raised] == ["beside"]
    thread = Thread(target=lambda: faults.append(gate(int, name="after").result))
    thread.start()
    thread.join()
    assert faults == ["call-wrong", 0]


class Mute(RuntimeError):
    def __str__(self) -> str:
        raise TypeError


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (ValueError("odd"), "ValueError: odd"),
        (ValueError("\n odd \nand more"), "ValueError: odd"),
        (KeyError(), "KeyError"),
        (Mute(), "Mute"),
        (OSError("x" * 300), f"OSError: {'x' * 200}…"),
        (
            PerfgateError("call-wrong", "calls=0 is not a whole number from 1", fix="calls=10"),
            "PerfgateError: calls=0 is not a whole number",
        ),
    ],
)
def test_an_error_is_told_in_one_line(fault: Exception, message: str) -> None:
    assert error_text(fault).startswith(message)
    assert "\n" not in error_text(fault)


TIMED = MetricSet(
    metrics=(Metric(name="time", value=1e6, dimension=Dimension.TIME),),
    absent=(Absent(name="tflops", why="no work= was given", fix="pass work=work.gemm(...)"),),
)


def test_keywords_of_the_measured_function_go_into_a_call_of_their_own() -> None:
    fault = unknown_arguments(sorted, {"reverse": True})
    assert fault.what == "perfgate() does not take reverse="
    assert "perfgate(lambda: sorted(..., reverse=...))" in fault.fix
    assert unknown_arguments(lambda: 0, ["setpu"]).fix.startswith("did you mean setup=? Otherwise measure a call")
    assert unknown_arguments(lambda: 0, ["cache"]).fix.startswith("cache= stands on the marker. Otherwise measure")
    assert "lambda: f(..., key=...)" in unknown_arguments(lambda key: key, ["key"]).fix


def test_a_note_is_what_stays_the_same_in_each_process() -> None:
    assert note_text("tile", 64) == "64"
    with pytest.raises(PerfgateError, match="which names an address") as caught:
        note_text("tile", object())
    assert caught.value.fix.endswith("perfgate.note('tile', \"64x128\")")


@pytest.mark.parametrize(
    ("name", "why", "fix"),
    [
        ("tim", "no metric has that name", "did you mean 'time'? this call has time"),
        ("qqq", "no metric has that name", "this call has time"),
        ("tflops", "no work= was given", "pass work=work.gemm(...)"),
        ("overlap", "no instrument of this call produces it", "this call has time"),
    ],
)
def test_a_name_that_a_result_does_not_have_says_which_it_has(name: str, why: str, fix: str) -> None:
    view = View(CaseKey(nodeid="a.py::t"), metrics=lambda _: TIMED)
    assert view.time == 1e6
    with pytest.raises(PerfgateError) as caught:
        getattr(view, name)
    assert (caught.value.why, caught.value.fix) == (why, fix)
    with pytest.raises(PerfgateError, match="was not measured"):
        View(CaseKey(nodeid="a.py::t"), metrics=lambda _: MetricSet()).time
    with pytest.raises(AttributeError):
        view._own
