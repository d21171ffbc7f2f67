"""Tests of app/references."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_perfgate.adapters.readers.benchmarks import read_google_benchmark, read_pytest_benchmark
from pytest_perfgate.app.inspections.results import google_benchmark, pytest_benchmark
from pytest_perfgate.app.references import References, chosen, in_turns, of_file
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Samples, Stop
from pytest_perfgate.model.metric import Metric
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.values import Dimension
from tests.unit.core.judge.bench import limit

NODE = "tests/b.py::test_gemm[1024-bf16]"
KEY = CaseKey(nodeid=NODE, name="ours")
PARAMS = (("n", "1024"), ("dtype", "bf16"))
INSPECTORS = (pytest_benchmark(read_pytest_benchmark), google_benchmark(read_google_benchmark))


@dataclass
class Call:
    key: CaseKey
    fn: Any = None
    setup: Any = None
    limits: tuple[str, ...] = field(default=())


def called(name: str, fn: Any = None, *limits: str) -> Call:
    return Call(CaseKey(nodeid=NODE, name=name), fn=fn, limits=limits)


def case(*texts: str) -> Case:
    return Case(nodeid=NODE, limits=tuple(limit(text) for text in texts), plan=Plan(), params=PARAMS)


def names(references: References[Call], *calls: Call) -> list[tuple[str, str]]:
    pairs = [pair for call in calls for pair in references.pairs_with(call)]
    return [(ours.key.name, theirs.key.name) for ours, theirs in pairs]


@pytest.mark.parametrize(
    ("texts", "pairs"),
    [
        (("speedup(over=eager) >= 1.2x",), [("ours", "eager"), ("triton", "eager")]),
        (("speedup(case=ours, over=eager) >= 1.2x",), [("ours", "eager")]),
        (("speedup(case=tri*, over=eager) >= 1.2x",), [("triton", "eager")]),
        (
            ("geomean(speedup(over=eager)) >= 1.2x", "speedup(over=eager) >= 1x"),
            [("ours", "eager"), ("triton", "eager")],
        ),
        (("speedup(over=other) >= 1.2x",), []),
        (("time <= 1s",), []),
    ],
)
def test_pairs_are_complete_with_the_later_call(texts: tuple[str, ...], pairs: list[tuple[str, str]]) -> None:
    calls = [called("ours"), called("eager"), called("triton")]
    assert names(References(case(*texts)), *calls) == pairs


def test_limits_of_a_call_name_its_own_reference() -> None:
    ours = called("ours", None, "speedup(over=eager) >= 1.2x")
    assert names(References(case("time <= 1s")), ours, called("eager"), called("other")) == [("ours", "eager")]


def test_a_variable_that_is_another_one_by_then_is_refused() -> None:
    rows = [1]
    references: References[Call] = References(case("speedup(over=eager) >= 1.2x"))
    list(references.pairs_with(called("ours", lambda: sum(rows))))
    rows.append(2)
    list(references.pairs_with(called("eager", lambda: 0)))
    rows = [2]
    with pytest.raises(PerfgateError) as caught:
        list(references.pairs_with(called("third", lambda: 1, "speedup(over=ours) >= 1x")))
    assert (caught.value.code.name, caught.value.what.partition(" ")[0]) == ("reference-changed", "rows")


def test_both_sides_are_measured_by_turns() -> None:
    asked: list[str] = []

    def measured(call: Call, plan: Plan) -> Samples:
        asked.append(call.key.name)
        time = 1e6 if call.key.name == "ours" else 1.5e6
        return Samples(durations=(time,) * 3, timer="host", stop=Stop.COUNT, batch=plan.calls)

    one = in_turns(called("ours"), called("eager"), Plan(), measured)
    assert (one.over, one.ours, one.theirs) == ("eager", (1e6,), (1.5e6,))
    assert asked[2:6] == ["eager", "ours", "ours", "eager"]


def times(*benchmarks: str) -> dict[str, Metric]:
    return {name: Metric(name="time", value=1.0 + at, dimension=Dimension.TIME) for at, name in enumerate(benchmarks)}


@pytest.mark.parametrize(
    ("benchmarks", "pattern", "value"),
    [
        (("anything",), "", "no benchmark fits"),
        (("test_gemm[1024-bf16]", "test_gemm[64-bf16]"), "", 1.0),
        (("other", "ours"), "", 2.0),
        (("gemm[m=64, t=bf16]", "gemm[m=1024, t=bf16]"), "", 2.0),
        (("gemm/64/bf16", "gemm/1024/bf16", "copy/1024/f4"), "", 2.0),
        (("gemm/1024/bf16", "copy/1024/bf16"), "", "several benchmarks fit"),
        (("gemm/1024/bf16", "copy/1024/bf16"), "copy", 2.0),
        (("gemm/10240/bf16", "gemm/512/bf16"), "", "no benchmark fits"),
        (("gemm/1024.5/bf16",), "", "no benchmark fits"),
    ],
)
def test_the_benchmark_that_is_meant(benchmarks: tuple[str, ...], pattern: str, value: float | str) -> None:
    result = chosen(times(*benchmarks), pattern, (KEY, PARAMS))
    if isinstance(value, str):
        assert isinstance(result, str)
        assert value in result
    else:
        assert isinstance(result, Metric)
        assert result.value == value


@pytest.mark.parametrize(("benchmarks", "known"), [(("it",), True), (("it", "other"), False)])
def test_the_only_benchmark_is_meant_by_a_test_without_parameters(benchmarks: tuple[str, ...], known: bool) -> None:
    result = chosen(times(*benchmarks), "", (CaseKey(nodeid="t.py::test_sum"), ()))
    assert isinstance(result, Metric) is known


GOOGLE = {
    "context": {"num_cpus": 2, "library_build_type": "release"},
    "benchmarks": [
        {
            "name": f"gemm/{n}/bf16",
            "run_type": "iteration",
            "real_time": n,
            "cpu_time": n,
            "time_unit": "us",
            "iterations": 9,
        }
        for n in (64, 1024)
    ],
}


def test_a_file_of_another_tool_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cublas.json"
    path.write_text(json.dumps(GOOGLE))
    one = of_file(f"file:{path}", (KEY, PARAMS), INSPECTORS)
    assert (one.theirs, one.origin, one.problems) == ((1024e3,), "gemm/1024/bf16 in cublas.json", ())


@pytest.mark.parametrize(
    ("name", "text"), [("none.json", None), ("text.json", "no JSON"), ("empty.json", "{}"), ("cublas.json", "google")]
)
def test_a_file_without_the_figure_is_a_problem(tmp_path: Path, name: str, text: str | None) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(json.dumps(GOOGLE) if text == "google" else text)
    one = of_file(f"file:{path}#none", (KEY, PARAMS), INSPECTORS)
    assert ([problem.code for problem in one.problems], one.theirs) == (["reference-missing"], ())


def test_files_are_those_of_the_limits_of_a_call() -> None:
    references: References[Call] = References(case("speedup(case=ours, over='file:none.json') >= 1.2x"))
    assert [one.over for one in references.files_of(called("ours"), INSPECTORS)] == ["file:none.json"]
    assert references.files_of(called("other"), INSPECTORS) == ()
