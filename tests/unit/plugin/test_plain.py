"""Values of other libraries on their way into the gate and into JSON."""

from __future__ import annotations

import copy
import enum

import numpy as np
import pytest

from pytest_perfgate import work
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.values import plain
from pytest_perfgate.plugin.benches import Bench
from pytest_perfgate.plugin.calls import Asked, View
from pytest_perfgate.plugin.fixture import Gate


class Kind(str, enum.Enum):
    FAST = "fast"


class Kept(Bench):
    """Keeps what it was asked."""

    asked: Asked

    def take(self, asked: Asked) -> View:
        self.asked = asked
        return super().take(asked)


def gate() -> tuple[Gate, Kept]:
    case = Case(nodeid="t.py::test_a", limits=(), plan=Plan())
    bench = Kept(case)
    return Gate(case, bench), bench


@pytest.mark.parametrize(
    ("given", "meant"), [(np.int64(3), 3), (np.float32(0.5), 0.5), (np.str_("a"), "a"), (Kind.FAST, "fast")]
)
def test_numbers_and_texts_become_pythons_own(given: object, meant: object) -> None:
    found = plain(given)
    assert (found, type(found)) == (meant, type(meant))


def test_a_view_answers_whoever_only_asks_what_it_has() -> None:
    """numpy, copy, rich and editors ask any object for attributes that it may not have."""
    view = View(CaseKey(nodeid="t.py::test_a"), metrics=lambda _: MetricSet())
    nothing = View(CaseKey(nodeid="t.py::test_a"), metrics=lambda _: None)
    for one in (view, nothing):
        assert not hasattr(one, "shape")
        assert getattr(one, "mfu", "absent") == "absent"
        assert np.asarray(one).shape == ()
        assert copy.copy(one).key == one.key
        with pytest.raises(PerfgateError, match="not-measured"):
            _ = one.mfu


@pytest.mark.parametrize("given", [object(), np.zeros(3), 1j])
def test_what_no_record_holds_is_named(given: object) -> None:
    with pytest.raises(TypeError, match="is nothing that a record holds"):
        plain(given)


def test_a_call_is_asked_for_in_pythons_own_values() -> None:
    ask, bench = gate()
    done = work.Work(flops=np.float32(16.0), bytes=np.int64(8))  # type: ignore[arg-type]
    ask(int, name=np.str_("a"), calls=np.int32(4), limits=np.array(["time <= 2s"]), work=done)  # type: ignore[arg-type]
    ask(int, name=Kind.FAST)
    assert bench.seen[1].name == "fast"
    ask(int, name="b", calls=np.int32(4), limits=np.array(["time <= 2s"]), work=done)  # type: ignore[arg-type]
    asked = bench.asked
    values = (asked.calls, *asked.limits, asked.work and asked.work.flops, asked.work and asked.work.bytes)
    assert [(value, type(value)) for value in values] == [(4, int), ("time <= 2s", str), (16.0, float), (8, int)]
    assert type(bench.seen[0].name) is str


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": 3}, "name= must be a text, got 3"),
        ({"limits": [5]}, "a limit must be a text, got 5"),
        ({"calls": 1.5}, "calls=1.5 is not a whole number from 1"),
    ],
)
def test_what_is_of_another_kind_is_refused_in_a_sentence(given: dict[str, object], said: str) -> None:
    ask, _ = gate()
    with pytest.raises(PerfgateError, match=said):
        ask(int, **given)  # type: ignore[arg-type]
