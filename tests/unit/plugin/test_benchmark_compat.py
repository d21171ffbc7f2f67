"""Tests of plugin/benchmark_compat."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.adapters.readers.benchmarks import read_pytest_benchmark
from pytest_perfgate.plugin.benchmark_compat import (
    FIGURES,
    BenchmarkJson,
    PlaceholderPlugin,
    add_benchmark_options,
    document,
    earlier_plugin,
    idle_lines,
    limit_of,
    plain,
    reserve_plugin_names,
)

STATS = {"min": 1.0, "max": 1.0, "mean": 1.0, "stddev": 0.0, "rounds": 1, "median": 1.0, "data": [1.0], "iterations": 1}
CASE = {"name": "test_a", "fullname": "t.py::test_a", "group": None, "params": {"p": Path("x")}, "param": "x"}


def test_what_json_does_not_know_travels_by_its_name() -> None:
    assert plain({"params": {"p": Path("x"), "n": 3}}) == {"params": {"p": "x", "n": 3}}


def test_the_document_names_no_person_and_no_place() -> None:
    data = document([], dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc))
    assert data["machine_info"]["node"] == ""
    assert data["datetime"] == "2026-01-02T00:00:00+00:00"


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "out.json"
    writer = BenchmarkJson(str(path))
    report: Any = SimpleNamespace(nodeid="t.py::test_a", **{FIGURES: plain({**CASE, "extra_info": {}, "stats": STATS})})
    writer.pytest_runtest_logreport(report)
    writer.pytest_runtest_logreport(report)
    writer.pytest_runtest_logreport(SimpleNamespace(nodeid="t.py::test_b"))  # type: ignore[arg-type]
    writer.pytest_sessionfinish()
    assert len(json.loads(path.read_text(encoding="utf-8"))["benchmarks"]) == 1
    assert "test_a" in str(read_pytest_benchmark(path))


def test_a_test_that_changes_the_folder_does_not_move_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    writer = BenchmarkJson("out.json")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    writer.pytest_sessionfinish()
    assert (tmp_path / "out.json").is_file()


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(pytest.UsageError, match="--benchmark-json"):
        BenchmarkJson(str(tmp_path / "file" / "out.json")).pytest_sessionfinish()


def parsed(*arguments: str) -> SimpleNamespace:
    parser = pytest.Parser(_ispytest=True)
    add_benchmark_options(parser)
    return SimpleNamespace(**vars(parser.parse(list(arguments))))


@pytest.mark.parametrize(
    ("expression", "limit"),
    [("mean:5%", "slowdown <= 5%"), ("12.5%", "slowdown <= 12.5%"), ("median:.5%", "slowdown <= .5%")],
)
def test_a_share_that_must_not_be_lost_is_a_limit(expression: str, limit: str) -> None:
    assert limit_of(expression) == limit


@pytest.mark.parametrize("expression", ["mean:0.001", "stddev:5%", "", "mean:5%%"])
def test_what_cannot_be_held_is_refused_with_what_can(expression: str) -> None:
    with pytest.raises(pytest.UsageError, match="--perfgate-limit"):
        limit_of(expression)


def test_options_without_a_meaning_are_named_by_their_reason() -> None:
    option = parsed(
        "--benchmark-warmup=true", "--benchmark-sort", "name", "--benchmark-autosave", "--codspeed-max-time=1"
    )
    assert list(idle_lines(option)) == [
        "no effect: --benchmark-warmup, --codspeed-max-time (perfgate decides how often a call runs)",
        "no effect: --benchmark-autosave (every run is kept under .perfgate/)",
        "no effect: --benchmark-sort (perfgate writes its own report)",
    ]


def test_nothing_is_said_of_options_that_nobody_passed_or_that_are_heeded() -> None:
    assert not list(idle_lines(parsed()))
    assert not list(
        idle_lines(parsed("--benchmark-only", "--benchmark-json=a.json", "--benchmark-compare-fail", "mean:5%"))
    )


def test_who_asks_for_their_plugin_finds_somebody() -> None:
    manager = pytest.PytestPluginManager()
    reserve_plugin_names(manager)
    assert isinstance(manager.get_plugin("benchmark"), PlaceholderPlugin)
    assert earlier_plugin(manager) == ""


def test_their_plugin_that_was_there_before_is_named() -> None:
    manager = pytest.PytestPluginManager()
    manager.register(object(), "benchmark")
    reserve_plugin_names(manager)
    assert earlier_plugin(manager) == "benchmark"
