"""Tests of plugin/fixture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Absent, Metric, MetricSet
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.plugin.benches import Bench
from pytest_perfgate.plugin.calls import View
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
