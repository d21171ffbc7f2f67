"""What a test says to the fixture in words that it cannot take."""

from __future__ import annotations

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Absent, Metric, MetricSet
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.plugin.calls import View
from pytest_perfgate.plugin.fixture import note_text, unknown_arguments

TIMED = MetricSet(
    metrics=(Metric(name="time", value=1e6, dimension=Dimension.TIME),),
    absent=(Absent(name="tflops", why="no work= was given", mend="pass work=work.gemm(...)"),),
)


def test_keywords_of_the_measured_function_go_into_a_call_of_their_own() -> None:
    fault = unknown_arguments(sorted, {"reverse": True})
    assert fault.what == "perfgate() does not take reverse="
    assert fault.mend == "measure a call that has them: perfgate(lambda: sorted(..., reverse=...))"
    assert unknown_arguments(lambda: 0, ["setpu"]).mend.startswith("did you mean setup=? Otherwise measure a call")
    assert "lambda: f(..., key=...)" in unknown_arguments(lambda key: key, ["key"]).mend


def test_a_note_is_what_stays_the_same_in_each_process() -> None:
    assert note_text("tile", 64) == "64"
    with pytest.raises(PerfgateError, match="which names an address") as caught:
        note_text("tile", object())
    assert caught.value.mend.endswith("perfgate.note('tile', \"64x128\")")


@pytest.mark.parametrize(
    ("name", "why", "mend"),
    [
        ("tim", "no metric has that name", "did you mean 'time'? this call has time"),
        ("qqq", "no metric has that name", "this call has time"),
        ("tflops", "no work= was given", "pass work=work.gemm(...)"),
        ("overlap", "nothing that measured this call produces it", "this call has time"),
    ],
)
def test_a_name_that_a_result_does_not_have_says_which_it_has(name: str, why: str, mend: str) -> None:
    view = View(CaseKey(nodeid="a.py::t"), metrics=lambda _: TIMED)
    assert view.time == 1e6
    with pytest.raises(PerfgateError) as caught:
        getattr(view, name)
    assert (caught.value.why, caught.value.mend) == (why, mend)
    with pytest.raises(PerfgateError, match="was not measured"):
        View(CaseKey(nodeid="a.py::t"), metrics=lambda _: MetricSet()).time
    with pytest.raises(AttributeError):
        view._own
