"""Exports of runs: OpenMetrics, Bencher, PyTorch's benchmark database, a table of every figure, what was accepted."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_perfgate.model.measurement import HistoryEntry, Measurement, short_commit
from pytest_perfgate.model.metric import Cell, Column, Metric, Table
from pytest_perfgate.model.plan import Effect
from pytest_perfgate.model.values import Dimension

if TYPE_CHECKING:
    from pytest_perfgate.core.judge.acceptance import Proposal
    from pytest_perfgate.core.judge.accepted_line import FigureStep
    from pytest_perfgate.model.measurement import Baseline
    from pytest_perfgate.model.plan import CaseKey
    from pytest_perfgate.model.verdict import CaseReport, RunReport

    Lines = Mapping[tuple[CaseKey, str], Baseline]

_BASE: Mapping[Dimension, tuple[str, float]] = {
    Dimension.TIME: ("seconds", 1e-9),
    Dimension.FRACTION: ("ratio", 1.0),
    Dimension.RATIO: ("ratio", 1.0),
    Dimension.BYTES: ("bytes", 1.0),
    Dimension.BANDWIDTH: ("bytes_per_second", 1.0),
    Dimension.FLOPS: ("flops_per_second", 1.0),
    Dimension.WORK: ("flops", 1.0),
    Dimension.RATE: ("per_second", 1.0),
    Dimension.CLOCK: ("hertz", 1.0),
    Dimension.TEMPERATURE: ("celsius", 1.0),
    Dimension.POWER: ("watts", 1.0),
}
"""Base units of Prometheus, and the factor that converts a figure to them."""

_UNITS: Mapping[Dimension, str] = {
    Dimension.TIME: "ns", Dimension.BYTES: "B", Dimension.BANDWIDTH: "B/s", Dimension.FLOPS: "FLOP/s",
    Dimension.WORK: "FLOP", Dimension.RATE: "1/s", Dimension.CLOCK: "Hz", Dimension.POWER: "W",
    Dimension.TEMPERATURE: "°C", Dimension.INTENSITY: "FLOP/B",
}  # fmt: skip

_LONGEST_NAME, _LONGEST_MEASURE = 1024, 64
"""The units of Bencher."""


def _measured(report: RunReport) -> Iterator[tuple[CaseReport, Measurement, list[Metric]]]:
    """Yield each case with its finite figures; a slowdown is the one that was judged, as in every report."""
    for case in report.cases:
        if case.measurement is not None and not case.problems:
            judged = [verdict.metric for verdict in case.verdicts if verdict.metric is not None]
            slowdowns = {metric.labels: metric for metric in judged if metric.name == "slowdown"}
            metrics = [
                slowdowns.get(m.labels, m) if m.name == "slowdown" else m for m in case.measurement.metrics.metrics
            ]
            yield case, case.measurement, [m for m in metrics if all(map(math.isfinite, (m.value, m.low, m.high)))]


def _scoped(metric: Metric) -> str:
    """Return the name of a figure with its scope, as a limit writes it."""
    scope = ", ".join(f"{name}={text}" for name, text in metric.labels)
    return f"{metric.name}({scope})" if scope else metric.name


def render_openmetrics(report: RunReport) -> str:
    """Return text for GitLab's metrics report and Prometheus: a gauge for each metric, in base units."""
    # Commit and run are not labels, because a series continues from run to run.
    families: dict[tuple[str, str], list[str]] = {}
    failed: dict[str, int] = {}
    for case in report.cases:
        device = {"device": case.device} if case.measurement is not None else {}
        labels_of_case = _labels({"case": str(case.key), **device})
        failed[labels_of_case] = max(failed.get(labels_of_case, 0), int(case.effect is Effect.FAIL))
    for case, measurement, metrics in _measured(report):
        where = {"case": str(case.key), "device": measurement.device.key}
        for metric in metrics:
            unit, factor = _BASE.get(metric.dimension, ("", 1.0))
            name = "_".join(filter(None, ("perfgate", re.sub(r"[^a-zA-Z0-9_]", "_", metric.name), unit)))
            labels = {**{_label(label): text for label, text in metric.labels}, **where}
            families.setdefault((name, unit), []).append(f"{name}{_labels(labels)} {metric.value * factor:.9g}")
    if failed:
        families["perfgate_failed", ""] = [f"perfgate_failed{labels} {code}" for labels, code in failed.items()]
    lines = []
    for (name, unit), samples in families.items():
        lines += [f"# TYPE {name} gauge", *([f"# UNIT {name} {unit}"] if unit else []), *dict.fromkeys(samples)]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _label(name: str) -> str:
    """Return a valid label; ``case`` and ``device`` are reserved for the measurement."""
    plain = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    return f"of_{plain}" if plain in {"case", "device"} or not plain[:1].isalpha() else plain


