from __future__ import annotations

import json
import re
from dataclasses import replace

import jsonschema
import pytest

from pytest_perfgate.app.accepted import entries
from pytest_perfgate.core.render.exports import (
    FORMS,
    accepted_since,
    figures_table,
    render_action,
    render_bencher,
    render_openmetrics,
    render_pytorch,
)
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Baseline, Environment
from pytest_perfgate.model.metric import Figure, Metric, Problem, labels
from pytest_perfgate.model.plan import CaseKey, Effect, Outcome
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import CaseReport, RunReport
from tests.reports import DEVICE, baseline, case, run

OTHER = Device(key="NVIDIA-H100", name="NVIDIA H100", kind="gpu")
MORE = (
    Metric(name="speedup", value=1.5, dimension=Dimension.RATIO, labels=labels(over="torch")),
    Metric(name="peak_memory", value=2.0**20, dimension=Dimension.BYTES),
    Metric(name="my.own", value=7.0, dimension=Dimension.PLAIN, labels=labels(case="x", device='a"\\\nb')),
    Metric(name="mfu", value=float("nan"), dimension=Dimension.FRACTION, labels=labels(of="n")),
)


def with_metrics(report: CaseReport, *metrics: Metric) -> CaseReport:
    measurement = report.measurement
    return replace(
        report,
        measurement=replace(
            measurement, metrics=replace(measurement.metrics, metrics=(*measurement.metrics.metrics, *metrics))
        ),
    )


SLOW = with_metrics(case('test_a["q"\\n]', 2e5, 1e5, Outcome.REGRESSED), *MORE)
RUN = run(
    SLOW, case("test_b", 1e6, 1e6), case("test_c", 1.0, problems=(Problem(code="timer-noise", what="n"),)),
    environment=Environment(python="3.11", commit="c0ffee", packages=(("torch", "2.6.0"),)),
)  # fmt: skip
RUN = replace(RUN, cases=(*RUN.cases[:2], replace(RUN.cases[2], problems=(Problem(code="timer-noise", what="n"),))))
EMPTY = run()

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABELS = rf'\{{{NAME}="(?:[^"\\\n]|\\[\\n"])*"(?:,{NAME}="(?:[^"\\\n]|\\[\\n"])*")*\}}'
SAMPLE = re.compile(rf"({NAME})({LABELS}) (-?\d+(?:\.\d+)?(?:e[+-]\d+)?)")


def families(text: str) -> dict[str, dict[str, float]]:
    """The samples of each family; raises where the text breaks the rules of OpenMetrics."""
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""]
    by_name: dict[str, dict[str, float]] = {}
    current = ""
    for line in lines[:-2]:
        if line.startswith("# TYPE "):
            current, kind = line.removeprefix("# TYPE ").split(" ")
            assert (kind, current in by_name) == ("gauge", False), "a family stands in one place"
            by_name[current] = {}
        elif line.startswith("# UNIT "):
            name, unit = line.removeprefix("# UNIT ").split(" ")
            assert (name, name.endswith(f"_{unit}"), by_name[name]) == (current, True, {})
        else:
            name, own, number = SAMPLE.fullmatch(line).groups()
            assert (name, own in by_name[current]) == (current, False), "a set of labels is there once"
            by_name[current][own] = float(number)
    return by_name


def test_openmetrics_keep_the_rules_and_the_base_units() -> None:
    by_name = families(render_openmetrics(RUN))
    times = by_name["perfgate_time_seconds"]
    assert sorted(times.values()) == pytest.approx([2e-4, 1e-3])
    assert all('device="NVIDIA-H200"' in own and "c0ffee" not in own for own in times)
    assert sorted(by_name["perfgate_failed"].values()) == [0, 0, 1]
    warned = replace(SLOW, verdicts=tuple(replace(one, effect=Effect.WARN) for one in SLOW.verdicts))
    assert list(families(render_openmetrics(run(warned)))["perfgate_failed"].values()) == [0]
    assert list(by_name["perfgate_peak_memory_bytes"].values()) == [2.0**20]
    ((speedup, value),) = by_name["perfgate_speedup_ratio"].items()
    assert (value, 'over="torch"' in speedup) == (1.5, True)
    ((own, _),) = by_name["perfgate_my_own"].items()
    assert r'of_device="a\"\\\nb"' in own
    assert families(render_openmetrics(EMPTY)) == {}


