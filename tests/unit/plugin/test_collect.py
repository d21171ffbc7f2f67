"""Tests of plugin/collect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Case, Plan
from pytest_perfgate.model.project import Config, ConfigPattern
from pytest_perfgate.plugin.benches import Bench
from pytest_perfgate.plugin.collect import INSTRUMENTS, Collector, refuse_lone_surrogates
from pytest_perfgate.plugin.fixture import Perfgate

gate = pytest.mark.perfgate
MODULE, FUNCTION, PARAM = gate("time <= 1s"), gate("time <= 2s", rounds=5), gate("time <= 3s", rounds=7)


@pytest.mark.parametrize("on", ["", " ", ["H200*", ""]])
def test_a_device_without_a_name_is_refused(on: Any) -> None:
    """A variable of CI that is not set would take the limit away."""
    marks = [gate("time <= 1s", on=on).mark]
    item: Any = SimpleNamespace(nodeid="t.py::test_p", location=("t.py", 6, ""), iter_markers=lambda _name: iter(marks))
    with pytest.raises(PerfgateError, match="on= names no device"):
        Collector(Config(), OPTIONS, by_name()).case(item)


def test_a_parameter_that_no_text_can_show_is_named_by_its_type() -> None:
    itself: list[Any] = []
    itself.append(itself)
    params = {"number": 10**5000, "list": itself, "size": 3}
    item: Any = SimpleNamespace(
        nodeid="t.py::test_p[big]",
        location=("t.py", 6, ""),
        iter_markers=lambda _name: iter([MODULE.mark]),
        callspec=SimpleNamespace(marks=[], params=params),
    )
    shown = dict(Collector(Config(), OPTIONS, by_name()).case(item).params)
    assert shown == {"number": "int", "list": "list", "size": "3"}


@pytest.mark.parametrize("nodeid", ["t.py::test_p", "t.py::TestAll::test_p[x::y]", "t.py::test_p[a[b]]"])
def test_a_test_without_the_fixture_is_told_its_own_line(nodeid: str) -> None:
    item: Any = SimpleNamespace(nodeid=nodeid, location=("t.py", 6, ""), iter_markers=lambda _name: iter([MODULE.mark]))
    assert "def test_p(perfgate)" in Collector(Config(), OPTIONS, by_name()).case(item).unreached[1]


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


PATH = Path(__file__).relative_to(Path(__file__).parents[3]).as_posix()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda gate: gate(3), "got 3"),
        (lambda gate: gate(int, calls=0), "calls=0 is not a whole number"),
        (lambda gate: gate(int, n=3), "does not take n="),
        (lambda gate: gate(int, setup=3), "setup= must be a callable, got 3"),
        (lambda gate: gate(int, check="x"), "check= must be a callable, got 'x'"),
        (lambda gate: gate(int, work=3), "not possible for a call"),
        (lambda gate: gate(lambda: map(int, "1")), "an iterator that was never run"),
        (lambda gate: gate.record([1.0], unit="furlong"), "unit 'furlong'"),
    ],
)
def test_a_wrong_call_names_its_line(call: Callable[[Perfgate], Any], message: str) -> None:
    case = Case(nodeid=f"{PATH}::test_a", limits=(), plan=Plan(), path=PATH)
    with pytest.raises(PerfgateError, match=message) as caught:
        call(Perfgate(case, Bench(case)))
    assert caught.value.place == f"{PATH}:{call.__code__.co_firstlineno}"
    assert str(caught.value).startswith(caught.value.place)


@pytest.mark.parametrize(("option", "place"), [(True, "--perfgate-capture"), (False, "p: tool.perfgate.capture")])
def test_a_capture_that_nobody_takes_is_told_once_where_it_was_asked_for(option: bool, place: str) -> None:
    from pytest_perfgate.core.metric_kinds import by_name
    from pytest_perfgate.model.project import Config

    options: Any = type(OPTIONS)(**{**vars(OPTIONS), "perfgate_capture": ["ncuu"] if option else []})
    with pytest.raises(PerfgateError, match="there is no capture 'ncuu'") as caught:
        Collector(Config(capture=() if option else ("ncuu",), source="p"), options, by_name())
    assert (caught.value.place, caught.value.fix) == (place, "did you mean 'ncu'?")


PATTERN = ConfigPattern(pattern="*", place="p: tool.perfgate.tests[0]")


@pytest.mark.parametrize(
    ("config", "code", "place", "fix"),
    [
        (Config(timer="evnts", source="p"), "timer-unknown", "p: tool.perfgate.timer", "did you mean 'events'?"),
        (Config(runtime="trch", source="p"), "runtime-unknown", "p: tool.perfgate.runtime", "did you mean 'torch'?"),
        (Config(tests=(replace(PATTERN, timer="hots"),)), "timer-unknown", PATTERN.place, "did you mean 'host'?"),
        (Config(tests=(replace(PATTERN, capture=("ncuu",)),)), "config-value", PATTERN.place, "did you mean 'ncu'?"),
        (Config(tests=(replace(PATTERN, limits=("tme <= 1s",)),)), "limit-unknown-metric", PATTERN.place, ""),
    ],
)
def test_a_setting_that_names_nothing_is_refused_where_it_stands(
    config: Config, code: str, place: str, fix: str
) -> None:
    with pytest.raises(PerfgateError) as caught:
        Collector(config, OPTIONS, by_name())
    assert (caught.value.code.name, caught.value.place) == (code, place)
    assert fix in caught.value.fix
    Collector(Config(timer="own", runtime="own"), OPTIONS, by_name(), lambda _family: ["own"])


def test_the_built_in_instruments_are_those_that_measure() -> None:
    from pytest_perfgate.wiring import instruments
    from pytest_perfgate.wiring.built_ins import BuiltIns

    hooks = SimpleNamespace(
        pytest_perfgate_timers=lambda: [BuiltIns().pytest_perfgate_timers()],
        pytest_perfgate_runtimes=lambda: [BuiltIns().pytest_perfgate_runtimes()],
    )
    every = instruments(hooks)
    assert set(INSTRUMENTS["timer"]) == {"auto", *(timer.name for timer in every.timers)}
    assert set(INSTRUMENTS["runtime"]) == {"auto", *(runtime.name for runtime in every.runtimes)}


OPTIONS = SimpleNamespace(
    perfgate_limit=[], perfgate_clocks="", perfgate_rounds=None, perfgate_capture=[], perfgate_metric=[], perfgate_against=None,
    perfgate_device="",
)  # fmt: skip


def collected(nodeid: str) -> Any:
    item: Any = SimpleNamespace(nodeid=nodeid, location=("test_it.py", 6, ""), iter_markers=lambda _name: iter(()))
    return Collector(Config(), OPTIONS, by_name()).case(item)


def test_an_id_that_no_file_can_hold_is_the_fault_of_its_test() -> None:
    assert collected("test_it.py::test_a[\U0001f600-ä/ ]").path == "test_it.py"
    for half in ("\ud83d", "\udcff"):
        with pytest.raises(PerfgateError) as refused:
            collected(f"test_it.py::test_a[a{half}b]")
        text = refused.value.text()
        assert text.encode(), "what is said of it can be written"
        assert f"holds half a character, {half!a}" in text
        assert "test_it.py:7" in text
        assert "pytest.param(..., id=" in text


def test_a_whole_text_is_handed_back() -> None:
    assert refuse_lone_surrogates("größe", "name=", "here", code="call-wrong", fix="") == "größe"
