"""Tests of core/render/report."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.judge.policy import CI, OWN_GATE, REGRESSED, exit_code
from pytest_perfgate.core.judge.suite import own_gate_note
from pytest_perfgate.core.render.block import render_block
from pytest_perfgate.core.render.html import render_comment, render_html
from pytest_perfgate.core.render.report import (
    PAGE,
    detectable_cell,
    failed_lines,
    headline,
    rate_table,
    run_document,
    summary_line,
    verdict_table,
)
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.core.render.words import EDITS, other_notes, own_gate_lines
from pytest_perfgate.model.measurement import HistoryEntry
from pytest_perfgate.model.metric import Document, Figure, Interval, Metric, MetricSet, Section
from pytest_perfgate.model.plan import Choice, Effect, Outcome
from pytest_perfgate.model.values import Dimension, first_of
from pytest_perfgate.model.verdict import CaseReport, Excuse, Shard, SuiteNote
from tests.reports import case, run
from tests.unit.core.judge.bench import CONTEXT, accepted, limit, measured

LIMIT = SuiteNote(kind="limits", effect=Effect.WARN, text="1 limit of tests changed", names=("t.py::a: 3% -> 60%",))
QUICK = SuiteNote(kind="quick", effect=Effect.WARN, text="quick mode in CI")
FLOOR = SuiteNote(kind="floor", effect=Effect.WARN, text="1 case passed by the floor alone")


@pytest.mark.parametrize("kind", EDITS)
def test_each_kind_of_edit_is_a_line(kind: str) -> None:
    note = SuiteNote(kind=kind, effect=Effect.WARN, text="what changed", names=("one", "two"))
    assert own_gate_lines((), (note,)) == ((EDITS[kind], "one"), (EDITS[kind], "two"))
    assert own_gate_lines((), (replace(note, names=()),)) == ((EDITS[kind], "what changed"),)
    assert own_gate_lines((), (replace(note, effect=Effect.PASS),)) == (), "a tightened limit edits nothing away"


def test_what_a_run_has_anyway_is_listed_beside_an_edit_only() -> None:
    hidden = replace(case("test_a", 2e6, 1e6, Outcome.REGRESSED), excuse=Excuse.EXPECTED_TO_FAIL)
    assert own_gate_lines((hidden,), (QUICK, FLOOR)) == ()
    assert other_notes((hidden,), (QUICK, FLOOR)) == (QUICK, FLOOR)
    lines = own_gate_lines((hidden,), (FLOOR, QUICK, LIMIT))
    assert [word for word, _ in lines] == ["limit or mark", "xfail hides", "quick mode"]
    assert other_notes((hidden,), (FLOOR, QUICK, LIMIT)) == (FLOOR,)


def test_the_policy_fails_edits_with_one() -> None:
    strict = replace(CI, own_gate=Choice.FAIL)
    assert own_gate_note((LIMIT,), CI) == ()
    assert own_gate_note((QUICK, FLOOR), strict) == (), "a quick run edits nothing"
    (note,) = own_gate_note((LIMIT, QUICK), strict)
    assert (note.kind, note.effect, note.names) == (OWN_GATE, Effect.FAIL, ("limit or mark: t.py::a: 3% -> 60%",))
    assert exit_code((), (LIMIT, note)) == REGRESSED


def test_the_list_comes_first_in_the_comment() -> None:
    slow = case("test_b", 2e6, 1e6, Outcome.REGRESSED)
    text = render_comment(run(slow, notes=(FLOOR, LIMIT)))
    edit = text.index("**This change edits its own gate**\n\n- limit or mark: `t.py::a: 3% -> 60%`")
    assert edit < text.index("1 case:") < text.index("REGRESSED")
    assert "1 limit of tests changed" not in text, "the list has it"


SLOW = case("test_<i>[1]", 1.2e6, 1e6, Outcome.REGRESSED)

ENTRIES = [
    HistoryEntry(key=SLOW.key, device="d", time=1e6 + n * 1e4, when="2026-05-01", commit="c0ffee1") for n in range(9)
]


def test_beside_a_revision_the_table_has_the_other_arm_s_time_and_not_an_accepted_one() -> None:
    verdict = replace(SLOW.verdicts[0], baseline=None, evidence=(("then", "778.3 µs  c0ffee1, beside it"),))
    rows = render_text(run_document(run(replace(SLOW, verdicts=(verdict,)))))
    assert "778.3 µs  1.2 ms" in rows
    assert "  1 ms" not in rows


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ((), "nothing measured"),
        ((case("test_a", 1e6),), "all limits kept"),
        ((replace(case("test_a", 1e6), excuse=Excuse.NOT_RUN),), "nothing measured"),
        ((case("test_a", 1e6), replace(case("test_b", 1e6), excuse=Excuse.NOT_RUN)), "all limits kept, 1 not measured"),
        ((SLOW,), "1 failed"),
        ((replace(SLOW, verdicts=(replace(SLOW.verdicts[0], effect=Effect.WARN),)),), "nothing failed, 1 to look at"),
    ],
)
def test_the_headline(cases: tuple, expected: str) -> None:
    assert headline(run(*cases)) == expected


def test_counts_of_a_large_suite_are_written_alike() -> None:
    report = run(*[case("test_a", 2e6, 1e6, Outcome.REGRESSED)] * 1200)
    assert headline(report) == "1,200 failed"
    assert summary_line(report) == "1,200 cases: 1,200 regressed."
    assert list(failed_lines(report))[-1] == "and 1,180 more"
    assert first_of(["a"] * 1200, 1) == "a and 1,199 more"


def test_the_headline_counts_what_a_person_should_read() -> None:
    note = SuiteNote(kind="dependencies", effect=Effect.WARN, text="declared dependencies changed")
    accepted = case("test_b", 1e6, outcome=Outcome.ACCEPTED)
    assert headline(run(case("test_a", 1e6), accepted, notes=(note,))) == "nothing failed, 2 to look at"


def test_a_collected_test_is_not_said_to_be_not_collected() -> None:
    unmeasured = replace(SLOW.verdicts[0], outcome=Outcome.NOT_MEASURED, metric=None, visible=None, sentence="skipped")
    bare = CaseReport(key=SLOW.key, verdicts=(unmeasured,))
    document = run_document(run(bare, case("test_nan", math.nan)))
    for text in (render_text(document), render_html(document)):
        assert "not collected" not in text
        assert "NOT MEASURED" in text
    assert '<td class="number absent">-</td>' in render_html(document)


def test_a_value_of_two_builds_is_told_from_the_two_times_beside_it() -> None:
    alone = render_text(run_document(run(SLOW)))
    paired = replace(SLOW, verdicts=(replace(SLOW.verdicts[0], rounds=9),))
    text = " ".join(render_text(run_document(run(paired))).split())
    assert "two builds" not in alone
    assert "+20.0 %, two builds" in text
    assert "then is the accepted time, or that of the base, and now is the time of this run" in text


def test_too_few_rounds_of_two_builds_have_no_interval_and_detect_nothing() -> None:
    metric = Metric(
        name="slowdown", value=0.028, dimension=Dimension.FRACTION, interval=Interval(low=0.028, high=0.028)
    )
    fields = {"outcome": Outcome.UNDECIDED, "metric": metric, "visible": 0.15}
    one, seven = (replace(SLOW.verdicts[0], rounds=rounds, **fields) for rounds in (1, 7))
    assert (detectable_cell(one), detectable_cell(seven)) == (None, 0.15)
    first = render_block(replace(SLOW, verdicts=(one,))).splitlines()[0]
    assert "+2.8 %  1 of 7 rounds   limit" in first
    assert "[+2.8" not in first
    assert "[+2.8, +2.8]" in render_block(replace(SLOW, verdicts=(seven,))).splitlines()[0]


def test_what_is_past_counting_has_one_form() -> None:
    far = case("test_far", 4e8, 1e6, Outcome.SUSPECT)
    limit = replace(far.verdicts[0].limit, bound=15.0)
    text = render_text(
        run_document(run(replace(far, verdicts=(replace(far.verdicts[0], limit=limit, visible=399265.0),))))
    )
    assert text.count("over 10,000 %") == 3, "in the block, as the value and as what was visible"
    assert "limit +1,500 %" in text


def test_the_summary_says_what_is_missing() -> None:
    assert summary_line(run()) == "No case was measured."
    assert summary_line(run(SLOW, complete=False, filtered=True)).endswith(
        "this is its part; only the named or selected tests."
    )
    shards = tuple(Shard(index=index, count=2, complete=index == 1) for index in (1, 2))
    assert summary_line(run(SLOW, complete=False, shards=shards)).endswith("; shard 2/2 cut short.")


def test_what_was_accepted_stands_on_top() -> None:
    accepted = replace(
        SLOW, verdicts=(replace(SLOW.verdicts[0], outcome=Outcome.ACCEPTED, effect=Effect.PASS, visible=99.0),)
    )
    note = SuiteNote(kind="unused", effect=Effect.WARN, text="unused", names=("a", "b"))
    text = render_text(run_document(run(accepted, notes=(note,)), {str(SLOW.key): ENTRIES}))
    assert text.index("This change edits its own gate") < text.index("Notes on the suite") < text.index("Verdicts")
    assert f"{SLOW.key}  slowdown <= 3%: " in text, "which case it is"
    assert "9,900 %" in text
    assert "History of test_<i>[1] over 9 runs" in text
    assert "<i>" not in render_html(run_document(run(accepted)))


def test_a_page_leads_with_what_failed_and_its_pictures_and_a_calm_one_with_verdicts() -> None:
    def sections(*cases: CaseReport) -> list[str]:
        return [block.title for block in run_document(run(*cases)).blocks if isinstance(block, Section)]

    calm = case("test_b", 1e6, 1e6)
    assert sections(calm, SLOW) == ["Failures and warnings", "Pictures", "Verdicts", "Machine and versions"]
    assert sections(calm) == ["Verdicts", "Pictures", "Machine and versions"]


def test_the_worst_limit_of_a_case_stands_first() -> None:
    passed = replace(SLOW.verdicts[0], outcome=Outcome.PASSED, effect=Effect.PASS)
    table = verdict_table([replace(SLOW, verdicts=(passed, *SLOW.verdicts))])
    assert [row[0] for row in table.rows] == ["REGRESSED", "PASSED"]


def test_the_run_itself_is_not_among_the_runs_before() -> None:
    slow = case("test_a", 1.2e6, 1e6, Outcome.REGRESSED)
    report = run(slow)
    past = [HistoryEntry(key=slow.key, device="d", time=1e6, when=f"2026-05-0{day}") for day in (1, 2, 3)]
    now = HistoryEntry(key=slow.key, device="d", time=1.2e6, when=report.started)
    text = render_text(run_document(report, {str(slow.key): [*past, now]}))
    assert "3 processes after 3 runs" in text
    assert "History of test_a over 4 runs" in text


def test_then_and_now_of_a_change_are_of_the_figure_and_not_of_the_time() -> None:
    line = accepted(1e6, figures=(Figure(name="registers", value=128, dimension=Dimension.COUNT),))
    read = MetricSet(metrics=(Metric(name="registers", value=130, dimension=Dimension.COUNT),))
    limits = [limit("change(registers) <= 0"), limit("slowdown <= 3%")]
    report = judge(measured(1e6, metrics=read), limits, baseline=line, context=CONTEXT)
    (figure, time) = verdict_table([report]).rows
    assert figure[4:6] == ("128", "130")
    assert time[4:6] == (1e6, 1e6)


def test_a_log_names_what_failed_with_its_device() -> None:
    shards = tuple(Shard(device=device) for device in ("NVIDIA-H200", "NVIDIA-A100"))
    bad = [case(f"test_{n}", 1.2e6, 1e6, Outcome.REGRESSED) for n in range(3)]
    good = case("test_good", 1e6, 1e6)
    lines = list(failed_lines(run(*bad, good, shards=shards), most=2))
    assert [line.split()[:2] for line in lines[:2]] == [["REGRESSED", "test_0"], ["REGRESSED", "test_1"]]
    assert lines[0].endswith("on NVIDIA-H200")
    assert lines[2:] == ["and 1 more"]
    assert list(failed_lines(run(good))) == []
    lost = replace(bad[0], measurement=None)
    assert next(failed_lines(run(lost, shards=shards))).endswith(f"  {lost.verdicts[0].sentence}"), "no device to name"


def test_a_report_draws_every_accepted_figure_over_time() -> None:
    slow = case("test_a", 1.2e6, 1e6, Outcome.REGRESSED)
    registers = Metric(name="registers", value=128, dimension=Dimension.COUNT)
    entries = [
        HistoryEntry(key=slow.key, device="NVIDIA-H200", time=1e6 + at, when=f"2026-05-0{at + 1}", commit="c0ffee1",
                metrics=(replace(registers, value=128 + 2 * (at > 4)),))
        for at in range(9)
    ]  # fmt: skip

    def drawn(one: CaseReport) -> str:
        return render_html(run_document(run(one), {str(slow.key): entries}))

    assert slow.baseline is not None
    figures = (Figure(name="registers", value=128, dimension=Dimension.COUNT),)
    page = drawn(replace(slow, baseline=replace(slow.baseline, figures=figures)))
    assert "accepted 128<" in page
    assert "+1.6 % at c0ffee1" in page
    assert "accepted 128<" not in drawn(slow)


def rated(test: str, device: str = "", **rates: float) -> CaseReport:
    metrics = tuple(
        Metric(name=n, value=v, dimension=Dimension(n.replace("tflops", "flops"))) for n, v in rates.items()
    )
    report = case(test, 1e6)
    measurement = replace(report.measurement, metrics=MetricSet(metrics=metrics))
    if device:
        measurement = replace(measurement, device=replace(measurement.device, key=device))
    return replace(report, measurement=measurement)


def test_calls_that_state_their_work_stand_in_one_table_by_their_rate() -> None:
    slow, fast, copied = rated("a", tflops=1e12), rated("b", tflops=2e12, bandwidth=5e9), rated("c", bandwidth=9e9)
    table = rate_table([slow, copied, fast, case("no_work", 1e6)])
    assert [column.name for column in table.columns] == ["case", "tflops", "bandwidth"]
    assert [(row[0].rpartition("::")[2], *row[1:]) for row in table.rows] == [
        ("b", 2e12, 5e9), ("a", 1e12, None), ("c", None, 9e9),
    ]  # fmt: skip
    assert rate_table([slow, case("no_work", 1e6)]) is None, "one call is told in its own block"
    assert "Rates" in render_text(run_document(run(slow, fast)))
    assert [row[1] for row in rate_table([slow, rated("d", "other", tflops=3e12)]).rows] == [
        "other",
        slow.measurement.device.key,
    ]


def test_a_rate_of_items_is_a_number_in_tables_and_names_its_items_in_texts() -> None:
    """A program that read the CSV or the JSON of a run got the text "2 Mtokens/s"."""

    def counted(test: str, rate: float) -> CaseReport:
        report = case(test, 1e6)
        metric = Metric(name="throughput", value=rate, dimension=Dimension.RATE, note="in tokens/s")
        return replace(report, measurement=replace(report.measurement, metrics=MetricSet(metrics=(metric,))))

    table = rate_table([counted("a", 2e6), counted("b", 3e6)])
    assert json.dumps([row[-1] for row in table.rows]) == "[3000000.0, 2000000.0]"
    assert [f"{row[-1]}" for row in table.rows] == ["3000000.0", "2000000.0"]
    assert "2 Mtokens/s" in render_text(Document(title="t", blocks=(table,)))


def test_a_call_without_a_limit_needs_no_look() -> None:
    free = replace(case("test_eager", 1e6), verdicts=())
    slower = case("test_ours", 1e6, outcome=Outcome.REGRESSED)
    section = next(
        s for s in run_document(run(slower, free)).blocks if getattr(s, "title", "") == "Failures and warnings"
    )
    assert isinstance(section, Section)
    assert len(section.blocks) == 1


def test_a_page_leaves_the_wrapping_of_a_reason_to_the_browser() -> None:
    slow = case("test_a", 2e6, 1e6, Outcome.REGRESSED)
    (verdict,) = slow.verdicts
    page = render_html(run_document(run(replace(slow, verdicts=(replace(verdict, sentence="why " * 60),))), width=PAGE))
    assert "why " * 59 in page
