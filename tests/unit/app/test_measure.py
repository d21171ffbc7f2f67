"""The device that was asked for, and clocks that were not locked: said of a measurement, and said once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.measure import Rounds, measurements, one_child_each
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Environment, Identity, Samples, Stop
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.ports import GateTools
from pytest_perfgate.model.protocol import Capture, CaseResult, Collected, Finished

KEY = CaseKey(nodeid="t.py::t")
CARD = Device(key="NVIDIA-H200-observe", name="NVIDIA H200", kind="gpu", index=0, uuid="GPU-12")
SAMPLES = Samples(durations=(1.0,), timer="fake", stop=Stop.COUNT)
TOOLS = GateTools(kinds=by_name(), spawner=None, environment=Environment, with_measured_ceilings=lambda device: device)


@pytest.mark.parametrize(
    ("device", "problems"),
    [
        ("", 0),
        ("0", 0),
        ("GPU-12", 0),
        ("12", 0),
        ("NVIDIA H200", 0),
        ("NVIDIA-H200-observe", 0),
        ("1", 1),
        ("GPU-1", 0),
        ("GPU-2", 1),
        ("GPU-", 1),
    ],
)
def test_another_device_than_was_asked_for_is_a_problem(device, problems) -> None:
    capture = Capture(key=KEY, samples=(SAMPLES,), device=CARD, identity=Identity(device=CARD.key))
    case = Case(nodeid=KEY.nodeid, limits=(), plan=Plan(device=device))
    (measurement,) = measurements(CaseResult(case=case, captures=((capture,),)), TOOLS)
    assert [problem.code for problem in measurement.problems] == ["device-other"] * problems


def case(name: str, *figures: str) -> Case:
    return Case(nodeid=name, limits=(), plan=Plan(figures=figures))


def test_a_case_whose_compilers_are_cold_has_a_process_of_its_own() -> None:
    cases = [case("a"), case("b", "compile_time"), case("c", "peak_memory"), case("d", "compile_time")]
    assert [[one.nodeid for one in group] for group in one_child_each(cases)] == [["a", "c"], ["b"], ["d"]]


def test_a_case_costs_the_mean_of_its_rounds_and_not_the_slowest() -> None:
    one = case("a")
    settings: Any = SimpleNamespace(progress=lambda *arguments: None, spawner=None)
    rounds = Rounds([one], settings)
    for number, took_s in enumerate((1.0, 4.0, 1.0)):
        rounds._note(number, Finished(nodeid=one.nodeid, outcome="passed", seconds=took_s))
    assert rounds.results()[one.nodeid].seconds == 2.0


def test_a_case_that_a_child_did_not_collect_has_the_error_of_its_own_file() -> None:
    settings: Any = SimpleNamespace(progress=lambda *arguments: None, spawner=None)
    cases = [case("a.py::t"), case("b.py::t")]
    rounds = Rounds(cases, settings)
    rounds._uncollected(cases, Collected(nodeids=(), errors=("a.py: Skipped: no card", "b.py: Skipped: too old")))
    assert [(text,) for text in ("no card", "too old")] == [
        tuple(error.rpartition(": ")[2] for error in result.trouble) for result in rounds.results().values()
    ]
