"""What a call waits for, and what ``perfgate.read`` takes: a file, a pattern, or a list of files of one job."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Analysis, MetricSet
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.plugin.benches import Bench, awaited, read_artifact
from pytest_perfgate.plugin.calls import Brought
from pytest_perfgate.plugin.fixture import Perfgate


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


class _Inspector:
    name, options = "fake", ()

    def __init__(self, *devices: str) -> None:
        self.paths: list[str] = []
        self.devices = devices

    def recognises(self, path: Path, head: bytes) -> bool:
        return bool(head) and path.exists()

    def inspect(self, paths: list[Path], options: object) -> Analysis:
        del options
        self.paths = [path.name for path in paths]
        return Analysis(kind="fake", subject="fake", metrics=MetricSet(), views={}, devices=self.devices)


@pytest.mark.parametrize(("devices", "key"), [(("sm_90",), "sm_90"), (("", "H100 X", "H100 X"), "H100-X"), ((), None)])
def test_a_file_is_of_the_device_that_it_names(tmp_path: Path, devices: tuple[str, ...], key: str | None) -> None:
    (tmp_path / "a.json").write_text("{}")
    inspector: Any = _Inspector(*devices)
    brought = Brought(CaseKey(nodeid="t"), "read")
    read_artifact(brought, [str(tmp_path / "a.json")], [inspector], [])
    assert (brought.device.key if brought.device else None) == key


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
