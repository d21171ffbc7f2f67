"""Tests of core/render/words."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_perfgate.adapters.stores.records import Records, read_record, render_record
from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.render.block import render_block
from pytest_perfgate.core.render.html import render_comment, render_html
from pytest_perfgate.core.render.logs import Version, render_entry
from pytest_perfgate.core.render.report import run_document
from pytest_perfgate.core.render.words import (
    bound_text,
    distinct_names,
    edges,
    exact_change,
    note_word,
    pair_of_names,
    plural,
    quantity,
    shown,
    signed,
    value_text,
    writable,
)
from pytest_perfgate.model.measurement import Environment
from pytest_perfgate.model.metric import Interval, Metric, MetricSet
from pytest_perfgate.model.plan import CaseKey, Effect
from pytest_perfgate.model.values import Dimension, first_of
from pytest_perfgate.model.verdict import CaseReport, RunReport, SuiteNote
from pytest_perfgate.plugin.reporting import properties
from tests.unit.core.judge.bench import KINDS, limit, measured


def metric(value: float, low: float | None, high: float = 0.0, dimension: Dimension = Dimension.TIME) -> Metric:
    interval = None if low is None else Interval(low=low, high=high)
    return Metric(name="m", value=value, dimension=dimension, interval=interval)


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (metric(1e3, None), ""),
        (metric(1e3, 1e2, 1e4), "[too wide to say: 2 samples]"),
        (metric(1e3, 1.01e2, 1e4), "[101 ns, 10 µs]"),
        (metric(1e3, 1e2, 0.99e4), "[100 ns, 9.9 µs]"),
        (metric(1e3, 0.0, 6e14), "[too wide to say: 2 samples]"),
        (metric(0.5, 0.0, 1.0, Dimension.FRACTION), "[0 %, 100 %]"),
        (metric(0.0, 0.0, 4.0, Dimension.COUNT), "[0, 4]"),
    ],
)
def test_a_range_nobody_can_use_is_not_written(figure: Metric, text: str) -> None:
    assert edges(figure, change=False, why="2 samples") == text
    assert "too wide" not in edges(figure, change=False, decided=True), "it said enough for a verdict"


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (metric(0.079, 0.071, 0.086), "[+7.1, +8.6]"),
        (metric(0.0, -0.8, 8.9), "[-80.0, +890.0]"),
        (metric(0.0, -0.9, 9.0), "[too wide to say]"),
        (metric(1.0, -0.7, 19.0), "[-70.0, +1,900]"),
        (metric(1.0, -0.8, 19.0), "[too wide to say]"),
    ],
)
def test_a_change_is_wide_as_the_ratio_that_it_is_of(figure: Metric, text: str) -> None:
    assert edges(figure, change=True) == text


SAID = "perfgate failed while it"
CODE = "[showing-failed]"


class Wrong:
    """A figure that a plugin brought, which is none."""

    def __float__(self) -> float:
        raise TypeError("no figure")


def report_of(name: str) -> CaseReport:
    measurement = replace(measured(1e6), key=CaseKey(nodeid=f"t.py::{name}"))
    return judge(measurement, [limit("time <= 2us")], baseline=None, context=JudgeContext(kinds=KINDS))


def broken(report: CaseReport) -> CaseReport:
    """The same with a figure that nothing can show."""
    assert report.measurement is not None
    one = replace(report.measurement.metrics.metrics[0], value=cast("float", Wrong()))
    metrics = MetricSet(metrics=(one, *report.measurement.metrics.metrics[1:]))
    verdicts = tuple(replace(v, metric=one) for v in report.verdicts)
    return replace(report, verdicts=verdicts, measurement=replace(report.measurement, metrics=metrics))


GOOD, BAD = report_of("test_good"), broken(report_of("test_bad"))
RUN = RunReport(cases=(BAD, GOOD), environment=Environment(), mode="full", started="2026-01-01T00:00:00+00:00")


def test_its_block_says_what_it_came_to_and_why_there_is_no_more() -> None:
    block = render_block(BAD)
    assert block.startswith(
        "BROKEN     t.py::test_bad   limit time <= 2us\n  why   perfgate failed while it showed this: "
    )
    assert block.endswith(f"{CODE}\n")
    assert "(words.py:" in block or "(test_words.py:" in block


@pytest.mark.parametrize(
    "rendered",
    [
        lambda: render_html(run_document(RUN)),
        lambda: render_comment(RUN),
        lambda: render_entry(Version(name="v"), RUN.cases),
        lambda: render_entry(Version(name="v"), (BAD, *[GOOD] * 5)),
        lambda: "\n".join(f"{name} {text}" for name, text in properties(RUN.cases)),
    ],
)
def test_every_rendering_has_both(rendered: Any) -> None:
    text = rendered()
    assert SAID in text
    assert CODE in text
    assert "1 ms" in text or "time_ns 1e+06" in text, "the other is shown"


def test_a_record_keeps_what_it_came_to(tmp_path: Path) -> None:
    path = Records(tmp_path).write(RUN)
    bad, good = read_record(path).cases
    assert good == GOOD
    assert (bad.key, bad.effect, bad.measurement) == (BAD.key, Effect.FAIL, None)
    assert "wrote this" in bad.problems[0].what
    assert CODE.encode() in render_record(RUN)


def test_a_fault_that_cannot_say_what_it_is_is_named() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError

    def render() -> str:
        raise MuteError

    assert shown(render, str).startswith(
        "perfgate failed while it showed this: MuteError: it does not say what (test_words.py"
    )
    assert isinstance(GOOD.verdicts[0].metric, Metric)


BLOCK = "time  3 µs … ≤ 4\n  why   ü"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", BLOCK),
        (None, BLOCK),
        ("no such encoding", BLOCK),
        ("ascii", "time  3 us ... <= 4\n  why   \\xfc"),
        ("latin-1", "time  3 us ... <= 4\n  why   ü"),
    ],
)
def test_a_block_keeps_its_lines_whatever_letters_a_terminal_has(encoding: str | None, shown: str) -> None:
    assert writable(BLOCK, encoding) == shown


@pytest.mark.parametrize(
    ("number", "dimension", "text"),
    [
        (412_310.0, Dimension.TIME, "412.3 µs"),
        (999_999.9, Dimension.TIME, "1 ms"),
        (0.4, Dimension.TIME, "0.4 ns"),
        (2.5e9, Dimension.TIME, "2.5 s"),
        (0.6634, Dimension.FRACTION, "66.34 %"),
        (-1e-16, Dimension.FRACTION, "0 %"),
        (-2.5e-8, Dimension.FRACTION, "-0.0000025 %"),
        (4.8e12, Dimension.BANDWIDTH, "4.8 TB/s"),
        (989.4e12, Dimension.FLOPS, "989.4 TFLOPS"),
        (51.58e9, Dimension.WORK, "51.58 GFLOP"),
        (1536.0, Dimension.BYTES, "1.5 KiB"),
        (1234567.0, Dimension.COUNT, "1,234,567"),
        (1.5e9, Dimension.CLOCK, "1.5 GHz"),
        (692.769, Dimension.INTENSITY, "692.8 FLOP/B"),
        (0.0, Dimension.TIME, "0 ns"),
        (-1500.0, Dimension.TIME, "-1.5 µs"),
        (None, Dimension.TIME, "not collected"),
        (math.nan, Dimension.FRACTION, "not collected"),
        (math.inf, Dimension.RATIO, "inf"),
        (1.7, Dimension.RATIO, "1.7x"),
        (61.0, Dimension.TEMPERATURE, "61 °C"),
        (3.25, Dimension.PLAIN, "3.25"),
        (1e-6, Dimension.PLAIN, "0.000001"),
        (2.9802e-8, Dimension.PLAIN, "2.98e-08"),
        (-2e-12, Dimension.PLAIN, "-2e-12"),
        (5e299, Dimension.TIME, "5.000e+290 s"),
        (1e300, Dimension.COUNT, "1.000e+300"),
    ],
)
def test_numbers_read_as_people_write_them(number: float | None, dimension: Dimension, text: str) -> None:
    assert quantity(number, dimension) == text


def test_changes_carry_their_sign() -> None:
    assert signed(0.079) == "+7.9 %"
    assert signed(-0.021) == "-2.1 %"
    assert [signed(far) for far in (9.999, 10.0, 18.594)] == ["+999.9 %", "+1,000 %", "+1,859 %"]
    assert [signed(far) for far in (100.0, 366944.273, math.inf)] == ["over 10,000 %"] * 3
    slower = Metric(name="slowdown", value=8.39, dimension=Dimension.FRACTION)
    assert value_text(slower) == "+839.0 %"


@pytest.mark.parametrize(
    ("number", "text"), [(0.25, "+25 %"), (0.005, "+0.5 %"), (0.0, "0 %"), (-0.1, "-10 %"), (0.1 + 0.2, "+30 %")]
)
def test_a_limit_on_a_change_has_a_sign_and_only_the_digits_it_was_given(number: float, text: str) -> None:
    assert exact_change(number) == text
    slowdown = replace(limit("slowdown <= 3%"), bound=number)
    assert bound_text(slowdown) == text


def test_a_noun_follows_its_count() -> None:
    assert [plural(n, "case") for n in (0, 1, 2)] == ["0 cases", "1 case", "2 cases"]
    assert plural(2000, "process", "processes") == "2,000 processes"


def test_of_many_names_the_first_are_said_and_the_others_counted() -> None:
    assert first_of([], 2) == ""
    assert first_of(["a", "b"], 2) == "a, b"
    assert first_of(["a", "b", "c", "d"], 2) == "a, b and 2 more"


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/x/a.json"], ("a.json",)),
        (["/x/a.json", "y/b.json"], ("a.json", "b.json")),
        (["/x/a.json", "/y/a.json"], ("x/a.json", "y/a.json")),
        (["/1/x/a.json", "/2/x/a.json", "/2/x/b.json"], ("1/x/a.json", "2/x/a.json", "2/x/b.json")),
        (["a.json", "x/a.json"], ("a.json", "x/a.json")),
        (["a.json", "a.json"], ("a.json", "a.json")),
        ([], ()),
    ],
)
def test_files_of_one_name_are_distinct_names_by_their_folders(paths: list[str], names: tuple[str, ...]) -> None:
    assert distinct_names(paths) == names


@pytest.mark.parametrize(
    ("number", "dimension", "noun", "text"),
    [
        (4.0858e6, Dimension.RATE, "tokens/s", "4.086 Mtokens/s"),
        (8192.4, Dimension.RATE, "tokens/s", "8,192 tokens/s"),
        (0.5, Dimension.RATE, "steps/s", "0.5 steps/s"),
        (8192.4, Dimension.RATE, "", "8.192 k/s"),
        (6.855e13, Dimension.FLOPS, "OPS", "68.55 TOPS"),
    ],
)
def test_a_rate_names_what_it_counts(number: float, dimension: Dimension, noun: str, text: str) -> None:
    """A limit reads each of them: a k before items could be one of their letters."""
    assert quantity(number, dimension, noun=noun) == text
    metric = Metric(name="rate", value=number, dimension=dimension, note=f"in {noun}; of a test" if noun else "")
    assert value_text(metric) == text


def test_two_sides_are_distinct_names_too() -> None:
    assert pair_of_names(["/x/a", "/x/b"], ["/y/a"]) == "x/a, x/b against y/a"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("peak_memory <= 20MB", "20 MB"),
        ("peak_memory <= 1.5 GB", "1.5 GB"),
        ("peak_memory <= 96KiB", "96 KiB"),
        ("comm_bytes == 720_897 B", "720,897 B"),
        ("op_flops == 16_777_217 FLOP", "16,777,217 FLOP"),
        ("time <= 2ms", "2 ms"),
        ("tflops >= 200 TOPS", "200 TOPS"),
        ("tflops >= 200 TFLOPS", "200 TFLOPS"),
        ("throughput >= 5_000 tokens/s", "5,000 tokens/s"),
        ("throughput >= 1.5Mtokens/s", "1.5 Mtokens/s"),
        ("throughput >= 2e6 tokens/s", "2 M/s"),
        ("throughput >= 2e6/s", "2 M/s"),
        ("bandwidth >= 5 GB/s", "5 GB/s"),
    ],
)
def test_a_bound_is_shown_in_the_unit_in_which_it_was_written(text: str, shown: str) -> None:
    assert bound_text(limit(text)) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("peak_memory <= 1MB", "1.6 MB"),
        ("peak_memory <= 1 MiB", "1.526 MiB"),
        ("peak_memory <= 0 MB", "1.6 MB"),
        ("peak_memory <= 1_600_001 B", "1,600,000 B"),
    ],
)
def test_a_figure_in_bytes_has_the_unit_of_its_limit(text: str, shown: str) -> None:
    metric = Metric(name="peak_memory", value=1.6e6, dimension=Dimension.BYTES)
    assert value_text(metric, limit=limit(text)) == shown
    metric = replace(metric, interval=Interval(low=1.6e6, high=1.6e6))
    assert edges(metric, change=False, limit=limit(text)) == f"[{shown}, {shown}]"


def test_a_note_that_says_that_it_passed_says_so_once() -> None:
    passed = SuiteNote(kind="family mean", effect=Effect.PASS, text="passed: t: mean(slowdown) <= 2%: +0.1 %")
    lost = SuiteNote(kind="nowhere", effect=Effect.WARN, text="time <= 1ms applied to no case of this run")
    assert (note_word(passed), note_word(lost)) == ("", "warn")
    comment = render_comment(replace(RUN, notes=(passed, lost)))
    assert "\n- passed: " in comment
    assert "\n- **warn** time" in comment
