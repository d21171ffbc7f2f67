"""Google Benchmark's JSON: the median of repetitions where there is one, else the mean of all."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from pytest_perfgate.adapters.readers.json_text import mapping, member, nanoseconds, number, objects, read_json
from pytest_perfgate.model.benchmark import BenchFile, BenchResult
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.quantity import TIME_UNITS, Dimension

_RATES = {
    "bytes_per_second": ("bandwidth", Dimension.BANDWIDTH),
    "items_per_second": ("throughput", Dimension.RATE),
}
_FITS = frozenset({"BigO", "RMS"})
"""Of how time grows over a family of benchmarks: no benchmark has that time."""
_SUFFIX = re.compile(r"(?P<run>.+)_(?P<name>mean|median|stddev|cv|BigO|RMS)")
Row = Mapping[str, Any]


def read_google_benchmark(path: Path) -> BenchFile:
    body, place = read_json(path, "Google Benchmark"), f"{path}: benchmarks"
    rows = objects(member(body, "benchmarks", list, str(path)), place)
    names = {member(row, "name", str, place) for row in rows}
    groups: dict[str, list[Row]] = {}
    for row in (_told(row, names) for row in rows):
        if row.get("aggregate_name") not in _FITS:
            groups.setdefault(str(row["run_name"]), []).append(row)
    context = mapping(body.get("context"))
    return BenchFile(
        tool="google-benchmark",
        results=tuple(_result(name, one, place) for name, group in groups.items() for one in _apart(group)),
        when=str(context.get("date") or ""),
        machine=str(context.get("host_name") or ""),
    )


def _told(row: Row, names: set[str]) -> Row:
    """A row with its type: before 1.5 an aggregate told itself by the end of its name alone."""
    name, kind = row["name"], row.get("run_type")
    if row.get("aggregate_name"):
        run = row.get("run_name") or name.removesuffix(f"_{row['aggregate_name']}")
        return {**row, "run_name": run, "run_type": "aggregate"}
    hit = _SUFFIX.fullmatch(name) if kind != "iteration" else None
    beside = hit and (hit["run"] in names or f"{hit['run']}_stddev" in names or "big_o" in row or "rms" in row)
    if hit and (beside or kind == "aggregate"):
        return {**row, "run_name": hit["run"], "run_type": "aggregate", "aggregate_name": hit["name"]}
    return {**row, "run_name": row.get("run_name") or name, "run_type": "iteration"}


def _apart(rows: Sequence[Row]) -> list[Sequence[Row]]:
    """Benchmarks that only share a name are of two families; before 1.5.3 rows told none."""
    families = {
        (row["family_index"], row.get("per_family_instance_index")): row for row in rows if "family_index" in row
    }
    if len(families) < 2:
        return [rows]
    return [
        [row for row in rows if (row.get("family_index"), row.get("per_family_instance_index")) == family]
        for family in families
    ]


def _result(name: str, rows: Sequence[Row], place: str) -> BenchResult:
    aggregates = {str(row.get("aggregate_name")): row for row in rows if row["run_type"] == "aggregate"}
    runs = [row for row in rows if row["run_type"] != "aggregate"]
    times = [t for t in (_time(row, place) for row in runs) if t is not None]
    found = _figures(aggregates, times, place)
    skipped = _skipped(rows)
    if not found and not runs:
        skipped = skipped or f"of its repetitions only {', '.join(aggregates)} are in the file"
    chosen = aggregates.get("median") or aggregates.get("mean") or rows[0]
    rates = ((kind, number(chosen.get(key)), dimension) for key, (kind, dimension) in _RATES.items())
    first = next(iter(found), "")
    return BenchResult(
        name=name,
        time=found[first] if first and not skipped else None,
        statistic=first,
        also=tuple((said, time) for said, time in found.items() if said != first),
        scatter=_scatter(aggregates, times),
        samples=len(runs) or int(number(chosen.get("repetitions")) or 0),
        rates=tuple((kind, rate, dimension) for kind, rate, dimension in rates if rate is not None),
        skipped=skipped,
    )


def _figures(aggregates: Mapping[str, Row], times: Sequence[float], place: str) -> dict[str, float]:
    """The tool's own figures, or ours of its repetitions; the first is the one that counts."""
    told = {said: _time(aggregates[said], place) for said in ("median", "mean") if said in aggregates}
    ours = (
        {"median": median(times), "mean": fmean(times)} if len(times) > 1 else {"mean": fmean(times)} if times else {}
    )
    whole = {said: told.get(said, ours.get(said)) for said in ("median", "mean")}
    return {said: time for said, time in whole.items() if time is not None}


def _skipped(rows: Sequence[Row]) -> str:
    """Why no time of it counts."""
    failed = next((row for row in rows if row.get("error_occurred") or row.get("skipped")), None)
    return str(failed.get("error_message") or failed.get("skip_message") or "skipped") if failed else ""


def _scatter(aggregates: Mapping[str, Row], times: Sequence[float]) -> float | None:
    if len(times) > 1 and fmean(times) > 0:
        return stdev(times) / fmean(times)
    return number(aggregates["cv"].get("real_time")) if "cv" in aggregates else None


def _time(row: Row, place: str) -> float | None:
    """Wall time, unless the benchmark was told to time by hand, which it writes there too."""
    unit = row.get("time_unit") or "ns"
    if unit not in TIME_UNITS:
        what = f"{row['name']} is timed in {unit!r}; known are {', '.join(TIME_UNITS)}"
        raise PerfgateError("artifact-unreadable", what, place=place)
    return nanoseconds(row.get("real_time"), TIME_UNITS[unit])
