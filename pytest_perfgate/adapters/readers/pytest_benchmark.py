"""pytest-benchmark's JSON: the median of its rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.readers.json_text import mapping, member, nanoseconds, number, read_json
from pytest_perfgate.model.benchmark import BenchFile, BenchResult


def read_pytest_benchmark(path: Path) -> BenchFile:
    body = read_json(path, "pytest-benchmark")
    commit = mapping(body.get("commit_info"))
    results = tuple(_result(bench, str(path)) for bench in member(body, "benchmarks", list, str(path)))
    return BenchFile(
        tool="pytest-benchmark",
        results=results,
        commit=str(commit.get("id") or ""),
        when=str(body.get("datetime") or commit.get("time") or ""),
        machine=_brand(body.get("machine_info")),
    )


def _result(bench: Any, place: str) -> BenchResult:
    name = mapping(bench).get("fullname") or member(bench, "name", str, f"{place}: benchmarks")
    stats = member(bench, "stats", dict, f"{place}: benchmarks.'{name}'")
    first = next((said for said in ("median", "mean") if said in stats), "")
    time, mean, spread = nanoseconds(stats.get(first)), number(stats.get("mean")), number(stats.get("stddev"))
    other = nanoseconds(stats.get("mean")) if first == "median" else None
    return BenchResult(
        name=str(name),
        time=time,
        statistic=first,
        also=(("mean", other),) if other is not None and time is not None else (),
        scatter=spread / mean if spread is not None and mean else None,
        samples=int(number(stats.get("rounds")) or 0),
        skipped=f"its {first} is no number of seconds" if first and time is None else "",
    )


def _brand(machine: Any) -> str:
    cpu = mapping(mapping(machine).get("cpu"))
    return str(cpu.get("brand_raw") or cpu.get("brand") or "")
