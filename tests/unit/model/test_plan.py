from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_perfgate.core.judge.context import JudgeContext, JudgedMeasurement
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import CaseKey, Compare, Limit, Operator, parse_case_key
from pytest_perfgate.model.values import Dimension
from tests.unit.core.judge.bench import measured

SIGNS = st.text(alphabet="a[]# %:25D/µ", max_size=12)


@pytest.mark.parametrize(
    ("text", "node", "name"),
    [
        ("tests/test_a.py::test_x", "tests/test_a.py::test_x", ""),
        ("tests/test_a.py::test_x#bwd", "tests/test_a.py::test_x", "bwd"),
        ("tests/test_a.py::TestK::test_x[a#b]", "tests/test_a.py::TestK::test_x[a#b]", ""),
        ("tests/test_a.py::test_x[a/b c#d]#fwd", "tests/test_a.py::test_x[a/b c#d]", "fwd"),
        ("tests/test_ü.py::test_x[µ]", "tests/test_ü.py::test_x[µ]", ""),
        ("tests/test_a.py::test_x#bwd[fp16]", "tests/test_a.py::test_x", "bwd[fp16]"),
        ("tests/test_a.py::test_x#a#b]", "tests/test_a.py::test_x", "a#b]"),
        ("tests/test_a.py::test_x[a]#b]", "tests/test_a.py::test_x[a]#b]", ""),
        ("tests/test_a.py::test_x[a]b]#bwd[fp16%5D 50%25", "tests/test_a.py::test_x[a]b]", "bwd[fp16] 50%"),
        ("tests/test_a.py::test_x[a]#50%", "tests/test_a.py::test_x[a]", "50%"),
        ("c#/[1]/test_a.py::test_x#fwd", "c#/[1]/test_a.py::test_x", "fwd"),
    ],
)
def test_keys_survive_being_written(text: str, node: str, name: str) -> None:
    key = parse_case_key(text)
    assert (key.nodeid, key.name) == (node, name)
    assert str(key) == text
    assert key.path == text.split("::", maxsplit=1)[0]
    assert f"{key.path}::{key.test}" == text


def test_the_command_that_runs_a_test_again_names_no_call() -> None:
    key = CaseKey(nodeid="t.py::test_x[it's]", name="bwd")
    trial = JudgedMeasurement(
        measurement=measured(1.0, key=key), context=JudgeContext(), metrics=MetricSet(), problems=(), baseline=None,
        timing=None, in_groups=False, paired=None,
    )  # fmt: skip
    assert trial.rerun == "pytest 't.py::test_x[it'\"'\"'s]'"
    assert trial.name.endswith("#bwd'")


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault
@given(path=st.text(alphabet="a[]# %./µ", min_size=1, max_size=8), ids=st.none() | SIGNS, name=SIGNS)
def test_no_sign_of_an_id_or_a_name_is_taken_for_the_other(path: str, ids: str | None, name: str) -> None:
    key = CaseKey(nodeid=f"{path}::test_x" + ("" if ids is None else f"[{ids}]"), name=name)
    assert parse_case_key(str(key)) == key


@pytest.mark.parametrize(
    ("compare", "now", "then", "change"),
    [
        (Compare.RELATIVE, 110.0, 100.0, 0.1),
        (Compare.RELATIVE, -1100.0, -1000.0, -0.1),
        (Compare.RELATIVE, 0.0, 0.0, 0.0),
        (Compare.RELATIVE, 1.0, 0.0, float("inf")),
        (Compare.ABSOLUTE, 130.0, 128.0, 2.0),
        (Compare.ABSOLUTE, 0.1 + 0.2, 0.3, 0.0),
    ],
)
def test_the_change_of_a_figure(compare: Compare, now: float, then: float, change: float) -> None:
    limit = Limit(
        metric="registers", labels=(), operator=Operator.AT_MOST, bound=0.0, dimension=Dimension.COUNT, text="", compare=compare
    )  # fmt: skip
    assert limit.change(now, then) == pytest.approx(change)
