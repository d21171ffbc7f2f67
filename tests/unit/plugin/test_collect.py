"""The order of a test's marks: pytest has those of a parameter after those of its function."""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pytest_perfgate.core.metrics.registry import by_name
from pytest_perfgate.model.config import Config
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.plugin.collect import Collector
from tests.unit.plugin.test_spelling import OPTIONS

gate = pytest.mark.perfgate
MODULE, FUNCTION, PARAM = gate("time <= 1s"), gate("time <= 2s", rounds=5), gate("time <= 3s", rounds=7)


@pytest.mark.parametrize("on", ["", " ", ["H200*", ""]])
def test_a_device_without_a_name_is_refused(on: Any) -> None:
    """A variable of CI that is not set would take the limit away."""
    marks = [gate("time <= 1s", on=on).mark]
    item: Any = SimpleNamespace(nodeid="t.py::test_p", location=("t.py", 6, ""), iter_markers=lambda _name: iter(marks))
    with pytest.raises(PerfgateError, match="on= names no device"):
        Collector(Config(), OPTIONS, by_name()).case(item)


def test_the_mark_of_a_class_is_closer_than_that_of_its_base() -> None:
    near, far = gate("time <= 4s"), gate("time <= 5s")
    base = type("Base", (), {"pytestmark": far})
    cls = type("Own", (base,), {"pytestmark": [near]})
    item: Any = SimpleNamespace(
        nodeid="t.py::Own::test_p",
        location=("t.py", 6, ""),
        iter_markers=lambda _name: iter([far.mark, near.mark, MODULE.mark]),
        cls=cls,
    )
    assert [limit.text for limit in Collector(Config(), OPTIONS, by_name()).case(item).limits] == ["time <= 4s"]


def test_the_mark_of_a_parameter_is_closer_than_that_of_its_function() -> None:
    own = [PARAM.mark, pytest.mark.skipif(False).mark]
    marks = [FUNCTION.mark, PARAM.mark, MODULE.mark]
    item: Any = SimpleNamespace(
        nodeid="t.py::test_p[2]",
        location=("t.py", 6, ""),
        iter_markers=lambda _name: iter(marks),
        callspec=SimpleNamespace(marks=own, params={}),
    )
    case = Collector(Config(), OPTIONS, by_name()).case(item)
    assert [limit.text for limit in case.limits] == ["time <= 3s"]
    assert case.plan.rounds == 7


class Mute:
    """Raises at being written out, as a tensor of a lost context does."""

    def __str__(self) -> str:
        raise RuntimeError("no text of me")

    __repr__ = __str__


class Colour(Enum):
    RED = 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4096, "4096"),
        (0.5, "0.5"),
        ("x" * 200, "x" * 80),
        (None, "None"),
        (Colour.RED, "Colour.RED"),
        ((1024, 4096, "bf16"), "(1024, 4096, bf16)"),
        ([Mute(), 1], "(Mute, 1)"),
        (Mute(), "Mute"),
        (Mute, "Mute"),
        (np.zeros(3), "ndarray"),
        (np.dtype("float32"), "float32"),
    ],
)
def test_a_parameter_is_written_where_that_costs_nothing(value: Any, text: str) -> None:
    item: Any = SimpleNamespace(
        nodeid="t.py::test_p[2]",
        location=("t.py", 6, ""),
        iter_markers=lambda _name: iter([FUNCTION.mark]),
        callspec=SimpleNamespace(marks=[], params={"value": value}),
    )
    assert Collector(Config(), OPTIONS, by_name()).case(item).params == (("value", text),)
