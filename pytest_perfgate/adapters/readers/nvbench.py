"""NVBench JSON: each state of each benchmark, the device's own time first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.readers.json_text import member, number, read_json
from pytest_perfgate.model.benchmark import BenchFile, BenchResult
from pytest_perfgate.model.quantity import Dimension

_TIMES = (
    ("nv/cold/time/gpu/median", "median"),
    ("nv/cold/time/gpu/mean", "mean"),
    ("Average GPU Time (Cold)", "mean"),
    ("nv/batch/time/gpu/mean", "mean, back to back"),
    ("nv/cold/time/cpu/median", "median, on the host"),
    ("nv/cold/time/cpu/mean", "mean, on the host"),
    ("nv/cpu_only/time/cpu/median", "median, on the host"),
    ("nv/cpu_only/time/cpu/mean", "mean, on the host"),
)
_NOISE = ("nv/cold/time/gpu/stdev/relative", "GPU Relative Standard Deviation (Cold)")
_COUNT = ("nv/cold/sample_size", "Number of Samples (Cold)", "nv/cpu_only/sample_size")
_RATES = {
    "nv/cold/bw/global/bytes_per_second": ("bandwidth", Dimension.BANDWIDTH),
    "Average Global Memory Throughput": ("bandwidth", Dimension.BANDWIDTH),
    "nv/cold/bw/item_rate": ("throughput", Dimension.RATE),
    "Element Throughput": ("throughput", Dimension.RATE),
}


def read_nvbench(path: Path) -> BenchFile:
    """Both forms: summaries as a list with tags, and the older one with names as keys."""
    body = read_json(path, "NVBench")
    devices = {d.get("id"): str(d.get("name", "")) for d in body.get("devices", ()) if isinstance(d, dict)}
    benches = member(body, "benchmarks", list, str(path))
    results = tuple(result for bench in benches for result in _results(bench, devices, str(path)))
    return BenchFile(tool="nvbench", results=results, machine=", ".join(devices.values()))


def _results(bench: Any, devices: Mapping[Any, str], place: str) -> Iterator[BenchResult]:
    title = member(bench, "name", str, f"{place}: benchmarks")
    states = bench.get("states") or []
    named = states.items() if isinstance(states, dict) else ((s.get("name", ""), s) for s in states)
    for name, state in named:
        found = dict(_summaries(state.get("summaries") or []))
        time, statistic = next(((found[tag], said) for tag, said in _TIMES if tag in found), (None, ""))
        yield BenchResult(
            name=f"{title}[{name}]",
            time=time * 1e9 if time is not None else None,
            statistic=statistic,
            scatter=next((found[tag] for tag in _NOISE if tag in found), None),
            samples=int(next((found[tag] for tag in _COUNT if tag in found), 0)),
            device=devices.get(state.get("device"), ""),
            rates=tuple((_RATES[tag][0], rate, _RATES[tag][1]) for tag, rate in found.items() if tag in _RATES),
            skipped=str(state.get("skip_reason") or "skipped") if state.get("is_skipped") else "",
        )


def _summaries(summaries: Any) -> Iterator[tuple[str, float]]:
    """(tag or name, number) of every summary that holds one."""
    pairs = summaries.items() if isinstance(summaries, dict) else ((s.get("tag", ""), s) for s in summaries)
    for tag, summary in pairs:
        data = summary.get("data") or [summary.get("value") or {}]
        found = number(data[0].get("value")) if data and isinstance(data[0], dict) else None
        if found is not None:
            yield tag, found
