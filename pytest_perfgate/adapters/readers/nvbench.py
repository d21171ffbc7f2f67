"""NVBench JSON: each state of each benchmark, the device's own time first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_perfgate.adapters.readers.json_text import mapping, member, nanoseconds, number, objects, read_json
from pytest_perfgate.model.benchmark import BenchFile, BenchResult
from pytest_perfgate.model.quantity import Dimension

_TIMES = {
    "nv/cold/time/gpu/median": "median",
    "nv/cold/time/gpu/mean": "mean",
    "Average GPU Time (Cold)": "mean",
    "nv/batch/time/gpu/mean": "mean, back to back",
    "Average GPU Time (Batch)": "mean, back to back",
    "nv/cold/time/cpu/median": "median, on the host",
    "nv/cold/time/cpu/mean": "mean, on the host",
    "Average CPU Time (Cold)": "mean, on the host",
    "nv/cpu_only/time/cpu/median": "median, on the host",
    "nv/cpu_only/time/cpu/mean": "mean, on the host",
}
_RATES = {
    "nv/cold/bw/global/bytes_per_second": ("bandwidth", Dimension.BANDWIDTH),
    "nv/cpu_only/bw/global/bytes_per_second": ("bandwidth", Dimension.BANDWIDTH),
    "Average Global Memory Throughput": ("bandwidth", Dimension.BANDWIDTH),
    "nv/cold/bw/item_rate": ("throughput", Dimension.RATE),
    "nv/cpu_only/bw/item_rate": ("throughput", Dimension.RATE),
    "Element Throughput": ("throughput", Dimension.RATE),
}
_OLD = {"GPU": ("GPU Relative Standard Deviation (Cold)", "Number of Samples (Cold)"),
        "CPU": ("CPU Relative Standard Deviation (Cold)", "Number of Samples (Cold)")}  # fmt: skip
Figures = Mapping[str, float | None]


def read_nvbench(path: Path) -> BenchFile:
    """All forms: summaries as a list with tags, and the older ones with names as keys."""
    body, place = read_json(path, "NVBench"), str(path)
    listed = body.get("devices")
    devices = {d.get("id"): str(d.get("name", "")) for d in map(mapping, listed if isinstance(listed, list) else ())}
    benches = member(body, "benchmarks", list, place)
    results = tuple(result for bench in benches for result in _results(bench, devices, place))
    return BenchFile(tool="nvbench", results=results, machine=", ".join(filter(None, devices.values())))


def _results(bench: Any, devices: Mapping[Any, str], place: str) -> Iterator[BenchResult]:
    title = member(bench, "name", str, f"{place}: benchmarks")
    where = f"{place}: {title}"
    states = bench.get("states")
    if isinstance(states, Mapping):
        states = [{"name": name, **state} for name, state in states.items()]
    for state in objects(states, f"{where}: states"):
        name = _name(state)
        found = dict(_summaries(state.get("summaries"), f"{where}[{name}]: summaries"))
        yield _result(f"{title}[{name}]" if name else title, state, found, devices.get(state.get("device"), ""))


def _name(state: Mapping[str, Any]) -> str:
    """Its own name, or what stood for it before states had names."""
    axes = state.get("axis_values")
    listed = [
        f"{axis.get('name')}={axis.get('value')}" for axis in map(mapping, axes if isinstance(axes, list) else ())
    ]
    return str(state.get("name") or state.get("description") or " ".join(listed))


def _result(name: str, state: Mapping[str, Any], found: Figures, device: str) -> BenchResult:
    tag = next((tag for tag in _TIMES if tag in found), "")
    noise, count = _beside(tag)
    time, skipped = nanoseconds(found.get(tag)), ""
    if state.get("is_skipped"):
        time, skipped = None, str(state.get("skip_reason") or "skipped")
    elif tag and time is None:
        skipped = f"its {tag} is no number of seconds"
    others = ((_TIMES[other], nanoseconds(found[other])) for other in _TIMES if other in found and other != tag)
    return BenchResult(
        name=name,
        time=time,
        statistic=_TIMES.get(tag, ""),
        also=tuple((said, other) for said, other in others if other is not None and time is not None),
        scatter=found.get(noise),
        samples=int(found.get(count) or 0),
        device=device,
        rates=tuple((_RATES[tag][0], rate, _RATES[tag][1]) for tag, rate in found.items() if tag in _RATES and rate),
        skipped=skipped,
    )


def _beside(tag: str) -> tuple[str, str]:
    """The tags of the relative deviation and of the number of samples behind a time."""
    if not tag.startswith("nv/"):
        return _OLD.get(tag.removeprefix("Average ")[:3], ("", "")) if tag.endswith("(Cold)") else ("", "")
    clock, _, _ = tag.rpartition("/")
    return f"{clock}/stdev/relative", f"{clock.partition('/time/')[0]}/sample_size"


def _summaries(summaries: Any, place: str) -> Iterator[tuple[str, float | None]]:
    """(tag or name, number) of every summary; one that is not finite is none."""
    if isinstance(summaries, Mapping):
        summaries = [{"tag": name, **mapping(summary)} for name, summary in summaries.items()]
    for summary in objects(summaries, place):
        tag = str(summary.get("tag") or summary.get("name") or "")
        if "value" in mapping(summary.get("value")):
            yield tag, number(summary["value"]["value"])
            continue
        listed = summary.get("data") or summary.get("values")
        values = [one for one in map(mapping, listed if isinstance(listed, list) else ()) if one.get("name") == "value"]
        yield tag, number(values[0].get("value")) if values else None
