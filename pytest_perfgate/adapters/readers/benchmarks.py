"""Results of Google Benchmark, asv, NVBench, pytest-benchmark and hyperfine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product, zip_longest
from math import prod
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from pytest_perfgate.adapters.readers.fields import list_of, mapping, member, nanoseconds, number, objects, read_json
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import BenchFile, BenchReader, BenchResult
from pytest_perfgate.model.values import TIME_UNITS, Dimension

_RATES = {"bytes_per_second": ("bandwidth", Dimension.BANDWIDTH), "items_per_second": ("throughput", Dimension.RATE)}

_FIELDS = {
    *_RATES, "family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations",
    "real_time", "cpu_time", "rms", "cpu_coefficient", "real_coefficient",
}  # fmt: skip
"""The numbers of every row; others are counters of the user, of the processor and of memory."""

_FITS = frozenset({"BigO", "RMS"})
"""Rows of a complexity fit over a family of benchmarks, which are not times of a benchmark."""

_NO_TIME = "its {} is not a time above 0 and below a year"
_SUFFIX = re.compile(r"(?P<run>.+)_(?P<name>mean|median|stddev|cv|BigO|RMS)")

Row = Mapping[str, Any]
Figures = Mapping[str, float | None]


def read_google_benchmark(path: Path) -> BenchFile:
    body, place = read_json(path, "Google Benchmark"), f"{path}: benchmarks"
    rows = objects(member(body, "benchmarks", list, str(path)), place)
    names = {member(row, "name", str, place) for row in rows}
    groups: dict[str, list[Row]] = {}
    for row in (_with_type(row, names) for row in rows):
        if row.get("aggregate_name") not in _FITS:
            groups.setdefault(str(row["run_name"]), []).append(row)
    context = mapping(body.get("context"))
    return BenchFile(
        tool="google-benchmark",
        results=tuple(_google_result(name, one, place) for name, group in groups.items() for one in _families(group)),
        when=str(context.get("date") or ""),
        machine=str(context.get("host_name") or ""),
    )


def _with_type(row: Row, names: set[str]) -> Row:
    """Return a row with its type; before version 1.5, only the end of its name marked an aggregate."""
    name, kind = row["name"], row.get("run_type")
    if row.get("aggregate_name"):
        run = row.get("run_name") or name.removesuffix(f"_{row['aggregate_name']}")
        return {**row, "run_name": run, "run_type": "aggregate"}
    hit = _SUFFIX.fullmatch(name) if kind != "iteration" else None
    has_aggregates = hit and (hit["run"] in names or f"{hit['run']}_stddev" in names or "big_o" in row or "rms" in row)
    if hit and (has_aggregates or kind == "aggregate"):
        return {**row, "run_name": hit["run"], "run_type": "aggregate", "aggregate_name": hit["name"]}
    return {**row, "run_name": row.get("run_name") or name, "run_type": "iteration"}


def _families(rows: Sequence[Row]) -> Sequence[Sequence[Row]]:
    """Separate benchmarks that share a name, by family; before 1.5.3 rows name no family."""
    families: dict[str, list[Row]] = {}
    for row in rows:
        families.setdefault(f"{row.get('family_index')} {row.get('per_family_instance_index')}", []).append(row)
    numbered = [group for group in families.values() if "family_index" in group[0]]
    return numbered if len(numbered) > 1 else [rows]


def _google_result(name: str, rows: Sequence[Row], place: str) -> BenchResult:
    aggregates = {str(row.get("aggregate_name")): row for row in rows if row["run_type"] == "aggregate"}
    runs = [row for row in rows if row["run_type"] != "aggregate"]
    times = [t for t in (_time(row, place) for row in runs) if t is not None]
    figures = _figures(aggregates, times, place)
    skipped = _skipped(rows)
    if not figures:
        partial = f"of its repetitions only {', '.join(aggregates)} are in the file"
        skipped = skipped or (_NO_TIME.format("real_time") if runs else partial)
    chosen = [aggregates[name] for name in ("median", "mean") if name in aggregates][:1] or runs
    numbers = _numbers(chosen)
    rates = ((kind, numbers[key], dimension) for key, (kind, dimension) in _RATES.items() if key in numbers)
    first = next(iter(figures), "")
    return BenchResult(
        name=name,
        time=figures[first] if first and not skipped else None,
        statistic=first,
        also=tuple((statistic, time) for statistic, time in figures.items() if statistic != first),
        scatter=_scatter(aggregates, times),
        samples=len(runs) or int(number(rows[0].get("repetitions")) or 0),
        rates=tuple((kind, rate, dimension) for kind, rate, dimension in rates if rate is None or rate >= 0),
        own=_own({counter: figure for counter, figure in numbers.items() if counter not in _FIELDS}),
        label=next((row["label"] for row in rows if isinstance(row.get("label"), str)), ""),
        skipped=skipped,
    )


def _figures(aggregates: Mapping[str, Row], times: Sequence[float], place: str) -> dict[str, float]:
    """Return the tool's own figures, or ours from its repetitions; the first one counts."""
    computed = {"mean": fmean(times)} if times else {}
    if len(times) > 1:
        computed["median"] = median(times)
    reported = {name: _time(aggregates[name], place) for name in ("median", "mean") if name in aggregates}
    figures = {name: reported.get(name, computed.get(name)) for name in ("median", "mean")}
    return {name: time for name, time in figures.items() if time is not None}


