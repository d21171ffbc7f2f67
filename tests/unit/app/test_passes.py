"""Runs for figures beside time: what they take, of which device, and where there is none."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_perfgate.app.passes import (
    PassedCall,
    References,
    chosen,
    in_turns,
    leaves_work,
    of_file,
    one_by_one,
    readings_of,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Samples, Stop
from pytest_perfgate.model.metric import Absent, Metric
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.ports import Instruments
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.testing import FakeRuntime
from pytest_perfgate.wiring.built_ins import benchmarks_of
from tests.unit.core.judge.bench import limit


class Memory:
    """Says what it was told to say, and counts the looks."""

    def __init__(self, traced: float, resident: float | None, pages: int = 0) -> None:
        self._traced, self._resident, self._pages, self.looks, self._taken = traced, resident, pages, 0, 0

    def traced(self, call) -> float:
        call()
        self.looks += 1
        return self._traced

    def resident(self, call) -> float | None:
        call()
        self._taken += self._pages
        return self._resident

    def children(self) -> int:
        return self._taken


def tools(**fields) -> Instruments:
    return Instruments(runtimes=(), timers=(), threads=str, affinity=str, **fields)


def passed(first_ns: float | None = None, events: list[str] | None = None, runtime: Any = None) -> PassedCall:
    names = [] if events is None else events
    device = runtime or FakeRuntime([1e6])
    return PassedCall(lambda: names.append("call"), lambda: names.append("prepare"), device, 2, first_ns)


STEADY = (Samples(durations=(1e6, 1.1e6, 0.9e6), timer="host", stop=Stop.COUNT),)


@pytest.mark.parametrize(("pages", "names"), [(0, ["Reading"] * 2), (32, ["Reading"] * 2), (34, ["Absent"])])
def test_memory_is_not_measured_where_child_processes_take_some(pages: int, names: list[str]) -> None:
    """A limit of 2 MB passed on 50 KB, while the process that the call started took 300 MB."""
    instruments = tools(memory=Memory(10.0, 12.0, pages))
    figures = list(readings_of(("peak_memory",), passed(), STEADY, instruments, lambda: 0.0))
    assert [type(one).__name__ for one in figures] == names
    assert all("only watches" in one.fix for one in figures if isinstance(one, Absent)), "the call may start none"


def test_each_look_at_memory_has_a_set_up_of_its_own() -> None:
    events: list[str] = []
    instruments = tools(memory=Memory(10.0, 12.0))
    readings = list(readings_of(("peak_memory",), passed(events=events), STEADY, instruments, lambda: 0.0))
    assert [(one.labels, one.values) for one in readings] == [
        ((("by", "traced"),), (10.0,) * 3),
        ((("by", "resident"),), (12.0,) * 3),
    ]
    assert events == ["prepare", "call"] * 6


def test_a_long_call_is_looked_at_once() -> None:
    hours = iter(range(100))
    instruments = tools(memory=Memory(10.0, None))
    readings = list(readings_of(("peak_memory",), passed(), STEADY, instruments, lambda: next(hours) * 2e9))
    assert [one.values for one in readings] == [(10.0,)]


def test_what_nobody_asks_for_is_not_taken() -> None:
    memory = Memory(10.0, 12.0)
    assert not list(readings_of((), passed(5e6), STEADY, tools(memory=memory), lambda: 0.0))
    assert memory.looks == 0


@pytest.mark.parametrize(("first", "took"), [(52e6, 50e6), (1e6, 0.0)])
def test_a_compile_time_is_the_first_call_less_a_steady_one(first, took) -> None:
    (reading,) = readings_of(("compile_time",), passed(first), STEADY, tools(), lambda: 0.0)
    assert reading.values == (took,)


def test_without_cold_caches_there_is_no_compile_time() -> None:
    (absent,) = readings_of(("compile_time",), passed(), STEADY, tools(), lambda: 0.0)
    assert isinstance(absent, Absent)
    assert "full" in absent.fix


def test_a_cache_that_the_project_chose_and_an_earlier_process_filled_shows_no_compile_time() -> None:
    subject = passed(3e6)._replace(moved=("TRITON_CACHE_DIR",))
    (absent,) = readings_of(("compile_time",), subject, STEADY, tools(), lambda: 0.0)
    assert isinstance(absent, Absent)
    assert "TRITON_CACHE_DIR" in absent.why


@pytest.mark.parametrize(
    ("figures", "processes", "least", "wished", "calls"),
    [
        ((), 3, 0, 20, 0),
        (("peak_memory",), 3, 0, 20, 0),
        (("q=99%",), 1, 299, 1196, 1),
        (("q=99%",), 3, 100, 400, 1),
        (("q=99%", "q=99.9%"), 3, 999, 3996, 1),
    ],
)
def test_a_quantile_takes_calls_one_by_one(figures, processes, least, wished, calls) -> None:
    plan = one_by_one(Plan(), figures, processes)
    assert (plan.least_samples, plan.min_samples, plan.calls) == (least, wished, calls)
    assert plan.max_samples >= wished


def test_a_plan_that_says_how_many_calls_a_sample_has_is_left_so() -> None:
    assert one_by_one(Plan(calls=8), ("q=99%",), 1).calls == 8


class Card(FakeRuntime):
    """A runtime whose library counts its memory."""

    def __init__(self) -> None:
        super().__init__([1e6])
        self.peaks = iter([(512, 3), (512, 3), (640, 4)])

    def memory_of(self, call) -> tuple[int, int]:
        call()
        return next(self.peaks)


def test_memory_of_a_device_is_what_its_library_counts() -> None:
    vram, count = readings_of(("peak_vram", "allocations"), passed(runtime=Card()), STEADY, tools(), lambda: 0.0)
    assert (vram.values, vram.dimension) == ((512.0, 512.0, 640.0), Dimension.BYTES)
    assert count.values == (1.5, 1.5, 2.0)  # one call of the test stands for two


def test_a_library_that_does_not_count_leaves_no_figure() -> None:
    absences = list(readings_of(("peak_vram", "allocations"), passed(), STEADY, tools(), lambda: 0.0))
    assert [one.name for one in absences] == ["peak_vram", "allocations"]
    assert all(isinstance(one, Absent) and one.fix for one in absences)


class Meter:
    """A clock that a call moves, and a counter that steps every 100 ms at so many watts."""

    def __init__(self, watts: float, call_ns: float, step_ns: float = 1e8) -> None:
        self.now, self._watts, self._call, self._step = 0.0, watts, call_ns, step_ns

    def call(self) -> None:
        self.now += self._call

    def read(self) -> float:
        return self._watts * (self.now // self._step * self._step) / 1e9

    def taken(self, calls: int = 1):
        instruments = tools(energy=lambda device: self.read)
        subject = PassedCall(self.call, lambda: None, FakeRuntime([1e6]), calls)
        (figure,) = readings_of(("energy",), subject, STEADY, instruments, lambda: self.now)
        return figure


@pytest.mark.parametrize(("call_ns", "calls"), [(1e5, 1), (1e5, 4), (2e7, 1), (3e8, 1), (4e9, 1)])
def test_energy_is_what_the_counter_says_between_two_of_its_steps(call_ns, calls) -> None:
    (joules,) = Meter(300.0, call_ns).taken(calls).values
    assert joules == pytest.approx(300.0 * call_ns / 1e9 / calls, rel=0.06)


def test_a_counter_that_stands_still_is_no_figure() -> None:
    absent = Meter(0.0, 1e5).taken()
    assert isinstance(absent, Absent)
    assert "does not move" in absent.why


@pytest.mark.parametrize("energy", [None, lambda device: None, lambda device: lambda: None])
def test_a_device_without_a_counter_is_told(energy) -> None:
    (absent,) = readings_of(("energy",), passed(), STEADY, tools(energy=energy), lambda: 0.0)
    assert isinstance(absent, Absent)
    assert absent.fix


NODE = "tests/b.py::test_gemm[1024-bf16]"
KEY = CaseKey(nodeid=NODE, name="ours")
PARAMS = (("n", "1024"), ("dtype", "bf16"))
INSPECTORS = tuple(map(benchmarks_of, ("pytest-benchmark", "google-benchmark")))


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
        (("speedup(over=eager) >= 1x", "speedup(over=triton) >= 1x"), [("ours", "eager"), ("ours", "triton")]),
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
    sides: list[str] = []

    def measured(call: Call, plan: Plan) -> Samples:
        sides.append(call.key.name)
        time = 1e6 if call.key.name == "ours" else 1.5e6
        return Samples(durations=(time,) * 3, timer="host", stop=Stop.COUNT, batch=plan.calls)

    one = in_turns(called("ours"), called("eager"), Plan(), measured)
    assert (one.over, one.ours, one.theirs) == ("eager", (1e6,), (1.5e6,))
    assert sides[2:6] == ["eager", "ours", "ours", "eager"]


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


@pytest.mark.parametrize(("benchmarks", "expected"), [(("it",), True), (("it", "other"), False)])
def test_the_only_benchmark_is_meant_by_a_test_without_parameters(benchmarks: tuple[str, ...], expected: bool) -> None:
    result = chosen(times(*benchmarks), "", (CaseKey(nodeid="t.py::test_sum"), ()))
    assert isinstance(result, Metric) is expected


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


IDLE_NS = 1_500.0


def left(script: list[float], *, waits: bool = False, launch_ns: float = 3_000.0, idle_ns: float = IDLE_NS) -> bool:
    """Whether calls of a device with these times leave work, by waits that cost the host some time."""
    device = FakeRuntime(script, launch_ns=launch_ns, waits=waits)

    def wait() -> None:
        device.synchronize()
        device.host_ns += idle_ns

    return leaves_work(PassedCall(device.kernel, lambda: None, device), wait, device.clock)


def test_a_call_leaves_work_where_a_wait_after_it_takes_longer_than_a_second_one() -> None:
    assert left([100_000.0])
    assert left([6_000.0]), "a short kernel"
    assert not left([100_000.0], waits=True)
    assert not left([0.0]), "a call of the host"
    assert not left([1_000.0]), "as short as what caches do"
    assert not left([100.0], launch_ns=1e6)
    assert not left([6_000.0], launch_ns=1e6), "below a hundredth of the call"
    assert not left([20_000.0], idle_ns=30_000.0), "beside other work of the device"


def test_compiling_at_first_and_one_odd_trial_change_nothing() -> None:
    assert left([9e9, *[100_000.0] * 2, 0.0, *[100_000.0] * 20])
    assert not left([9e9, *[0.0] * 2, 1e6, *[0.0] * 20])


def test_long_calls_are_tried_once() -> None:
    calls: list[float] = []
    device = FakeRuntime([1e9], waits=False)
    passed = PassedCall(lambda: (calls.append(1), device.kernel()), lambda: None, device)
    assert leaves_work(passed, device.synchronize, device.clock)
    assert len(calls) == 2