def _labels(labels: Mapping[str, str]) -> str:
    escaped = (
        (name, text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"'))
        for name, text in sorted(labels.items())
    )
    return "{" + ",".join(f'{name}="{text}"' for name, text in escaped) + "}"


def _names(report: RunReport) -> Callable[[CaseReport, Measurement], str]:
    """Return the name of a case for a store without a column for the device."""
    several = len({measurement.device.key for _, measurement, _ in _measured(report)}) > 1
    return lambda case, measurement: f"{case.key} on {measurement.device.key}" if several else str(case.key)


def render_bencher(report: RunReport) -> str:
    """Return Bencher Metric Format: a benchmark for each case, with its time as ``latency`` in nanoseconds."""
    named = _names(report)
    benchmarks: dict[str, dict[str, dict[str, float]]] = {}
    for case, measurement, metrics in _measured(report):
        measures = benchmarks.setdefault(named(case, measurement)[-_LONGEST_NAME:], {})
        for metric in metrics:
            measure = "latency" if metric.name == "time" and not metric.labels else _scoped(metric)
            bounds = {"lower_value": metric.low, "upper_value": metric.high} if metric.interval else {}
            measures[measure[:_LONGEST_MEASURE]] = {"value": metric.value, **bounds}
    return _json(benchmarks)


def render_pytorch(report: RunReport) -> str:
    """Return a list of figures in the third form of PyTorch's benchmark database."""
    environment = report.environment
    rows = [
        {
            "benchmark": {
                "name": "pytest-perfgate", "mode": report.mode,
                "dtype": measurement.work.dtype if measurement.work else "",
                "extra_info": {
                    "device": measurement.device.key, "outcome": case.worst.value, "started": report.started,
                    "commit": environment.commit, "measured_with": measurement.identity.text(),
                },
            },
            "model": {"name": str(case.key), "type": "test", "backend": measurement.identity.timer},
            "metric": {
                "name": _scoped(metric), "benchmark_values": [metric.value],
                "extra_info": _extra(metric),
            },
            "runners": [{"name": measurement.device.name, "type": measurement.device.key}],
            "dependencies": {name: {"version": version} for name, version in environment.packages},
        }
        for case, measurement, metrics in _measured(report)
        for metric in metrics
    ]  # fmt: skip
    return _json(rows)


def _unit(metric: Metric) -> str:
    return _UNITS.get(metric.dimension, metric.dimension.value)


def _extra(metric: Metric) -> dict[str, str | float]:
    bounds = {"low": metric.low, "high": metric.high} if metric.interval else {}
    return {"unit": _unit(metric), **bounds}


def render_action(report: RunReport) -> str:
    """Return the times for github-action-benchmark, as its ``customSmallerIsBetter``."""
    rows, named = [], _names(report)
    for case, measurement, metrics in _measured(report):
        time = next((m for m in metrics if m.name == "time" and not m.labels), None)
        if time is not None:
            spread = {"range": f"± {(time.high - time.low) / 2:.4g}"} if time.interval else {}
            extra = f"{measurement.device.key}, {case.worst.value}"
            rows.append({"name": named(case, measurement), "unit": "ns", "value": time.value, **spread, "extra": extra})
    return _json(rows)


FORMS: Mapping[str, Callable[[RunReport], str]] = {
    "openmetrics": render_openmetrics,
    "bencher": render_bencher,
    "pytorch": render_pytorch,
    "github-action-benchmark": render_action,
}
"""Renderers by the name in ``perfgate report --to NAME:FILE``."""


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def figures_table(entries: Iterable[HistoryEntry]) -> Table:
    """Return a row for each figure, of a run or of a history, for spreadsheets, notebooks or data lakes."""
    rows: list[tuple[Cell, ...]] = [
        (
            s.when, short_commit(s.commit, 40), s.run, s.host, s.device, s.card, str(s.key), s.outcome, metric.name,
            ", ".join(f"{name}={text}" for name, text in metric.labels), metric.value, *_bounds(metric), _unit(metric),
        )
        for s in entries
        for metric in s.metrics or ((Metric(name="time", value=s.time, dimension=Dimension.TIME),) if s.time else ())
    ]  # fmt: skip
    columns = Column.header(
        "when | commit | run | host | device | card | case | outcome | metric | scope | "
        "value: plain | low: plain | high: plain | unit"
    )
    return Table(columns=columns, rows=tuple(rows))


def _bounds(metric: Metric) -> Sequence[float | None]:
    return (metric.low, metric.high) if metric.interval else (None, None)


def acceptance_json(decisions: Sequence[Proposal]) -> list[dict[str, Any]]:
    """Return what accepting would write, a row a case."""
    from pytest_perfgate.core.render.block import acceptance_warning

    return [
        {
            "case": str(d.report.key),
            "change": d.change.value,
            "before_ns": (d.before.time or None) if d.before else None,
            "twin": str(d.predecessor.key) if d.predecessor else "",
            "after_ns": (d.after.time or None) if d.after else None,
            "figures": [_step_json(step) for step in d.figures],
            "why": d.why,
            "warning": acceptance_warning(d),
        }
        for d in decisions
    ]


def _step_json(step: FigureStep) -> dict[str, Any]:
    figure = step.after or step.before
    return {
        "metric": figure.title if figure else "",
        "before": step.before.value if step.before else None,
        "after": step.after.value if step.after else None,
        "unit": figure.dimension.value if figure else "",
        "worse": step.asks,
    }


def accepted_since(then: Lines, now: Lines) -> Iterator[str]:
    """Yield each value that was accepted between two revisions with its reason, and each line that is gone."""
    from pytest_perfgate.core.render.words import printable

    several = len({device for _, device in (*then, *now)}) > 1
    for key, device in sorted({**then, **now}, key=lambda place: (str(place[0]), place[1])):
        before, line = then.get((key, device)), now.get((key, device))
        name = printable(f"{key} on {device}" if several else str(key))
        if line is None:
            yield f"{name}: removed"
        elif before is None or (line.why, line.when) != (before.why, before.when):
            signature = ", ".join(filter(None, (line.when[:10], line.who)))
            yield f"{name}: {', '.join(_accepted_steps(before, line))}; {signature}: {line.why or 'no reason'}"


def _accepted_steps(before: Baseline | None, line: Baseline) -> Iterator[str]:
    """Yield ``3.2 µs -> 1.9 µs (-40.6 %)`` and ``registers 128 -> 130`` of a line against the one before."""
    from pytest_perfgate.core.render.words import quantity, signed

    if line.time:
        now = quantity(line.time, Dimension.TIME)
        then = before.time if before else 0.0
        yield f"{quantity(then, Dimension.TIME)} -> {now} ({signed(line.time / then - 1)})" if then else f"{now} (new)"
    for figure in line.figures:
        earlier = before.figure(figure.name, figure.labels) if before else None
        number = quantity(figure.value, figure.dimension)
        if earlier is None:
            yield f"{figure.title} {number} (new)"
        elif earlier.value != figure.value:
            yield f"{figure.title} {quantity(earlier.value, figure.dimension)} -> {number}"
