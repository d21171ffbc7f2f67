"""One case that cannot be shown says so in its place, in every rendering, and the others are shown whole."""

from __future__ import annotations

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
from pytest_perfgate.core.render.words import shown
from pytest_perfgate.model.measurement import Environment
from pytest_perfgate.model.metric import Metric, MetricSet
from pytest_perfgate.model.plan import CaseKey, Effect
from pytest_perfgate.model.verdict import CaseReport, RunReport
from pytest_perfgate.plugin.reporting import properties
from tests.unit.core.gate.bench import KINDS, limit, measured

SAID = "perfgate failed while it"
CODE = "[showing-failed]"


class Wrong:
    """A figure that a plugin brought, which is none."""

    def __float__(self) -> float:
        raise TypeError("no figure")


def report_of(name: str) -> CaseReport:
    found = replace(measured(1e6), key=CaseKey(nodeid=f"t.py::{name}"))
    return judge(found, [limit("time <= 2us")], baseline=None, context=JudgeContext(kinds=KINDS))


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
    assert "(quantity.py:" in block or "(test_guard.py:" in block


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
        "perfgate failed while it showed this: MuteError: it does not say what (test_g"
    )
    assert isinstance(GOOD.verdicts[0].metric, Metric)