@pytest.mark.parametrize(
    ("dimension", "name", "value", "unit"),
    [
        (Dimension.TIME, "seconds", 2e-9, "ns"),
        (Dimension.FRACTION, "ratio", 2, "fraction"),
        (Dimension.RATIO, "ratio", 2, "ratio"),
        (Dimension.BYTES, "bytes", 2, "B"),
        (Dimension.BANDWIDTH, "bytes_per_second", 2, "B/s"),
        (Dimension.FLOPS, "flops_per_second", 2, "FLOP/s"),
        (Dimension.WORK, "flops", 2, "FLOP"),
        (Dimension.RATE, "per_second", 2, "1/s"),
        (Dimension.CLOCK, "hertz", 2, "Hz"),
        (Dimension.TEMPERATURE, "celsius", 2, "°C"),
        (Dimension.POWER, "watts", 2, "W"),
        (Dimension.COUNT, "", 2, "count"),
    ],
)
def test_each_dimension_has_its_unit(dimension: Dimension, name: str, value: float, unit: str) -> None:
    report = run(with_metrics(case("test_a", 1e5), Metric(name="x", value=2.0, dimension=dimension)))
    family = f"perfgate_x_{name}".rstrip("_")
    assert list(families(render_openmetrics(report))[family].values()) == [value]
    (row,) = (row for row in figures_table(entries(report)).rows if row[8] == "x")
    assert (row[10], row[13]) == (2.0, unit)


def test_a_slowdown_is_the_one_that_was_judged() -> None:
    """The comment says +100 % by two builds; the widget beside it may not say +150 % against the accepted time."""
    stored = Metric(name="slowdown", value=1.5, dimension=Dimension.FRACTION)
    judged = with_metrics(case("test_a", 2e5, 1e5, Outcome.REGRESSED), stored)
    assert list(families(render_openmetrics(run(judged)))["perfgate_slowdown_ratio"].values()) == [1.0]


def test_openmetrics_count_what_failed_without_a_figure() -> None:
    """A case of a lost shard left no sample, so an alert on perfgate_failed stayed silent."""
    lost = replace(SLOW, measurement=None)
    by_name = families(render_openmetrics(run(SLOW, lost, replace(lost, key=CaseKey(nodeid="t.py::b")))))
    assert by_name["perfgate_failed"] == {
        '{case="t.py::b"}': 1,
        r'{case="tests/test_k.py::test_a[\"q\"\\n]"}': 1,
        r'{case="tests/test_k.py::test_a[\"q\"\\n]",device="NVIDIA-H200"}': 1,
    }


BMF = {
    "$schema": "http://json-schema.org/draft-07/schema", "type": "object",
    "patternProperties": {".+": {"type": "object", "minProperties": 1, "patternProperties": {".{1,64}": {
        "type": "object", "required": ["value"], "additionalProperties": False,
        "properties": {name: {"type": "number"} for name in ("value", "lower_value", "upper_value")},
    }}}},
}  # fmt: skip


def test_bencher_reads_it() -> None:
    body = json.loads(render_bencher(RUN))
    jsonschema.validate(body, BMF)
    first = body['tests/test_k.py::test_a["q"\\n]']
    assert first["latency"] == {
        "value": 2e5,
        "lower_value": pytest.approx(1.99e5),
        "upper_value": pytest.approx(2.01e5),
    }
    assert first["speedup(over=torch)"] == {"value": 1.5}
    assert len(body) == 2
    two = json.loads(render_bencher(run(case("test_a", 1e5), case("test_a", 2e5, device=OTHER))))
    assert [(name[-11:], one["latency"]["value"]) for name, one in two.items()] == [
        ("NVIDIA-H200", 1e5),
        ("NVIDIA-H100", 2e5),
    ]


TEXT, OBJECT = {"type": "string"}, {"type": "object"}
PYTORCH = {
    "type": "array",
    "items": {
        "type": "object", "required": ["benchmark", "model", "metric"], "additionalProperties": False,
        "properties": {
            "benchmark": {"type": "object", "required": ["name"], "additionalProperties": False,
                          "properties": {"name": TEXT, "mode": TEXT, "dtype": TEXT, "extra_info": OBJECT}},
            "model": {"type": "object", "required": ["name"], "additionalProperties": False,
                      "properties": {"name": TEXT, "type": TEXT, "backend": TEXT, "origins": {"type": "array"},
                                     "extra_info": OBJECT}},
            "metric": {"type": "object", "required": ["name", "benchmark_values"], "additionalProperties": False,
                       "properties": {"name": TEXT, "target_value": {"type": "number"}, "extra_info": OBJECT,
                                      "benchmark_values": {"type": "array", "items": {"type": "number"}, "minItems": 1}}},
            "runners": {"type": "array", "items": OBJECT}, "inputs": OBJECT, "dependencies": OBJECT,
        },
    },
}  # fmt: skip