def _numbers(rows: Sequence[Row]) -> dict[str, float | None]:
    """Return the middle of each number of these rows, or that of an aggregate alone; None where one is not finite."""
    columns = {name: [row[name] for row in rows if name in row] for row in rows for name in row if name}
    numeric = {name: column for name, column in columns.items() if {*map(type, column)} <= {int, float}}
    return {name: median(column) if None not in map(number, column) else None for name, column in numeric.items()}


def _own(numbers: Mapping[str, float | None]) -> tuple[tuple[str, float | None, Dimension], ...]:
    return tuple((name, figure, Dimension.PLAIN) for name, figure in numbers.items())


def _skipped(rows: Sequence[Row]) -> str:
    """Return why no time of a benchmark counts."""
    failed = next((row for row in rows if row.get("error_occurred") or row.get("skipped")), None)
    return str(failed.get("error_message") or failed.get("skip_message") or "skipped") if failed else ""


def _scatter(aggregates: Mapping[str, Row], times: Sequence[float]) -> float | None:
    if len(times) > 1 and fmean(times) > 0:
        return stdev(times) / fmean(times)
    return number(aggregates["cv"].get("real_time")) if "cv" in aggregates else None


def _time(row: Row, place: str) -> float | None:
    """Return the wall time, or the manual time of a benchmark, which is in the same field."""
    unit = row.get("time_unit") or "ns"
    if unit not in ("ns", "us", "ms", "s"):
        what = f"{row['name']} is timed in {unit!r}; Google Benchmark writes ns, us, ms, s"
        raise PerfgateError("artifact-unreadable", what, place=place)
    return nanoseconds(row.get("real_time"), TIME_UNITS[unit])


_MOST = 100_000
"""The most combinations of a benchmark's parameters: a file of a kilobyte could name billions."""


def read_asv(path: Path) -> BenchFile:
    """Return the times of a file, its memory, and its tracked numbers, whose units it does not name."""
    body, place = read_json(path, "asv"), f"{path}: results"
    columns = body.get("result_columns") or ["result", "params"]
    if not isinstance(columns, list) or "result" not in columns or not all(isinstance(one, str) for one in columns):
        raise PerfgateError("artifact-unreadable", "result_columns names no result", place=str(path))
    rows = member(body, "results", dict, str(path))
    return BenchFile(
        tool="asv",
        results=tuple(result for name, row in rows.items() for result in _asv_results(name, row, columns, place)),
        commit=str(body.get("commit_hash") or ""),
        when=_date(body.get("date")),
        machine=str(mapping(body.get("params")).get("machine") or ""),
    )


