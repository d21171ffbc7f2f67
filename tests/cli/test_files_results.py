"""inspect, check, compare and import on records and on other tools' results."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.model.metric import Metric, MetricSet
from pytest_perfgate.model.values import Dimension
from tests.cli.conftest import Place
from tests.reports import case, run

BENCH = {
    "machine_info": {"cpu": {"brand_raw": "A CPU"}}, "commit_info": {"id": "c0ffee1", "time": "2026-01-01"},
    "benchmarks": [
        {"fullname": "tests/test_k.py::test_a[1]", "stats": {"median": 1e-3, "mean": 1.1e-3, "stddev": 1e-5, "rounds": 30}},
        {"fullname": "tests/test_k.py::test_b", "stats": {"median": float("nan"), "mean": None, "rounds": 0}},
    ],
}  # fmt: skip
GOOGLE = {
    "context": {"date": "2026-01-01", "num_cpus": 4, "library_build_type": "release"},
    "benchmarks": [
        {"name": "BM_x/8", "run_name": "BM_x/8", "run_type": "iteration", "real_time": 12.0, "time_unit": "us", "bytes_per_second": 2e9},
        {"name": "BM_x/8", "run_name": "BM_x/8", "run_type": "iteration", "real_time": 14.0, "time_unit": "us"},
        {"name": "BM_bad", "run_type": "iteration", "error_occurred": True, "error_message": "no device"},
    ],
}  # fmt: skip
ASV = {
    "commit_hash": "c0ffee1234", "env_name": "virtualenv-py3.11", "date": 1767225600000, "params": {"machine": "box"},
    "result_columns": ["result", "params", "version"],
    "results": {
        "bench.Suite.time_add": [[1e-6, None], [["1", "2"], ["'f4'"]], "v"],
        "bench.mem_list": [[1000], [], "v"], "bench.time_plain": [[2e-6], [], "v"],
    },
}  # fmt: skip
HYPERFINE = {
    "results": [
        {"command": "make all", "mean": 0.21, "stddev": 0.01, "median": 0.2, "user": 0.1, "system": 0.05,
         "min": 0.2, "max": 0.23, "times": [0.2, 0.2, 0.23], "exit_codes": [0, 0, 0]},
        {"command": "make bad", "mean": 0.1, "stddev": None, "median": 0.1, "user": 0.1, "system": 0.0,
         "min": 0.1, "max": 0.1, "times": [0.1, 0.1], "exit_codes": [0, 2]},
    ]
}  # fmt: skip
SECOND = {"unit": "second", "count": 3, "mean": 0.21, "stddev": 0.01, "median": 0.2, "min": 0.2, "max": 0.23}
HYPERFINE_2 = {
    "schema_version": 2, "metadata": {"hyperfine_version": "2.0.0", "start_time": "2026-11-30T14:41:16Z"},
    "primary_metric": "time_cpu",
    "results": [
        {"command": "make $T", "name": name, "parameters": {"T": {"value": "all"}},
         "measurements": [{"time_wall_clock": {"value": 0.2, "unit": "second"}, "exit_code": code} for code in (0, 0, failed)],
         "summary": {"time_cpu": {**SECOND, "median": 0.1}, "time_wall_clock": SECOND}}
        for name, failed in (("make all", 0), ("make bad", 2))
    ],
}  # fmt: skip


@pytest.fixture
def project(place: Place) -> Place:
    bodies = {"bench": BENCH, "google": GOOGLE, "asv": ASV, "hyperfine": HYPERFINE, "hyperfine_2": HYPERFINE_2}
    for name, body in bodies.items():
        (place.root / f"{name}.json").write_text(json.dumps(body))
    return place


@pytest.mark.parametrize(
    ("name", "kind", "times"),
    [
        ("bench", "pytest-benchmark", {"tests/test_k.py::test_a[1]": 1e6}),
        ("google", "google-benchmark", {"BM_x/8": 13e3}),
        ("asv", "asv", {"bench.Suite.time_add[1-'f4']": 1e3, "bench.time_plain": 2e3}),
        ("hyperfine", "hyperfine", {"make all": 0.2e9}),
        ("hyperfine_2", "hyperfine", {"make all": 0.2e9}),
    ],
)
def test_each_is_told_by_its_content(project: Place, name: str, kind: str, times: dict[str, float]) -> None:
    data = json.loads(project.perfgate("inspect", f"{name}.json", "--json").out)
    assert data["kind"] == kind
    assert {dict(m["labels"])["case"]: m["value"] for m in data["metrics"] if m["name"] == "time"} == pytest.approx(
        times
    )


def test_they_are_held_against_limits(project: Place) -> None:
    assert project.perfgate("check", "asv.json", "time <= 3us").code == 4  # one of them failed or was skipped
    assert project.perfgate("check", "asv.json", "time(case=*plain) <= 3us").code == 0
    assert project.perfgate("check", "asv.json", "time(case=*plain) <= 1us").code == 1
    assert project.perfgate("check", "hyperfine.json", "time(case=make all) <= 0.25s").code == 0
    assert project.perfgate("check", "hyperfine.json", "time(case=make bad) <= 1s").code == 4
    assert project.perfgate("check", "hyperfine_2.json", "time(case=make bad) <= 1s").code == 4
    assert project.perfgate("compare", "hyperfine.json", "hyperfine_2.json", "slowdown(case=make all) <= 3%").code == 0
    assert project.perfgate("check", "asv.json", "bandwidth >= 1GB/s").code == 4
    alone = project.perfgate("check", "asv.json", "slowdown <= 5%")
    assert (alone.code, "perfgate check FILE LIMIT --baseline, or perfgate compare" in alone.out) == (4, True)


def counted(probes: float, rate: float) -> str:
    row = {
        "name": "BM_x/8",
        "run_type": "iteration",
        "real_time": 12.0,
        "probes": probes,
        "adds/s": rate,
        "bandwidth": 2e9,
    }
    return json.dumps({**GOOGLE, "benchmarks": [row, {**row, "name": "BM_y", "probes": float("nan")}]})


def test_a_counter_of_the_user_has_an_accepted_value(project: Place) -> None:
    limits = ("change(metric(probes, case=BM_x*)) <= 0", "change(metric(adds/s)) >= -5%")

    def checked(probes: float, rate: float) -> list[str]:
        (project.root / "counted.json").write_text(counted(probes, rate))
        done = project.perfgate("check", "counted.json", *limits, "--baseline")
        return [line.split()[0] for line in done.out.splitlines() if "change(" in line]

    checked(3, 5e7)
    assert project.perfgate("accept", "counted.json").code == 0
    (line,) = project.baselines.read_all("any-device").values()
    assert {figure.title: figure.value for figure in line.figures} == {
        "probes(case=BM_x/8)": 3, "metric(case=BM_x/8, name=adds/s)": 5e7, "metric(case=BM_y, name=adds/s)": 5e7,
    }  # fmt: skip
    assert checked(3, 5e7) == ["PASSED", "PASSED"]
    assert checked(4, 4e7) == ["REGRESSED", "REGRESSED"]
    assert checked(2, 6e7) == ["IMPROVED", "IMPROVED"]
    assert "  probes(case=BM_x/8)  3 -> 2  -33.3 %  better\n" in project.perfgate("accept", "counted.json").out


def test_two_benchmarks_of_one_name_have_no_accepted_value(project: Place) -> None:
    body = json.loads(counted(3, 5e7))
    body["benchmarks"] = [{**body["benchmarks"][0], "family_index": n, "probes": n} for n in (1, 2)]
    (project.root / "twice.json").write_text(json.dumps(body))
    for limit in ("change(metric(probes)) <= 0", "slowdown <= 5%"):
        done = project.perfgate("check", "twice.json", limit, "--baseline")
        assert (done.code, "several benchmarks are named BM_x/8" in done.out) == (4, True)
    assert project.perfgate("check", "twice.json", "metric(probes) <= 2").code == 0
    assert project.perfgate("check", "twice.json", "metric(probes) <= 1").code == 1
    compared = [line.split() for line in project.perfgate("compare", "twice.json", "twice.json").out.splitlines()]
    assert [row[2:] for row in compared if row[1:2] == ["metric(probes)"]] == [["1", "1"], ["2", "2"]]


def test_a_counter_is_checked_and_compared_by_its_name(project: Place) -> None:
    for name, probes in (("before", 3), ("after", 4)):
        (project.root / f"{name}.json").write_text(counted(probes, 5e7))
    assert project.perfgate("check", "after.json", "metric(name=bandwidth) >= 1e9", "metric(adds/s) >= 4e7").code == 0
    assert project.perfgate("check", "after.json", "metric(probes, case=BM_x/8) <= 3").code == 1
    assert project.perfgate("check", "after.json", "metric(probes) <= 9").code == 4  # one benchmark has no number
    assert project.perfgate("compare", "before.json", "after.json", "change(metric(probes)) <= 0").code == 1
    compared = project.perfgate("compare", "before.json", "after.json").out
    assert ["BM_x/8", "metric(probes)", "3", "4"] in [line.split() for line in compared.splitlines()]
    near = project.perfgate("check", "after.json", "metric(probe) <= 3")
    assert (near.code, "did you mean 'probes'?" in near.out) == (4, True)
    bare = project.perfgate("check", "after.json", "probes <= 3")
    assert (bare.code, "a figure of your own is metric(probes)" in bare.err) == (2, True)


def test_a_counter_that_a_file_lacks_is_not_measured_and_others_are_named(project: Place) -> None:
    row = {"name": "BM_x", "run_type": "iteration", "real_time": 12.0, "probes": 3}
    (project.root / "one.json").write_text(json.dumps({**GOOGLE, "benchmarks": [row]}))
    for name in ("adds/s", "name=mfu", "hits"):
        done = project.perfgate("check", "one.json", f"metric({name}) >= 1")
        assert (done.code, "next   there are: probes" in done.out, "perfgate.metric" in done.out) == (4, True, False)
    done = project.perfgate(
        "check", "one.json", "change(metric(hits)) <= 0", "change(metric(probes)) <= 0", "--baseline"
    )
    assert (done.code, "hits: no file has it" in done.out, "perfgate.metric" in done.out) == (4, True, False)
    alone = project.perfgate("check", "one.json", "change(metric(hits)) <= 0", "--baseline")
    assert (alone.code, "the file lacks it" in alone.out, "perfgate inspect FILE" in alone.out) == (4, True, True)


def test_a_benchmark_that_is_gone_is_not_a_pass(project: Place) -> None:
    body = json.loads(json.dumps(ASV))
    del body["results"]["bench.time_plain"]
    (project.root / "later.json").write_text(json.dumps(body))
    assert project.perfgate("compare", "later.json", "asv.json", "slowdown <= 3%").code == 0
    done = project.perfgate("compare", "asv.json", "later.json", "slowdown <= 3%")
    assert (done.code, "1 benchmark gone or without a time now: bench.time_plain" in done.out) == (4, True)


def test_baselines_begin_with_them(project: Place) -> None:
    done = project.perfgate("import", "bench.json", "google.json", "--device", "NVIDIA-H200")
    assert done.code == 0, done.err
    assert "bench.json: 1 imported, 0 kept, 1 without a time, for NVIDIA-H200" in done.out
    assert project.times() == {"test_a[1]": 1e6, "BM_x/8": 13e3}
    lines = project.baselines.read_all("NVIDIA-H200")
    assert lines["tests/test_k.py::test_a[1]"].why == "imported from pytest-benchmark, median"
    assert "\nno time: tests/test_k.py::test_b\n" in done.out
    assert "0 imported, 1 kept" in project.perfgate("import", "bench.json", "--device", "NVIDIA-H200").out


def test_a_dry_run_of_an_import_names_the_lines(project: Place) -> None:
    done = project.perfgate("import", "bench.json", "--device", "NVIDIA-H200", "--dry-run")
    assert "for NVIDIA-H200\nwould write tests/test_k.py::test_a[1]\n" in done.out
    assert project.times() == {}


def test_an_import_says_what_it_cannot_read_as_inspect_does(project: Place) -> None:
    (project.root / "empty.json").write_text("")
    (project.root / "packed.json.gz").write_bytes(gzip.compress((project.root / "bench.json").read_bytes()))
    for name, words in (("empty.json", "the file is empty"), ("packed.json.gz", "gunzip FILE")):
        refused = project.perfgate("import", name)
        assert (refused.code, words in refused.err) == (13, True)


def test_times_of_a_card_are_not_imported_as_the_hosts(project: Place) -> None:
    card = {"id": 0, "name": "NVIDIA H200"}
    meta = {"version": {"json": {"major": 1}, "nvbench": {"major": 0}}}
    (project.root / "nv.json").write_text(json.dumps({"meta": meta, "devices": [card], "benchmarks": []}))
    refused = project.perfgate("import", "nv.json")
    assert (refused.code, "--device KEY" in refused.err, "NVIDIA H200" in refused.err) == (2, True, True)
    assert project.perfgate("import", "nv.json", "--device", "NVIDIA-H200").code == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '{"benchmarks": [',
        '{"context": 1, "num_cpus": 2}',
        '{"machine_info": 1, "commit_info": 2, "benchmarks": [1]}',
    ],
)
def test_what_is_none_of_them(project: Place, text: str) -> None:
    (project.root / "bad.json").write_text(text)
    for words in (("import", "bad.json", "--device", "d"), ("inspect", "bad.json")):
        done = project.perfgate(*words)
        assert done.code in {2, 13}, done
        assert "bad.json" in done.err


@pytest.mark.parametrize(
    ("name", "number", "code"),
    [("mfu", 1e308, "above-peak"), ("mfu", -1.0, "record-unreadable"), ("time", -1.0, "record-unreadable")],
)
def test_a_record_with_a_figure_that_cannot_be_is_not_to_be_trusted(place: Place, name, number, code) -> None:
    (bare,) = run(case("test_a", 1e6)).cases
    dimension = Dimension.TIME if name == "time" else Dimension.FRACTION
    metrics = MetricSet(metrics=tuple(Metric(name=name, value=v, dimension=dimension) for v in (0.5, number)))
    path = place.record(run(replace(bare, measurement=bare.measurement.with_metrics(metrics))))
    problems = json.loads(place.perfgate("inspect", path, "--json").out)["problems"]
    assert [problem["code"] for problem in problems] == [code]


def test_records_are_files_too(place: Place) -> None:
    old = place.record(run(case("test_a", 1e6), case("test_b", 1e6), started="2026-01-01"))
    new = place.record(run(case("test_a", 1.2e6), case("test_b", 1e6), started="2026-01-02"))
    assert "perfgate: all limits kept" in place.perfgate("inspect", old).out
    assert place.perfgate("check", old, "time <= 2ms", "mfu >= 60%").code == 0
    assert place.perfgate("compare", old, new, "slowdown(case=*test_b) <= 3%").code == 0
    done = place.perfgate("compare", old, new, "slowdown <= 3%")
    assert done.code == 1
    assert "test_a" in done.out
    less = place.record(run(case("test_a", 1e6), started="2026-01-03"))
    assert place.perfgate("compare", old, less, "slowdown <= 3%").code == 4


CORPUS = os.environ.get("PERFGATE_CORPUS")


@pytest.mark.skipif(not CORPUS, reason="PERFGATE_CORPUS names no corpus")
def test_files_of_the_tools_themselves(place: Place) -> None:
    corpus = Path(str(CORPUS))
    both = [corpus / "nvbench" / name for name in ("ref.json", "cmp.json")]
    assert place.perfgate("compare", *both, "slowdown <= 3%").code == 0
    data = json.loads(place.perfgate("inspect", corpus / "nvbench" / "old_throughput.json", "--json").out)
    assert {m["name"] for m in data["metrics"]} == {"time", "bandwidth", "throughput"}
    for name in ("output.json", "several_units.json"):
        assert place.perfgate("check", corpus / "pytest_benchmark" / name, "time <= 3s").code == 0
