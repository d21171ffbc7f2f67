"""pytest-benchmark's JSON: the median of its rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.readers.json_text import member, number, read_json
from pytest_perfgate.model.benchmark import BenchFile, BenchResult


def read_pytest_benchmark(path: Path) -> BenchFile:
    body = read_json(path, "pytest-benchmark")
    commit = body.get("commit_info") or {}
    machine = body.get("machine_info") or {}
    results = tuple(_result(bench, str(path)) for bench in member(body, "benchmarks", list, str(path)))
    return BenchFile(
        tool="pytest-benchmark",
        results=results,
        commit=str(commit.get("id") or ""),
        when=str(body.get("datetime") or commit.get("time") or ""),
        machine=_brand(machine),
    )


def _result(bench: Any, place: str) -> BenchResult:
    name = member(bench, "fullname", str, f"{place}: benchmarks")
    stats = member(bench, "stats", dict, f"{place}: benchmarks.'{name}'")
    median, mean, spread = (number(stats.get(key)) for key in ("median", "mean", "stddev"))
    time = median if median is not None else mean
    return BenchResult(
        name=name,
        time=time * 1e9 if time is not None else None,
        statistic="median" if median is not None else "mean",
        scatter=spread / mean if spread is not None and mean else None,
        samples=int(number(stats.get("rounds")) or 0),
    )


def _brand(machine: Any) -> str:
    cpu = machine.get("cpu") if isinstance(machine, dict) else None
    brand = (cpu.get("brand_raw") or cpu.get("brand")) if isinstance(cpu, dict) else ""
    return str(brand or "")