def _asv_results(name: str, row: Any, columns: list[str], place: str) -> Iterator[BenchResult]:
    """Yield a result for each combination of parameters; none for a benchmark that failed in all."""
    values, params, repeats = _asv_fields(row, columns)
    if not isinstance(params, list) or not all(isinstance(axis, list) for axis in params):
        raise PerfgateError("artifact-unreadable", f"the parameters of {name} are no lists", place=place)
    count, listed = prod(map(len, params)), values if isinstance(values, list) else [values]
    own = name.rpartition(".")[2]
    timed, in_bytes = (own.lower().startswith(starts) for starts in ("time", ("mem", "peakmem")))
    if len(listed) > count or count > _MOST:
        what = f"{name} has {len(listed)} results of {count:,} combinations of parameters"
        raise PerfgateError("artifact-unreadable", what, place=place)
    for at, (combination, value) in enumerate(zip_longest(product(*params), listed)):
        time, figure = nanoseconds(value) if timed else None, number(value)
        lost = "skipped by its setup" if isinstance(value, float) else "failed"  # as asv reads NaN
        why = lost if figure is None else _NO_TIME.format("result") if timed and time is None else ""
        yield BenchResult(
            name=f"{name}[{'-'.join(map(str, combination))}]" if combination else name,
            time=time,
            samples=int(number(repeats[at]) or 0) if at < len(repeats) else 0,
            own=() if timed else ((own, figure, Dimension.BYTES if in_bytes else Dimension.PLAIN),),
            skipped=why,
            timed=timed,
        )


def _asv_fields(row: Any, columns: list[str]) -> tuple[Any, Any, list[Any]]:
    """Return (results, parameters, samples): version 2 has rows with columns, earlier ones a mapping or a number."""
    if isinstance(row, list):
        row = dict(zip(columns, row))
    if not isinstance(row, Mapping):
        return row, [], []
    repeats = row.get("stats_repeat") or [mapping(one).get("repeat") for one in list_of(row.get("stats"))]
    return row.get("result"), row.get("params") or [], list_of(repeats)


def _date(milliseconds: Any) -> str:
    import datetime as dt

    seconds = number(milliseconds)
    try:
        return dt.datetime.fromtimestamp(seconds / 1e3, dt.timezone.utc).isoformat() if seconds else ""
    except (OverflowError, ValueError, OSError):
        return ""


def read_pytest_benchmark(path: Path) -> BenchFile:
    body = read_json(path, "pytest-benchmark")
    commit, benches = mapping(body.get("commit_info")), member(body, "benchmarks", list, str(path))
    return BenchFile(
        tool="pytest-benchmark",
        results=tuple(_pytest_benchmark_result(bench, str(path)) for bench in benches),
        commit=str(commit.get("id") or "").replace("unversioned", ""),  # outside of a repository
        when=str(body.get("datetime") or commit.get("time") or ""),
        machine=_processor_name(body.get("machine_info")),
    )


def _pytest_benchmark_result(bench: Any, place: str) -> BenchResult:
    name = mapping(bench).get("fullname") or member(bench, "name", str, f"{place}: benchmarks")
    stats = member(bench, "stats", dict, f"{place}: benchmarks.'{name}'")
    first = next((statistic for statistic in ("median", "mean") if statistic in stats), "")
    time, mean, spread = nanoseconds(stats.get(first)), number(stats.get("mean")), number(stats.get("stddev"))
    other = nanoseconds(stats.get("mean")) if first == "median" else None
    return BenchResult(
        name=str(name),
        time=time,
        statistic=first,
        also=(("mean", other),) if other is not None and time is not None else (),
        scatter=spread / mean if spread is not None and mean else None,
        samples=int(number(stats.get("rounds")) or 0),
        own=_own(_numbers([mapping(mapping(bench).get("extra_info"))])),
        skipped=_NO_TIME.format(first) if first and time is None else "",
    )


def _processor_name(machine: Any) -> str:
    cpu = mapping(mapping(machine).get("cpu"))
    return str(cpu.get("brand_raw") or cpu.get("brand") or "")


def read_hyperfine(path: Path) -> BenchFile:
    """Return the times of whole commands, from ``--export-json``; one that failed in a run has no time."""
    body, place = read_json(path, "hyperfine"), f"{path}: results"
    rows = [_as_version_1(row, place) for row in objects(member(body, "results", list, str(path)), place)]
    names = [member(row, "command", str, place) for row in rows]
    results = (_hyperfine_result(row, name, names.count(name) > 1, place) for row, name in zip(rows, names))
    when = mapping(body.get("metadata")).get("start_time")
    return BenchFile(tool="hyperfine", results=tuple(results), when=str(when or ""))


