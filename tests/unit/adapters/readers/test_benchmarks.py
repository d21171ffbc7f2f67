"""JSON of NVBench, pytest-benchmark, Google Benchmark and asv in the forms of their versions."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest

from pytest_perfgate.adapters.readers.benchmarks import READERS
from pytest_perfgate.app.inspections import inspect
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Analysis
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.wiring import built_ins


@pytest.fixture(scope="module")
def tools() -> Any:
    return built_ins.BuiltIns().pytest_perfgate_inspectors()


@pytest.fixture
def analysed(tools, tmp_path):
    def read(body: Any) -> Analysis:
        path = tmp_path / "x.json"
        text = body if isinstance(body, (str, bytes)) else json.dumps(body)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return inspect([path], {}, inspectors=tools, peek=lambda one: one.read_bytes()[:4096])

    return read


def times(analysis: Analysis) -> list[tuple[str, float]]:
    return [(dict(m.labels)["case"], round(m.value, 3)) for m in analysis.metrics.find("time")]


def absent(analysis: Analysis) -> list[tuple[str, str]]:
    return [(dict(one.labels)["case"], one.why) for one in analysis.metrics.absent]


def run(name: str, time: Any, unit: str = "ns", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "run_name": name,
        "run_type": "iteration",
        "real_time": time,
        "cpu_time": 1,
        "time_unit": unit,
        **more,
    }


def total(name: str, what: str, time: float, **more: Any) -> dict[str, Any]:
    return {
        **run(name, time, **more),
        "name": f"{name}_{what}",
        "run_type": "aggregate",
        "aggregate_name": what,
        "repetitions": 3,
    }


def google(*rows: Any, **context: Any) -> dict[str, Any]:
    return {"context": {"date": "2026", "num_cpus": 8, **context}, "benchmarks": list(rows)}


def old(*rows: dict[str, Any]) -> dict[str, Any]:
    """Before 1.5 no row had a type."""
    return google(*({k: v for k, v in row.items() if not k.startswith(("run_", "aggregate"))} for row in rows))


REPEATS = [run("a", time, family_index=0, repetition_index=n) for n, time in enumerate((10, 30, 11))]
FITS = [total("BM", "BigO", 0, big_o="N"), total("BM", "RMS", 0, rms=0.1)]
NVIDIA = {"id": 0, "name": "H200", "sm_version": 900}


def figure(tag: str, number: Any, *before: dict[str, Any]) -> dict[str, Any]:
    return {"tag": tag, "data": [*before, {"name": "value", "type": "float64", "value": number}]}


MEAN, MEDIAN = figure("nv/cold/time/gpu/mean", "0.002"), figure("nv/cold/time/gpu/median", "0.001")
HOST, BATCH = figure("nv/cold/time/cpu/mean", "0.5"), figure("nv/batch/time/gpu/mean", "0.003")
SIDECAR = {
    "tag": "nv/json/bin:nv/cold/sample_times",
    "data": [{"name": "filename", "type": "string", "value": "0.bin"}],
}
NANS = figure("nv/cold/time/gpu/mean", "nan")


def state(*summaries: Any, **more: Any) -> dict[str, Any]:
    return {"name": "T=F32", "device": 0, "summaries": list(summaries), "is_skipped": False, **more}


def nvbench(*states: Any, devices: Any = (NVIDIA,), argv: tuple[str, ...] = ("b",)) -> dict[str, Any]:
    meta = {"argv": list(argv), "version": {"json": {"string": "1.0.0"}, "nvbench": {}}}
    return {"meta": meta, "devices": devices, "benchmarks": [{"axes": None, "name": "copy", "states": list(states)}]}


def early(values: str) -> dict[str, Any]:
    figures = [{"name": "value", "type": "float64", "value": 0.002}] if values == "values" else {"value": 0.002}
    row = {"device": 0, "description": "T=F32", "summaries": {"Average GPU Time (Cold)": {values: figures}}}
    return {"devices": [NVIDIA], "benchmarks": [{"name": "copy", "states": [row]}]}


def bench(name: str = "t.py::a", **stats: Any) -> dict[str, Any]:
    return {
        "name": name,
        "fullname": name,
        "stats": {"mean": 2e-6, "stddev": 1e-7, "rounds": 10, "median": 1e-6, **stats},
    }


def ours(*rows: Any, **more: Any) -> dict[str, Any]:
    return {"machine_info": {"node": "n", "python_version": "3", "cpu": {"brand_raw": "Xeon"}},
            "commit_info": {"id": "c0ffee1"}, "benchmarks": list(rows), "version": "5.1.0", **more}  # fmt: skip


def asv(results: Any, columns: Any = ("result", "params"), **more: Any) -> dict[str, Any]:
    return {"commit_hash": "a" * 40, "env_name": "e", "date": 1767225600000, "params": {"machine": "box"},
            "result_columns": columns and list(columns), "results": results, "version": 2, **more}  # fmt: skip


FIRST = {"benchmark_version": {f"b.time_{n}": "f" * 64 for n in range(99)}, "commit_hash": "a" * 40, "env_name": "e",
         "results": {"b.time_x": 1e-6, "b.time_p": {"params": [["1", "2"]], "result": [2e-6, None]}}}  # fmt: skip
ANSWERS: dict[str, tuple[Any, list[tuple[str, float]]]] = {
    "google: units": (google(*(run(u, 1, u) for u in ("s", "ms", "us", "ns"))), [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1)]),
    "google: a name with everything": (google(run("BM<int, 4>/8/threads:4/real_time", 2)), [("BM<int, 4>/8/threads:4/real_time", 2)]),
    "google: repetitions": (google(*REPEATS), [("a", 11)]),
    "google: repetitions and aggregates": (google(*REPEATS, total("a", "mean", 17), total("a", "median", 12), total("a", "cv", 0.6)), [("a", 12)]),
    "google: aggregates alone": (google(total("a", "mean", 17), total("a", "median", 11), total("a", "stddev", 9)), [("a", 11)]),
    "google: a mean alone": (google(total("a", "mean", 17)), [("a", 17)]),
    "google: a fit is no benchmark": (google(run("BM/8", 10), *FITS), [("BM/8", 10)]),
    "google: before types": (old(run("a", 5), total("a", "mean", 6), total("a", "median", 4), total("a", "stddev", 1)), [("a", 4)]),
    "google: before types, aggregates alone": (old(total("a", "mean", 6), total("a", "stddev", 1)), [("a", 6)]),
    "google: before types, a name that ends so": (old(run("geo_mean", 5)), [("geo_mean", 5)]),
    "google: before types, a fit": (old(run("BM/8", 10), *FITS), [("BM/8", 10)]),
    "google: an aggregate whose type is wrong": (google(*REPEATS, {**total("a", "cv", 0.1), "run_type": "iteration"}), [("a", 11)]),
    "google: an aggregate named by its end alone": (google({"name": "a_mean", "run_type": "aggregate", "real_time": 7}), [("a", 7)]),
    "google: two of one name": (google(run("a", 1, family_index=0), run("a", 5, family_index=1)), [("a", 1), ("a", 5)]),
    "google: keys sorted": (json.dumps(google(*REPEATS * 40), sort_keys=True), [("a", 11)]),
    "google: no context": ({"context": None, "benchmarks": [run("a", 1)]}, [("a", 1)]),
    "nvbench: a mean": (nvbench(state(HOST, BATCH, MEAN)), [("copy[T=F32]", 2e6)]),
    "nvbench: a median counts first": (nvbench(state(MEAN, MEDIAN)), [("copy[T=F32]", 1e6)]),
    "nvbench: sidecars": (nvbench(state(SIDECAR, MEAN)), [("copy[T=F32]", 2e6)]),
    "nvbench: the value is not first": (nvbench(state(figure("nv/cold/time/gpu/mean", 0.002, {"name": "unit", "value": "s"}))), [("copy[T=F32]", 2e6)]),
    "nvbench: on the host alone": (nvbench(state(figure("nv/cpu_only/time/cpu/mean", "0.002"), device=None), devices=None), [("copy[T=F32]", 2e6)]),
    "nvbench: in batches before the host's clock": (nvbench(state(HOST, figure("nv/cold/time/cpu/median", "0.5"), BATCH)), [("copy[T=F32]", 3e6)]),
    "nvbench: in batches alone": (nvbench(state(BATCH)), [("copy[T=F32]", 3e6)]),
    "nvbench: a state without a name": (nvbench(state(MEAN, name=None, axis_values=[{"name": "N", "value": "8"}])), [("copy[N=8]", 2e6)]),
    "nvbench: no axes": (nvbench(state(MEAN, name="")), [("copy", 2e6)]),
    "nvbench: by name, one value": (early("value"), [("copy[T=F32]", 2e6)]),
    "nvbench: by name, several values": (early("values"), [("copy[T=F32]", 2e6)]),
    "nvbench: a long command line": (nvbench(state(MEAN), argv=("x" * 5000,)), [("copy[T=F32]", 2e6)]),
    "nvbench: keys sorted": (json.dumps(nvbench(*[state(MEAN)] * 30), sort_keys=True), [("copy[T=F32]", 2e6)] * 30),
    "nvbench: a device that is not a number": (nvbench(state(MEAN, device={"a": 0})), [("copy[T=F32]", 2e6)]),
    "nvbench: devices and their numbers are anything": (nvbench(state(MEAN, device=[0]), devices=({**NVIDIA, "id": [0]}, {"id": {"a": 1}})), [("copy[T=F32]", 2e6)]),
    "nvbench: a rate below zero": (nvbench(state(MEAN, figure("nv/cold/bw/global/bytes_per_second", -1e308))), [("copy[T=F32]", 2e6)]),
    "google: families that are anything": (google(run("a", 1, family_index=[0]), run("a", 2, family_index={"b": 1})), [("a", 1.0), ("a", 2.0)]),
    "google: a rate below zero": (google(run("a", 1, items_per_second=-1)), [("a", 1.0)]),
    "nvbench: two devices": (nvbench(state(MEAN, name="Device=0"), state(BATCH, name="Device=1", device=1)), [("copy[Device=0]", 2e6), ("copy[Device=1]", 3e6)]),
    "pytest-benchmark: 5": (ours(bench(), bench("t.py::b[µ-名]")), [("t.py::a", 1e3), ("t.py::b[µ-名]", 1e3)]),
    "pytest-benchmark: 3": (ours(bench(), machine_info={"node": "n", "cpu": {"brand": "X"}}, version="3.4.1"), [("t.py::a", 1e3)]),
    "pytest-benchmark: no commit": (ours(bench(), commit_info=None), [("t.py::a", 1e3)]),
    "pytest-benchmark: no machine": (ours(bench(), machine_info=None), [("t.py::a", 1e3)]),
    "pytest-benchmark: no median": (ours({"fullname": "a", "stats": {"mean": 2e-6}}), [("a", 2e3)]),
    "pytest-benchmark: no full name": (ours({"name": "a", "stats": {"median": 1e-6}}), [("a", 1e3)]),
    "pytest-benchmark: keys sorted, data": (json.dumps(ours(bench(data=[1e-6] * 999)), indent=4, sort_keys=True), [("t.py::a", 1e3)]),
    "asv: 2": (asv({"b.T.time_x": [[1e-6], []], "b.time_p": [[1e-6, 2e-6], [["1", "2"]]]}), [("b.T.time_x", 1e3), ("b.time_p[1]", 1e3), ("b.time_p[2]", 2e3)]),
    "asv: 2, the last parameter changes first": (asv({"b.time_p": [[1e-6, 2e-6, 3e-6, 4e-6], [["1", "2"], ["a", "b"]]]}), [("b.time_p[1-a]", 1e3), ("b.time_p[1-b]", 2e3), ("b.time_p[2-a]", 3e3), ("b.time_p[2-b]", 4e3)]),
    "asv: 2, columns in another order": (asv({"b.time_x": [[["1"]], [1e-6]]}, ("params", "result")), [("b.time_x[1]", 1e3)]),
    "asv: 2, a number alone": (asv({"b.time_x": [1e-6, []], "b.time_p": [1e-6, [["1", "2"]]]}), [("b.time_x", 1e3), ("b.time_p[1]", 1e3)]),
    "asv: 1, keys sorted": (json.dumps(FIRST, indent=4, sort_keys=True), [("b.time_p[1]", 2e3), ("b.time_x", 1e3)]),
    "asv: raw": (asv({"b.timeraw_import": [[1e-6]], "b.peakmem_x": [[9]], "b.TimeX.track_y": [[9]]}, None), [("b.timeraw_import", 1e3)]),
    "asv: a date and a machine of another kind": (asv({"b.time_x": [[1e-6]]}, date=1e30, params=[1]), [("b.time_x", 1e3)]),
}  # fmt: skip
NO_TIME = "its real_time is not a time above 0 and below a year"
ABSENT: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "google: a deviation is not a time": (google(total("a", "cv", 0.2)), [("a", "of its repetitions only cv are in the file")]),
    "google: an error": (google(run("a", 0, error_occurred=True, error_message="bad")), [("a", "bad")]),
    "google: skipped": (google(run("a", 0, skipped="ERROR", skip_message="bad")), [("a", "bad")]),
    "google: one repetition failed": (google(*REPEATS, run("a", 0, family_index=0, error_occurred=True)), [("a", "skipped")]),
    "google: no number": (google(run("a", math.nan), run("b", math.inf), run("c", -1)), [(name, NO_TIME) for name in "abc"]),
    "google: no time at all, and longer than a year": (google(run("a", 0), run("b", 3.2e7, "s"), run("c", 1e294, "s")), [(name, NO_TIME) for name in "abc"]),
    "google: repetitions without a time": (google(run("a", 0, run_name="a"), run("a", 0, run_name="a")), [("a", NO_TIME)]),
    "nvbench: no time at all": (nvbench(state(figure("nv/cold/time/gpu/mean", 0))), [("copy[T=F32]", NO_TIME.replace("real_time", "nv/cold/time/gpu/mean"))]),
    "google: a number without an end": (google(run("a", 10**400), run("b", 1e300, "s")), [(name, NO_TIME) for name in "ab"]),
    "nvbench: skipped": (nvbench(state(is_skipped=True, skip_reason="too big", summaries=None)), [("copy[T=F32]", "too big")]),
    "nvbench: skipped after it ran": (nvbench(state(MEAN, is_skipped=True)), [("copy[T=F32]", "skipped")]),
    "nvbench: the host's clock does not stand for the device's": (nvbench(state(NANS, HOST)), [("copy[T=F32]", NO_TIME.replace("real_time", "nv/cold/time/gpu/mean"))]),
    "nvbench: nothing": (nvbench(state()), [("copy[T=F32]", "the file has no time for it")]),
    "pytest-benchmark: no number": (ours(bench(median=math.nan)), [("t.py::a", NO_TIME.replace("real_time", "median"))]),
    "hyperfine: a run ended by a signal": ({"results": [{"command": "a", "median": 1, "mean": 1, "exit_codes": [0, None]}]}, [("a", "a run failed: ended by a signal")]),
    "hyperfine: a run failed": ({"results": [{"command": "a", "median": 1, "mean": 1, "exit_codes": [0, 3]}]}, [("a", "a run failed: exit code 3")]),
    "asv: failed in all": (asv({"b.time_p": [None, [["1", "2"]]]}), [("b.time_p[1]", "failed"), ("b.time_p[2]", "failed")]),
    "asv: cut short": (asv({"b.time_p": [[], [["1"]]]}), [("b.time_p[1]", "failed")]),
    "asv: failed and skipped": (asv({"b.time_x": [[math.nan], []], "b.time_y": None, "b.time_z": [[-1], []]}), [("b.time_x", "skipped by its setup"), ("b.time_y", "failed"), ("b.time_z", NO_TIME.replace("real_time", "result"))]),
}  # fmt: skip
REFUSED: dict[str, tuple[Any, str]] = {
    "google: a unit that is no text": (google(run("a", 1, {"a": 1})), "timed in {'a': 1}"),
    "google: another unit": (google(run("a", 1, "day")), "timed in 'day'"),
    "google: a unit of ours alone": (google(run("a", 1, "min")), "timed in 'min'"),
    "google: no rows": (google(), "it holds no benchmark"),
    "google: rows of nothing": (google(None), "a list of objects belongs here"),
    "google: no name": (google({"real_time": 1}), "'name' is missing"),
    "google: cut short": (json.dumps(google(*REPEATS))[:-40], "it is no JSON of Google Benchmark"),
    "google: cut short behind a NaN": (json.dumps(google(run("a", math.nan), run("b", 1)))[:-40], "Expecting"),
    "nvbench: no benchmarks": ({**nvbench(), "benchmarks": None}, "'benchmarks' is missing"),
    "nvbench: states of nothing": (nvbench(None), "copy: states: a list of objects"),
    "nvbench: states that are numbers": (
        {**nvbench(), "benchmarks": [{"name": "copy", "states": {"a": 1}}]},
        "copy: states: a list of objects",
    ),
    "nvbench: summaries of nothing": (nvbench(state(None)), "copy[T=F32]: summaries: a list of objects"),
    "pytest-benchmark: no figures": (ours({"fullname": "a"}), "'stats' is missing"),
    "pytest-benchmark: nothing": (ours(None), "'name' is missing"),
    "asv: too many results": (asv({"b.time_p": [[1, 2, 3], [["1", "2"]]]}), "3 results of 2 combinations"),
    "asv: odd parameters": (asv({"b.time_p": [[1], "ab"]}), "the parameters of b.time_p are no lists"),
    "asv: columns that are no names": (asv({"b.time_p": [[1]]}, ("result", {"a": 1})), "names no result"),
    "asv: a billion combinations": (asv({"b.time_p": [[1], [["1"] * 1000] * 3]}), "1,000,000,000 combinations"),
    "asv: other columns": (asv({"b.time_p": [[1]]}, ("value",)), "names no result"),
    "packed": (gzip.compress(json.dumps(google(*REPEATS)).encode()), "a gzip file, and inside JSON"),
    "wide": (json.dumps(google(*REPEATS)).encode("utf-16"), "text in UTF-16"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_file_has_its_times(analysed, name) -> None:
    body, wanted = ANSWERS[name]
    analysis = analysed(body)
    assert times(analysis) == wanted
    assert all(metric.value >= 0 for metric in analysis.metrics.metrics)


@pytest.mark.parametrize("name", ABSENT)
def test_what_has_no_time_says_why(analysed, name) -> None:
    body, wanted = ABSENT[name]
    analysis = analysed(body)
    assert (times(analysis), absent(analysis)) == ([], wanted)


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_read_is_refused(analysed, name) -> None:
    body, message = REFUSED[name]
    with pytest.raises(PerfgateError) as error:
        analysed(body)
    assert message in error.value.text()


def test_what_stands_beside_a_time_is_of_the_same_clock(analysed) -> None:
    analysis = analysed(nvbench(state(BATCH, figure("nv/batch/sample_size", "7"), figure("nv/cold/sample_size", "9"))))
    assert analysis.metrics.find("time")[0].note == "mean, back to back of 7"


@pytest.mark.parametrize("clock", ["cold", "cpu_only"])
@pytest.mark.parametrize(("tag", "name"), [("item_rate", "throughput"), ("global/bytes_per_second", "bandwidth")])
def test_rates_of_nvbench_have_our_names(analysed, clock: str, tag: str, name: str) -> None:
    time = figure(f"nv/{clock}/time/{'gpu' if clock == 'cold' else 'cpu'}/mean", "1")
    metrics = analysed(nvbench(state(time, figure(f"nv/{clock}/bw/{tag}", "5")))).metrics.metrics
    assert [(one.name, one.value) for one in metrics] == [("time", 1e9), (name, 5)]


def test_a_folder_names_the_files_that_could_be_meant(tools, tmp_path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(json.dumps(google(*REPEATS)))
    with pytest.raises(PerfgateError) as error:
        inspect([tmp_path], {}, inspectors=tools, peek=lambda one: b"" if one.is_dir() else one.read_bytes())
    assert "2 of google-benchmark" in error.value.what
    assert error.value.fix.endswith("/*.json")


def test_two_files_without_a_benchmark_in_common_are_not_compared(tools, tmp_path) -> None:
    (compared,) = [one for one in tools if one.name == "pytest-benchmark"]
    for name, case in (("a.json", "t.py::a"), ("b.json", "t.py::b"), ("c.json", "t.py::a")):
        (tmp_path / name).write_text(json.dumps(ours(bench(case))))
    first, other, same = ([tmp_path / name] for name in ("a.json", "b.json", "c.json"))
    with pytest.raises(PerfgateError, match="no benchmark in common"):
        compared.compare(first, other, {})
    assert compared.compare(first, same, {}).metrics.find("slowdown")


def test_rows_of_one_command_are_told_apart_by_parameters_that_it_does_not_contain(analysed) -> None:
    rows = [{"command": "./prog", "median": n / 10, "parameters": {"size": str(n)}} for n in (1, 2)]
    rows.append({"command": "sleep 1", "median": 1.0, "parameters": {"n": "1"}})
    names = [("./prog (size = 1)", 1e8), ("./prog (size = 2)", 2e8), ("sleep 1", 1e9)]
    whole = [{**row, "mean": row["median"], "stddev": None, "user": 0, "system": 0, "min": 0, "max": 1} for row in rows]
    assert sorted(times(analysed({"results": whole}))) == names


def test_a_rate_is_of_the_same_repetitions_as_the_time(analysed) -> None:
    rows = [run("a", time, bytes_per_second=100.0 / time) for time in (1, 4, 2)]
    (rate,) = analysed(google(*rows)).metrics.find("bandwidth")
    assert rate.value == 50
    assert not analysed(google(run("a", 5), total("b", "stddev", 1, bytes_per_second=9.0))).metrics.find("bandwidth")


def test_a_rate_that_is_not_finite_in_one_repetition_is_absent(analysed) -> None:
    fast, slow = (
        run("a", 1, bytes_per_second=9.0),
        [run("b", 1, bytes_per_second=rate) for rate in (math.nan, 1.0, 1.0)],
    )
    analysis = analysed(google(fast, *slow))
    assert [rate.value for rate in analysis.metrics.find("bandwidth")] == [9]
    assert [(gap.name, dict(gap.labels)["case"]) for gap in analysis.metrics.absent] == [("bandwidth", "b")]


COUNTED = {"probes": 3.0, "adds/s": 5e7, "CYCLES": 9, "label": "f32", "backend": "cpu", "on": True, "threads": 2}
INFO = {"tokens": 3, "loss": math.nan, "name": "x", "ok": True, "sizes": [1]}
PEAK = {"unit": "byte", "median": 3e6, "mean": 4e6}
SUMMED = {
    "time_wall_clock": {"median": 0.2},
    "time_user": {"unit": "second", "median": 0.1},
    "memory_peak_resident": PEAK,
}
OWN: dict[str, tuple[Any, dict[str, float]]] = {
    "google": (google(run("a", 1, **COUNTED)), {"probes": 3, "adds/s": 5e7, "CYCLES": 9}),
    "google: repetitions": (google(*(run("a", 1, probes=n, repetition_index=n) for n in (1, 2, 9))), {"probes": 2}),
    "google: the library's median counts": (google(run("a", 1, x=1), total("a", "mean", 1, x=4), total("a", "median", 1, x=2), total("a", "cv", 0.1, x=9)), {"x": 2}),
    "google: a fit has none": (google(run("a", 1), *({**fit, "x": 1} for fit in FITS)), {}),
    "google: not finite in one repetition": (google(run("a", 1, x=math.nan), run("a", 1, x=1), run("b", 1, x=math.inf)), {}),
    "google: an error": (google(run("a", 0, error_occurred=True, x=1)), {}),
    "google: memory": (google(run("a", 1, allocs_per_iter=2, max_bytes_used=64)), {"allocs_per_iter": 2, "max_bytes_used": 64}),
    "nvbench": (nvbench(state(MEAN, NANS | {"tag": "x"}, figure("mine/probes", "7"), figure("zero", 0))), {"mine/probes": 7, "zero": 0}),
    "nvbench: by name": (early("value"), {}),
    "pytest-benchmark": (ours({**bench(), "extra_info": INFO}), {"tokens": 3}),
    "asv": (asv({"b.T.track_loss": [[0.5, None], [["1", "2"]]], "b.peakmem_x": [[9e6], []]}), {"track_loss": 0.5, "peakmem_x": 9e6}),
    "hyperfine: 1": ({"results": [{"command": "a", "mean": 1, "stddev": None, "median": 1, "user": 0.5, "system": 0, "min": 1, "memory_usage_byte": [3, 5, 4]}]}, {"user": 5e8, "system": 0, "memory_usage_byte": 4}),
    "hyperfine: 2": ({"hyperfine_version": "2", "results": [{"command": "a", "summary": SUMMED}]}, {"time_user": 1e8, "memory_peak_resident": 3e6}),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_a_file_has_the_figures_of_its_user(analysed, name) -> None:
    body, wanted = OWN[name]
    figures = [metric for metric in analysed(body).metrics.metrics if metric.name not in {"time", "bandwidth"}]
    assert {dict(m.labels).get("name", m.name): m.value for m in figures} == wanted
    assert {m.name for m in analysed(google(run("a", 1, x=math.nan))).metrics.absent} == {"x"}


@pytest.mark.parametrize(
    ("name", "dimensions"),
    [
        ("google", {"probes": Dimension.PLAIN, "adds/s": Dimension.PLAIN, "CYCLES": Dimension.PLAIN}),
        ("asv", {"track_loss": Dimension.PLAIN, "peakmem_x": Dimension.BYTES}),
        ("hyperfine: 1", {"user": Dimension.TIME, "system": Dimension.TIME, "memory_usage_byte": Dimension.BYTES}),
        ("hyperfine: 2", {"time_user": Dimension.TIME, "memory_peak_resident": Dimension.BYTES}),
    ],
)
def test_a_figure_of_a_user_has_the_dimension_that_its_tool_names(analysed, name, dimensions) -> None:
    metrics = analysed(OWN[name][0]).metrics.metrics
    own = {dict(one.labels).get("name", one.name): one.dimension for one in metrics if one.name != "time"}
    assert own == dimensions


@pytest.mark.parametrize(
    ("tool", "body", "scatter"),
    [
        ("pytest-benchmark", ours(bench()), 0.05),
        ("pytest-benchmark", ours(bench(stddev=None)), None),
        ("google-benchmark", google(run("a", 1), run("a", 3)), 2**0.5 / 2),
        ("google-benchmark", google(total("a", "mean", 4), total("a", "cv", 0.25)), 0.25),
        ("google-benchmark", google(run("a", 1)), None),
        ("nvbench", nvbench(state(MEAN, figure("nv/cold/time/gpu/stdev/relative", 0.3))), 0.3),
        ("nvbench", nvbench(state(MEAN, figure("nv/cold/time/cpu/stdev/relative", 0.3))), None),
        ("hyperfine", {"results": [{"command": "a", "median": 1, "mean": 2, "stddev": 1}]}, 0.5),
    ],
)
def test_the_scatter_is_the_relative_standard_deviation(tmp_path: Path, tool: str, body: Any, scatter: Any) -> None:
    (tmp_path / "x.json").write_text(json.dumps(body))
    (result,) = READERS[tool](tmp_path / "x.json").results
    assert result.scatter == pytest.approx(scatter)


@pytest.mark.parametrize(
    ("tool", "body", "origin"),
    [
        ("asv", asv({"b.time_x": [[1e-6]]}), ("a" * 40, "2026-01-01T00:00:00+00:00", "box")),
        ("pytest-benchmark", ours(bench(), datetime="2026-05-02"), ("c0ffee1", "2026-05-02", "Xeon")),
        ("google-benchmark", google(run("a", 1), host_name="box"), ("", "2026", "box")),
        ("nvbench", nvbench(state(MEAN)), ("", "", "H200")),
    ],
)
def test_a_file_names_its_commit_its_day_and_its_machine(tmp_path: Path, tool: str, body: Any, origin: Any) -> None:
    (tmp_path / "x.json").write_text(json.dumps(body))
    file = READERS[tool](tmp_path / "x.json")
    assert (file.commit, file.when, file.machine) == origin


def test_a_benchmark_without_a_time_of_its_own_lacks_none(analysed) -> None:
    analysis = analysed(asv({"b.track_loss": [[0.5, None], [["1", "2"]]], "b.time_x": [[1e-6]]}))
    assert absent(analysis) == [("b.track_loss[2]", "failed")]
    assert [len(table.rows) for table in analysis.views["results"]().blocks] == [1, 1]


@pytest.mark.parametrize(
    ("body", "notes"),
    [
        (google(run("a", 1)), ["mean of 1"]),
        (google(*REPEATS), ["median of 3"]),
        (google(total("a", "mean", 1)), ["mean of 3"]),
        (nvbench(state(MEAN, figure("nv/cold/sample_size", "7"))), ["mean of 7"]),
        (ours(bench(rounds=12)), ["median of 12"]),
        (ours(bench(rounds=None)), ["median"]),
        (asv({"b.time_p": [[1e-6, None, 2e-6], [["1", "2", "3"]], [10, None, 7]]}, ("result", "params", "stats_repeat")), ["median of 10", "median of 7"]),
        (asv({"b.time_x": {"result": [1e-6], "params": [], "stats": [{"repeat": 4}]}}, None), ["median of 4"]),
        ({"results": [{"command": "a", "mean": 1, "stddev": None, "median": 1, "user": 0, "system": 0, "min": 1, "times": [1] * 5}]}, ["median of 5"]),
    ],
)  # fmt: skip
def test_a_time_names_its_statistic_and_the_number_of_its_samples(analysed, body: Any, notes: list[str]) -> None:
    assert [metric.note for metric in analysed(body).metrics.find("time")] == notes


def test_a_suite_outside_of_a_repository_has_no_commit(analysed) -> None:
    assert "unversi" not in analysed({**ours(bench()), "commit_info": {"id": "unversioned"}}).window
