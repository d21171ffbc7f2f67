"""Google Benchmark's JSON: the median of repetitions where there is one, else the mean of all."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from pytest_perfgate.adapters.readers.json_text import member, number, read_json
from pytest_perfgate.model.benchmark import BenchFile, BenchResult
from pytest_perfgate.model.quantity import Dimension

_UNITS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_RATES = {
    "bytes_per_second": ("bandwidth", Dimension.BANDWIDTH),
    "items_per_second": ("throughput", Dimension.RATE),
}


def read_google_benchmark(path: Path) -> BenchFile:
    body = read_json(path, "Google Benchmark")
    context = body.get("context") or {}
    groups: dict[str, list[Any]] = {}
    for row in member(body, "benchmarks", list, str(path)):
        groups.setdefault(row.get("run_name") or member(row, "name", str, f"{path}: benchmarks"), []).append(row)
    return BenchFile(
        tool="google-benchmark",
        results=tuple(_result(name, rows) for name, rows in groups.items()),
        when=str(context.get("date") or ""),
        machine=str(context.get("host_name") or ""),
    )


def _result(name: str, rows: list[Any]) -> BenchResult:
    aggregates = {row.get("aggregate_name"): row for row in rows if row.get("run_type") == "aggregate"}
    runs = [row for row in rows if row.get("run_type", "iteration") == "iteration"]
    chosen = aggregates.get("median") or aggregates.get("mean") or (runs[0] if runs else rows[0])
    times = [t for t in map(_time, runs) if t is not None]
    time = median(times) if times and "median" not in aggregates else _time(chosen)
    failed = next((row for row in rows if row.get("error_occurred") or row.get("skipped")), None)
    rates = ((kind, number(chosen.get(key)), dimension) for key, (kind, dimension) in _RATES.items())
    return BenchResult(
        name=name,
        time=None if failed else time,
        statistic="median" if len(times) > 1 or "median" in aggregates else "mean",
        samples=len(runs),
        rates=tuple((kind, rate, dimension) for kind, rate, dimension in rates if rate is not None),
        skipped=str(failed.get("error_message") or failed.get("skip_message") or "skipped") if failed else "",
    )


def _time(row: Any) -> float | None:
    """Wall time, unless the benchmark was told to time by hand, which it writes there too."""
    found = number(row.get("real_time"))
    return found * _UNITS.get(row.get("time_unit", "ns"), 1.0) if found is not None else None