def _as_version_1(row: Row, place: str) -> Row:
    """Return one command as hyperfine 1 wrote it; version 2 has a summary of each metric, in seconds and bytes."""
    if "summary" not in row:
        return row
    runs = objects(row.get("measurements"), place)
    parameters = {name: mapping(one).get("value") for name, one in mapping(row.get("parameters")).items()}
    return {
        **member(member(row, "summary", dict, place), "time_wall_clock", dict, place),
        "command": row.get("name") or row.get("command"),
        "summary": row["summary"],
        "parameters": parameters,
        "times": runs,
        "exit_codes": [run.get("exit_code") for run in runs],
    }


_UNITS = {"second": (1e9, Dimension.TIME), "byte": (1.0, Dimension.BYTES)}


def _other_metrics(row: Row) -> Iterator[tuple[str, float, Dimension]]:
    """Yield the other metrics of a command; version 1 has the mean of the times of the processor."""
    summary = {name: mapping(one) for name, one in mapping(row.get("summary")).items() if name != "time_wall_clock"}
    memory = [one for one in map(number, list_of(row.get("memory_usage_byte"))) if one is not None]
    first = {name: {"median": row.get(name), "unit": "second"} for name in ("user", "system")}
    first["memory_usage_byte"] = {"median": median(memory) if memory else None, "unit": "byte"}
    for name, one in (summary if "summary" in row else first).items():
        factor, dimension = _UNITS.get(str(one.get("unit")), (1.0, Dimension.PLAIN))
        if (figure := number(one.get("median"))) is not None:
            yield name, figure * factor, dimension


def _hyperfine_result(row: Row, name: str, repeated: bool, place: str) -> BenchResult:
    """Return one command; parameters that it does not contain, such as those of ``--prepare``, tell it from others."""
    times, codes = list_of(row.get("times")), list_of(row.get("exit_codes"))
    values = ", ".join(f"{one} = {text}" for one, text in mapping(row.get("parameters")).items()) if repeated else ""
    bench = {"name": f"{name} ({values})" if values else name, "stats": {**row, "rounds": len(times)}}
    result = replace(_pytest_benchmark_result(bench, place), own=tuple(_other_metrics(row)))
    failed = next((f"exit code {code}" if code is not None else "ended by a signal" for code in codes if code != 0), "")
    return replace(result, time=None, also=(), skipped=f"a run failed: {failed}") if failed else result


_TIMES = {
    "nv/cold/time/gpu/median": "median",
    **dict.fromkeys(("nv/cold/time/gpu/mean", "Average GPU Time (Cold)"), "mean"),
    **dict.fromkeys(("nv/batch/time/gpu/mean", "Average GPU Time (Batch)"), "mean, back to back"),
    "nv/cold/time/cpu/median": "median, on the host",
    **dict.fromkeys(("nv/cold/time/cpu/mean", "Average CPU Time (Cold)"), "mean, on the host"),
    "nv/cpu_only/time/cpu/median": "median, on the host",
    "nv/cpu_only/time/cpu/mean": "mean, on the host",
}

_NVBENCH_RATES = {
    "nv/cold/bw/global/bytes_per_second": ("bandwidth", Dimension.BANDWIDTH),
    "nv/cpu_only/bw/global/bytes_per_second": ("bandwidth", Dimension.BANDWIDTH),
    "Average Global Memory Throughput": ("bandwidth", Dimension.BANDWIDTH),
    "nv/cold/bw/item_rate": ("throughput", Dimension.RATE),
    "nv/cpu_only/bw/item_rate": ("throughput", Dimension.RATE),
    "Element Throughput": ("throughput", Dimension.RATE),
}

_OLD = {on: (f"{on} Relative Standard Deviation (Cold)", "Number of Samples (Cold)") for on in ("GPU", "CPU")}