def test_the_benchmark_database_of_pytorch_reads_it() -> None:
    rows = json.loads(render_pytorch(RUN))
    jsonschema.validate(rows, PYTORCH)
    time = next(row for row in rows if row["metric"]["name"] == "time")
    assert time["metric"]["benchmark_values"] == [2e5]
    assert time["metric"]["extra_info"] == {"unit": "ns", "low": pytest.approx(1.99e5), "high": pytest.approx(2.01e5)}
    assert (time["benchmark"]["dtype"], time["benchmark"]["extra_info"]["commit"]) == ("bf16", "c0ffee")
    assert time["dependencies"] == {"torch": {"version": "2.6.0"}}
    assert "speedup(over=torch)" in {row["metric"]["name"] for row in rows}


def test_the_action_reads_it() -> None:
    rows = json.loads(render_action(RUN))
    assert [(row["name"][-6:], row["unit"], row["value"]) for row in rows] == [
        ('"q"\\n]', "ns", 2e5),
        ("test_b", "ns", 1e6),
    ]
    assert rows[1]["range"] == "± 5000"
    two = json.loads(render_action(run(case("test_a", 1e5), case("test_a", 2e5, device=OTHER))))
    assert [row["name"][-11:] for row in two] == ["NVIDIA-H200", "NVIDIA-H100"], "one name would be one line"


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("report", [EMPTY, run(replace(SLOW, measurement=None))], ids=["no case", "nothing measured"])
def test_what_was_not_measured_is_not_there(name: str, report: RunReport) -> None:
    text = FORMS[name](report)
    if name == "openmetrics":
        assert list(families(text)) == (["perfgate_failed"] if report.cases else [])
    else:
        assert json.loads(text) in ([], {})


def test_every_figure_has_a_row() -> None:
    table = figures_table(entries(RUN))
    names = [column.name for column in table.columns]
    rows = [dict(zip(names, row)) for row in table.rows]
    assert {row["case"][-6:] for row in rows} == {'"q"\\n]', "test_b"}
    time = rows[0]
    assert (time["metric"], time["value"], time["unit"], time["outcome"]) == ("time", 2e5, "ns", "regressed")
    assert time["low"] < time["value"] < time["high"]
    speedup = next(row for row in rows if row["metric"] == "speedup")
    assert (speedup["scope"], speedup["low"]) == ("over=torch", None)


def spills(value: float) -> tuple[Figure, ...]:
    return (Figure(name="spills", value=value, dimension=Dimension.COUNT),)


LINE = baseline("test_a", 1e6, figures=spills(2))
LATER = replace(LINE, time=1.5e6, when="2026-06-03", who="Ada", why="wider tiles")
SIGNED = "2026-06-03, Ada: wider tiles"


@pytest.mark.parametrize(
    ("then", "now", "text"),
    [
        (LINE, LATER, f"1 ms -> 1.5 ms (+50.0 %); {SIGNED}"),
        (LATER, replace(LINE, when="2026-07-01", why=""), "1.5 ms -> 1 ms (-33.3 %); 2026-07-01: no reason"),
        (LINE, replace(LATER, time=0.0, figures=spills(5)), f"spills 2 -> 5; {SIGNED}"),
        (LINE, replace(LATER, figures=spills(2)), f"1 ms -> 1.5 ms (+50.0 %); {SIGNED}"),
        (None, LATER, f"1.5 ms (new), spills 2 (new); {SIGNED}"),
        (LINE, None, "removed"),
        (LINE, replace(LINE, time=9e6), None),
    ],
    ids=["slower", "faster", "a figure", "the same figure", "new", "gone", "no new reason"],
)
def test_what_was_accepted_since_a_revision(then: Baseline | None, now: Baseline | None, text: str | None) -> None:
    sides = ({} if line is None else {(line.key, DEVICE.key): line} for line in (then, now))
    assert list(accepted_since(*sides)) == ([] if text is None else [f"{LINE.key}: {text}"])


def test_what_was_accepted_on_several_devices_names_them() -> None:
    then = {(LINE.key, key): LINE for key in (DEVICE.key, OTHER.key)}
    now = {(LINE.key, OTHER.key): LATER}
    steps = [step.partition("; ")[0] for step in accepted_since(then, now)]
    assert steps == [
        f"{LINE.key} on NVIDIA-H100: 1 ms -> 1.5 ms (+50.0 %)",
        f"{LINE.key} on NVIDIA-H200: removed",
    ]
