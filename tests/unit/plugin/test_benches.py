"""What a call waits for, what a measuring process keeps of it, and what ``perfgate.read`` takes: a file, a list."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Identity, Samples, Stop
from pytest_perfgate.model.metric import Analysis, MetricSet, Problem
from pytest_perfgate.model.plan import Case, CaseKey, Limit, Plan
from pytest_perfgate.model.protocol import Capture
from pytest_perfgate.model.values import Work
from pytest_perfgate.plugin.benches import Bench, JudgedBench, MeasuringBench, awaited, read_artifact
from pytest_perfgate.plugin.calls import Brought, MeasuredCall
from pytest_perfgate.plugin.fixture import Perfgate
from tests.reports import DEVICE, measurement
from tests.unit.core.judge.bench import limit


class _Bench:
    """Notes what it was asked to read."""

    def __init__(self) -> None:
        self.raised: dict[CaseKey, str] = {}
        self.sources: list[list[str]] = []

    def read(self, brought: Brought, sources: list[str]) -> None:
        del brought
        self.sources.append(sources)

    def metrics(self, key: CaseKey) -> None:
        del key

    def reason(self, key: CaseKey) -> str:
        return str(key)


def gate(bench: _Bench) -> Any:
    case: Any = SimpleNamespace(nodeid="test_a.py::test_it")
    untyped: Any = bench
    return Perfgate(case, untyped)


def test_one_source_or_a_list_of_them() -> None:
    bench = _Bench()
    for name, source in (("a", "a.json"), ("b", Path("b.json")), ("c", ["c.json", Path("d.json")])):
        gate(bench).read(source, name=name)
    assert bench.sources == [["a.json"], ["b.json"], ["c.json", "d.json"]]


@pytest.mark.parametrize("sources", [("a.json", "b.json"), (["a.json"], "b.json"), ([],)])
def test_several_sources_are_refused_with_the_form_of_a_list(sources: tuple[Any, ...]) -> None:
    with pytest.raises(PerfgateError, match=r"read\(\) takes one source") as error:
        gate(_Bench()).read(*sources)
    assert error.value.code.name == "call-wrong"
    if len(sources) > 1:
        assert "read(['a.json', 'b.json'])" in error.value.fix


@pytest.mark.parametrize("result", ["array", "list", "own class", "number"])
@pytest.mark.parametrize(("library", "wait"), [("jax", "block_until_ready"), ("mlx.core", "eval")])
def test_a_call_ends_when_its_arrays_are_computed(
    monkeypatch: pytest.MonkeyPatch, library: str, wait: str, result: str
) -> None:
    """JAX computes later, in the turns of the other build; MLX does not compute what nobody reads."""
    without_libraries(monkeypatch)
    waited: list[Any] = []
    array = SimpleNamespace()
    results = {"array": array, "list": [array], "own class": SimpleNamespace(x=array), "number": 1.0}
    monkeypatch.setitem(sys.modules, library, SimpleNamespace(**{wait: waited.append}))
    bench: Any = Bench(Case(nodeid="t.py::test_a", limits=(), plan=Plan()))
    view = Perfgate(bench.case, bench)(lambda name: results[name], result)
    assert view.result is results[result]
    assert waited == ([] if result == "number" else [results[result]])


def test_without_such_a_library_a_call_is_measured_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    without_libraries(monkeypatch)
    assert awaited(len) is len
    for stub in (None, SimpleNamespace()):
        monkeypatch.setitem(sys.modules, "jax", stub)
        assert awaited(len) is len


def without_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("jax", "mlx.core"):
        monkeypatch.delitem(sys.modules, name, raising=False)


class _Measuring:
    """Times each call with the number that it returns, in nanoseconds."""

    instruments = SimpleNamespace(inspectors=())

    def capture(self, call: MeasuredCall, plan: Plan) -> Capture:
        del plan
        return Capture(
            key=call.key, samples=(), device=DEVICE, identity=Identity(device="d"), work=call.work, limits=call.limits
        )

    def capture_brought(self, plan: Plan, one: Brought) -> Capture:
        del plan
        identity = Identity(device="d", timer=one.kind)
        return Capture(
            key=one.key, samples=one.samples(), device=DEVICE, identity=identity, work=one.work, limits=one.limits
        )

    def samples(self, call: MeasuredCall, plan: Plan) -> Samples:
        return Samples(durations=(call.fn(),) * 3, timer="host", stop=Stop.COUNT, batch=plan.calls)


def measuring(*limits: Limit) -> tuple[Any, MeasuringBench]:
    fake: Any = _Measuring()
    case = Case(nodeid="t.py::test_a", limits=limits, plan=Plan())
    bench = MeasuringBench(case, fake)
    return Perfgate(case, bench), bench


def test_a_figure_belongs_to_the_call_before_it_and_the_first_ones_to_the_first_call() -> None:
    gate, bench = measuring()
    gate.metric("loaded", 0)
    for name in ("a", "b", "c"):
        gate(int, name=name)
        gate.metric(f"loss_{name}", 1)
    figures = {capture.key.name: [one.name for one in capture.readings] for capture in bench.captures()}
    assert figures == {"a": ["loaded", "loss_a"], "b": ["loss_b"], "c": ["loss_c"]}


def test_figures_of_a_test_without_a_call_are_those_of_the_test() -> None:
    gate, bench = measuring()
    gate.metric("loss", 1)
    gate.metric("tokens", 2)
    ((key, names),) = [(str(one.key), [each.name for each in one.readings]) for one in bench.captures()]
    assert (key, names) == ("t.py::test_a", ["loss", "tokens"])


def test_a_call_that_its_check_refuses_has_no_time() -> None:
    gate, bench = measuring()
    gate(int, name="right", check=lambda result: result == 0)
    with pytest.raises(PerfgateError, match="check= returned") as error:
        gate(int, name="wrong", check=lambda result: result == 1)
    assert error.value.code.name == "check-failed"
    assert [capture.key.name for capture in bench.captures()] == ["right"]
    assert {key.name: why.partition(":")[0] for key, why in bench.raised.items()} == {
        "wrong": "call raised PerfgateError"
    }


@pytest.mark.parametrize(
    ("names", "of_call"), [(("eager", "ours"), False), (("ours", "eager"), False), (("ours", "eager"), True)]
)
def test_a_call_and_its_reference_are_timed_in_turns(names: tuple[str, ...], of_call: bool) -> None:
    text, times = "speedup(over=eager) >= 1.2x", {"ours": 1e6, "eager": 3e6}
    gate, bench = measuring(*([] if of_call else [limit(text)]))
    for name in names:
        gate(lambda name=name: times[name], name=name, limits=(text,) if of_call and name == "ours" else ())
    references = {
        one.key.name: [(each.over, each.ours, each.theirs) for each in one.references] for one in bench.captures()
    }
    assert references == {"ours": [("eager", (1e6,), (3e6,))], "eager": []}


def test_work_limits_and_notes_reach_what_was_measured() -> None:
    gate, bench = measuring()
    gate(int, name="call", work=Work(flops=2.0, working_set=8), limits=["time <= 1s"])
    gate.record([1.5, 2.0], "us", name="elsewhere", work=Work(bytes=4.0), limits=["time <= 2s"])
    with gate.region("part", limits=["time <= 3s"]):
        pass
    gate.note("tile", 64)
    captures = {one.key.name: one for one in bench.captures()}
    assert {name: one.limits for name, one in captures.items()} == {
        "call": ("time <= 1s",), "elsewhere": ("time <= 2s",), "part": ("time <= 3s",),
    }  # fmt: skip
    assert captures["call"].work == Work(flops=2.0, working_set=8)
    assert captures["elsewhere"].work == Work(bytes=4.0)
    assert captures["elsewhere"].samples[0].durations == (1500.0, 2000.0)
    assert len(captures["part"].samples[0].durations) == 1
    assert {one.identity.notes for one in captures.values()} == {(("tile", "64"),)}


def test_a_call_that_was_measured_before_has_the_samples_of_all_processes() -> None:
    measured = measurement("test_k", 1e6)
    case = Case(nodeid=measured.key.nodeid, limits=(), plan=Plan())
    bench = JudgedBench(case, {measured.key: measured}.get, lambda key: f"no process timed {key.name}")
    gate: Any = Perfgate(case, bench)
    view = gate(int)
    assert (view.result, view.time) == (0, 1e6)
    assert gate.kept(measured.key) == measured.processes
    lost = gate(int, name="other")
    assert bench.samples(lost.key) == ()
    with pytest.raises(PerfgateError, match="no process timed other"):
        _ = lost.time


class _Inspector:
    name = "fake"

    def __init__(self, *devices: str, options: tuple[tuple[str, str], ...] = ()) -> None:
        self.paths: list[str] = []
        self.devices, self.options, self.chosen = devices, options, dict[str, str]()

    def recognises(self, path: Path, head: bytes) -> bool:
        return bool(head) and path.exists()

    def inspect(self, paths: list[Path], options: dict[str, str]) -> Analysis:
        self.paths, self.chosen = [path.name for path in paths], options
        problems = (Problem(code="file-doubt", what="events were lost", retry=False),)
        return Analysis(
            kind="fake", subject="fake", metrics=MetricSet(), views={}, devices=self.devices, problems=problems
        )


@pytest.mark.parametrize(("devices", "key"), [(("sm_90",), "sm_90"), (("", "H100 X", "H100 X"), "H100-X"), ((), None)])
def test_a_file_is_of_the_device_that_it_names(tmp_path: Path, devices: tuple[str, ...], key: str | None) -> None:
    (tmp_path / "a.json").write_text("{}")
    inspector: Any = _Inspector(*devices)
    brought = Brought(CaseKey(nodeid="t"), "read")
    read_artifact(brought, [str(tmp_path / "a.json")], [inspector], [])
    assert (brought.device.key if brought.device else None) == key


@pytest.mark.parametrize(
    ("options", "chosen"), [((("limits", "..."),), {"limits": "time <= 1s\noverlap >= 80%"}), ((("rank", "..."),), {})]
)
def test_a_file_is_read_for_the_limits_of_its_test_and_of_its_call(tmp_path: Path, options: Any, chosen: Any) -> None:
    (tmp_path / "a.json").write_text("{}")
    one = _Inspector(options=options)
    inspector: Any = one
    brought = Brought(CaseKey(nodeid="t"), "read", limits=("overlap >= 80%",))
    read_artifact(brought, [str(tmp_path / "a.json")], [inspector], ["time <= 1s"])
    assert one.chosen == chosen
    assert [problem.what for problem in brought.problems] == ["events were lost"]


def test_patterns_and_names_of_files_are_read_in_the_order_given(tmp_path: Path) -> None:
    for name in ("rank1.json", "rank0.json", "odd[0].json"):
        (tmp_path / name).write_text("{}")
    inspector = _Inspector()
    one: Any = inspector
    brought = Brought(CaseKey(nodeid="t"), "read")
    read_artifact(brought, [str(tmp_path / "odd[0].json"), str(tmp_path / "rank*.json")], [one], [])
    assert inspector.paths == ["odd[0].json", "rank0.json", "rank1.json"]
    with pytest.raises(PerfgateError, match=r"(?s)read\(\) found no file .*none.*next  name a file, or a pattern,"):
        read_artifact(brought, [str(tmp_path / "rank*.json"), str(tmp_path / "none.json")], [one], [])