def read_nvbench(path: Path) -> BenchFile:
    """Return the results of all versions: summaries as a list with tags, or older ones with names as keys."""
    body, place = read_json(path, "NVBench"), str(path)
    devices = {str(one.get("id")): str(one.get("name", "")) for one in map(mapping, list_of(body.get("devices")))}
    benches = member(body, "benchmarks", list, place)
    results = tuple(result for bench in benches for result in _nvbench_results(bench, devices, place))
    return BenchFile(tool="nvbench", results=results, machine=", ".join(filter(None, devices.values())))


def _nvbench_results(bench: Any, devices: Mapping[str, str], place: str) -> Iterator[BenchResult]:
    title = member(bench, "name", str, f"{place}: benchmarks")
    where = f"{place}: {title}"
    states = bench.get("states")
    if isinstance(states, Mapping):
        states = [{"name": name, **state} if isinstance(state, Mapping) else state for name, state in states.items()]
    for state in objects(states, f"{where}: states"):
        name = _state_name(state)
        summaries = dict(_summaries(state.get("summaries"), f"{where}[{name}]: summaries"))
        card = devices.get(str(state.get("device")), "")
        yield _nvbench_result(f"{title}[{name}]" if name else title, state, summaries, card)


def _state_name(state: Mapping[str, Any]) -> str:
    """Return the state's name, or what older versions have instead."""
    listed = [f"{axis.get('name')}={axis.get('value')}" for axis in map(mapping, list_of(state.get("axis_values")))]
    return str(state.get("name") or state.get("description") or " ".join(listed))


def _nvbench_result(name: str, state: Mapping[str, Any], figures: Figures, device: str) -> BenchResult:
    tag = next((tag for tag in _TIMES if tag in figures), "")
    noise, count = _companion_tags(tag)
    tagged = any(one.startswith("nv/") for one in figures)  # earlier versions have names alone, also of their own
    time, skipped = nanoseconds(figures.get(tag)), ""
    if state.get("is_skipped"):
        time, skipped = None, str(state.get("skip_reason") or "skipped")
    elif tag and time is None:
        skipped = _NO_TIME.format(tag)
    others = ((_TIMES[other], nanoseconds(figures[other])) for other in _TIMES if other in figures and other != tag)
    return BenchResult(
        name=name,
        time=time,
        statistic=_TIMES.get(tag, ""),
        also=tuple((statistic, other) for statistic, other in others if other is not None and time is not None),
        scatter=figures.get(noise),
        samples=int(figures.get(count) or 0),
        device=device,
        rates=tuple(
            (_NVBENCH_RATES[tag][0], rate, _NVBENCH_RATES[tag][1])
            for tag, rate in figures.items()
            if tag in _NVBENCH_RATES and rate and rate > 0
        ),
        own=_own({one: figure for one, figure in figures.items() if tagged and not one.startswith("nv/")}),
        skipped=skipped,
    )


def _companion_tags(tag: str) -> tuple[str, str]:
    """Return the tags of the relative deviation and the number of samples that belong to a time."""
    if not tag.startswith("nv/"):
        return _OLD.get(tag.removeprefix("Average ")[:3], ("", "")) if tag.endswith("(Cold)") else ("", "")
    clock, _, _ = tag.rpartition("/")
    return f"{clock}/stdev/relative", f"{clock.partition('/time/')[0]}/sample_size"


def _summaries(summaries: Any, place: str) -> Iterator[tuple[str, float | None]]:
    """Yield (tag or name, number) of every summary; a number that is not finite becomes None."""
    if isinstance(summaries, Mapping):
        summaries = [{"tag": name, **mapping(summary)} for name, summary in summaries.items()]
    for summary in objects(summaries, place):
        tag = str(summary.get("tag") or summary.get("name") or "")
        if "value" in mapping(summary.get("value")):
            yield tag, number(summary["value"]["value"])
            continue
        listed = list_of(summary.get("data") or summary.get("values"))
        values = [one for one in map(mapping, listed) if one.get("name") == "value"]
        yield tag, number(values[0].get("value")) if values else None


READERS: Mapping[str, BenchReader] = {
    "nvbench": read_nvbench, "pytest-benchmark": read_pytest_benchmark, "google-benchmark": read_google_benchmark,
    "asv": read_asv, "hyperfine": read_hyperfine,
}  # fmt: skip
"""The reader of each tool's files."""
