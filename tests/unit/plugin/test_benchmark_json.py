"""The file that ``--benchmark-json`` asks for."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.adapters.readers.benchmarks import read_pytest_benchmark
from pytest_perfgate.plugin.benchmark_compat import FIGURES, BenchmarkJson, document, plain

STATS = {"min": 1.0, "max": 1.0, "mean": 1.0, "stddev": 0.0, "rounds": 1, "median": 1.0, "data": [1.0], "iterations": 1}
CASE = {"name": "test_a", "fullname": "t.py::test_a", "group": None, "params": {"p": Path("x")}, "param": "x"}


def test_what_json_does_not_know_travels_by_its_name() -> None:
    assert plain({"params": {"p": Path("x"), "n": 3}}) == {"params": {"p": "x", "n": 3}}


def test_the_document_names_no_person_and_no_place() -> None:
    found = document([], dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc))
    assert found["machine_info"]["node"] == ""
    assert found["datetime"] == "2026-01-02T00:00:00+00:00"


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


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(pytest.UsageError, match="--benchmark-json"):
        BenchmarkJson(str(tmp_path / "file" / "out.json")).pytest_sessionfinish()
