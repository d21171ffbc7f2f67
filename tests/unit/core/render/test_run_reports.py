"""Reports, pictures, logs and comments of a run: pure text."""

from __future__ import annotations

import math
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from pytest_perfgate.core.analysis.results import Previous, previous_of
from pytest_perfgate.core.judge.acceptance import decide
from pytest_perfgate.core.judge.accepted_line import Signature
from pytest_perfgate.core.render.html import render_comment, render_html
from pytest_perfgate.core.render.logs import (
    Version,
    acceptance_json,
    acceptance_lines,
    bars,
    history_document,
    kept_paragraphs,
    render_entry,
    written,
)
from pytest_perfgate.core.render.pictures import alone, distribution_picture, history_picture, roofline_picture
from pytest_perfgate.core.render.report import headline, run_document, summary_line
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.device import Basis, Roof
from pytest_perfgate.model.measurement import Sitting
from pytest_perfgate.model.metric import Finding, Metric, MetricSet, Picture
from pytest_perfgate.model.plan import Effect, Outcome
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import CaseReport, SuiteNote
from tests.reports import DEVICE, baseline, case, run

SLOW = case("test_<i>[1]", 1.2e6, 1e6, Outcome.REGRESSED)
ROOFED = replace(DEVICE, roofs=(Roof(basis=Basis.CLOCK, compute=(("bf16", 1e15), ("fp32", 6e13)), bandwidth=4.8e12),))
SITTINGS = [
    Sitting(key=SLOW.key, device="d", time=1e6 + n * 1e4, when="2026-05-01", commit="c0ffee1") for n in range(9)
]


def drawn(picture: Picture | None) -> ET.Element:
    assert picture is not None
    return ET.fromstring(picture.svg)


def numbers(svg: ET.Element) -> list[float]:
    return [
        float(v) for node in svg.iter() for name in ("x", "y", "cx", "cy", "width", "height") if (v := node.get(name))
    ]


def test_pictures_are_sound_svg() -> None:
    for picture in (
        distribution_picture(SLOW),
        history_picture(SLOW, SITTINGS),
        roofline_picture([case("test_a", 1e6, device=ROOFED)]),
    ):
        svg = drawn(picture)
        assert all(math.isfinite(n) for n in numbers(svg))
        assert "<i>" not in picture.svg


def test_a_drawing_in_a_file_of_its_own_lies_on_paper_and_needs_no_page_for_its_colours() -> None:
    """`history --svg` was black on whatever the viewer shows behind it, and grey lines were lost without a style."""
    picture = history_picture(SLOW, SITTINGS)
    assert picture is not None
    svg = alone(picture.svg)
    paper, *rest = ET.fromstring(svg)
    assert (paper.get("width"), paper.get("height"), paper.get("fill")) == ("100%", "100%", "#fff")
    assert len(rest) == len(drawn(picture))
    assert "var(" not in svg
    assert "currentColor" not in svg
    assert "#2f6fb7" in svg, "the marks keep their colour"


def test_beside_a_revision_the_table_has_the_other_arm_s_time_and_not_an_accepted_one() -> None:
    verdict = replace(SLOW.verdicts[0], baseline=None, evidence=(("then", "778.3 µs  c0ffee1, beside it"),))
    rows = render_text(run_document(run(replace(SLOW, verdicts=(verdict,)))))
    assert "778.3 µs  1.2 ms" in rows
    assert "  1 ms" not in rows


def test_what_is_counted_has_no_ticks_between_two() -> None:
    """Rows were numbered 0 0 1 2 2 3, and four sittings 1 2 2 2 3 4 4."""

    def ticks(picture: Picture | None) -> list[str]:
        return [text.text or "" for text in drawn(picture).iter() if (text.text or "").isdigit()]

    assert ticks(history_picture(SLOW, SITTINGS[:4])) == ["1", "2", "3", "4"]
    rows = SLOW.measurement.processes if SLOW.measurement else ()
    assert ticks(distribution_picture(SLOW)) == [str(n + 1) for n in range(len(rows))]


@pytest.mark.parametrize("time", [float("nan"), math.inf])
def test_samples_that_are_no_numbers_are_no_picture(time: float) -> None:
    assert distribution_picture(case("test_a", time)) is None
    assert roofline_picture([case("test_a", time, device=ROOFED)]) is None


def test_nothing_is_drawn_of_nothing() -> None:
    bare = replace(SLOW, measurement=None)
    assert distribution_picture(bare) is None
    assert history_picture(SLOW, SITTINGS[:2]) is None
    assert roofline_picture([SLOW]) is None
    assert roofline_picture([]) is None
    assert drawn(distribution_picture(case("test_a", 5.0, spread=0.0))) is not None


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ((), "nothing measured"),
        ((case("test_a", 1e6),), "kept"),
        ((SLOW,), "1 failed"),
        ((replace(SLOW, verdicts=(replace(SLOW.verdicts[0], effect=Effect.WARN),)),), "nothing failed, 1 to look at"),
    ],
)
def test_the_headline(cases: tuple, said: str) -> None:
    assert headline(run(*cases)) == said


def test_a_collected_test_is_not_said_to_be_not_collected() -> None:
    unmeasured = replace(SLOW.verdicts[0], outcome=Outcome.NOT_MEASURED, metric=None, visible=None, sentence="skipped")
    bare = CaseReport(key=SLOW.key, verdicts=(unmeasured,))
    document = run_document(run(bare, case("test_nan", math.nan)))
    for text in (render_text(document), render_html(document)):
        assert "not collected" not in text
        assert "NOT MEASURED" in text
    assert '<td class="number absent">-</td>' in render_html(document)


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
        "this is what it had; some tests were left out."
    )


def test_what_was_accepted_stands_on_top() -> None:
    accepted = replace(
        SLOW, verdicts=(replace(SLOW.verdicts[0], outcome=Outcome.ACCEPTED, effect=Effect.PASS, visible=99.0),)
    )
    note = SuiteNote(kind="unused", effect=Effect.WARN, text="unused", names=("a", "b"))
    text = render_text(run_document(run(accepted, notes=(note,)), {str(SLOW.key): SITTINGS}))
    assert text.index("This change edits its own gate") < text.index("The suite") < text.index("Verdicts")
    assert f"{SLOW.key}  slowdown <= 3%: " in text, "which case it is"
    assert "+9,900 %" in text
    assert "History of test_<i>[1]: 9 runs" in text
    assert "<i>" not in render_html(run_document(run(accepted)))


def test_a_comment_with_many_failures_is_short() -> None:
    report = run(
        *(case(f"test_{n}", 1.2e6, 1e6, Outcome.REGRESSED) for n in range(30)),
        notes=(SuiteNote(kind="x", effect=Effect.FAIL, text="gone"),),
    )
    text = render_comment(report)
    assert "and 10 more" in text
    assert "- **fail** gone" in text
    assert text.count("```text") == 20


def test_history_as_a_document() -> None:
    told = [(SLOW.key, "d", SITTINGS, baseline("test_<i>[1]", 1e6)), (SLOW.key, "e", [], None)]
    assert "1.08 ms" in render_text(history_document(told, overview=True))
    text = render_text(history_document(told, overview=False))
    assert "accepted: nothing" in text
    assert "+8.0 %" in text
    assert "measured with" not in text
    assert (bars([]), bars([1.0, 1.0]), bars([1.0, 2.0])) == ("", "▄▄", "▁█")


def test_a_history_holds_nothing_against_a_time_that_was_measured_differently() -> None:
    """8 ms on all threads stood as a slowdown of the 1 ms that one thread was accepted with, and as its anchor."""
    line = baseline("test_<i>[1]", 1e6)
    line = replace(line, identity=replace(SLOW.measurement.identity, threads="1"))
    assert line.identity is not None
    other = [replace(s, time=8e6, identity="threads=8") for s in SITTINGS[:3]]
    text = render_text(
        history_document(
            [(SLOW.key, "d", [replace(SITTINGS[0], identity=line.identity.text()), *other], line)], overview=False
        )
    )
    assert "threads=8" in text
    assert text.count("+700.0 %") == 1, "against the one before"
    assert "ANCHOR" not in text


def entry_of(*findings: Finding, sol: bool = False) -> str:
    measured = SLOW.measurement
    more = (
        Metric(name="sol", value=0.66, dimension=Dimension.FRACTION, note="compute roof"),
        Metric(name="tflops", value=1e14, dimension=Dimension.FLOPS),
    )
    metrics = MetricSet(metrics=measured.metrics.metrics + (more if sol else ()))
    changed = replace(SLOW, measurement=replace(measured, findings=findings, metrics=metrics))
    cases = [changed, replace(SLOW, measurement=None)]
    before = previous_of(cases, run(*cases), ())
    return render_entry(Version(name="v2", when="2026-06-01", changed="a\nb"), cases, before=before)


def test_an_entry_names_the_bottleneck() -> None:
    assert "**Bottleneck**: memory-bound. DRAM 80 %" in entry_of(Finding(title="memory-bound", detail="DRAM 80 %"))
    with_sol = entry_of(sol=True)
    assert "**Bottleneck**: 66 % of SOL; compute roof" in with_sol
    assert "| Achieved TFLOPs/s | 100 TFLOPS | -16.7 % |" in with_sol
    assert "Previous: the accepted time (a1b2c3d, 2026-05-02)." in with_sol


def test_an_entry_compares_with_what_was_measured_before() -> None:
    def made(time: float, occupancy: float | None) -> CaseReport:
        found = case("test_a", time)
        more = () if occupancy is None else (Metric(name="occupancy", value=occupancy, dimension=Dimension.FRACTION),)
        metrics = MetricSet(metrics=found.measurement.metrics.metrics + more)
        return replace(found, measurement=replace(found.measurement, metrics=metrics))

    now, then = made(0.9e6, 0.5), made(1e6, 0.375)
    before = {now.key: Previous(commit="b2c3d4e", when="2026-05-30", metrics=then.measurement.metrics)}
    text = render_entry(Version(name="v3"), [now], before=before)
    assert "| Duration | 900 µs | -10.0 % |" in text
    assert "| Occupancy | 50 % | +12.5 points |" in text
    assert "Previous: measured (b2c3d4e, 2026-05-30)." in text
    bare = {now.key: replace(before[now.key], metrics=made(1e6, None).measurement.metrics, commit="")}
    assert "| Occupancy | 50 % | not collected |" in render_entry(Version(name="v3"), [now], before=bare)
    assert "Previous: none that was measured alike." in render_entry(Version(name="v3"), [now])


def test_an_entry_goes_where_it_belongs() -> None:
    first = written("", entry_of())
    assert written(first, entry_of()) == first
    both = written(first, render_entry(Version(name="v3"), [SLOW]))
    assert both.index("## v2") < both.index("## v3")
    edited = both.replace("**Insights**\n\n_none yet_", "**Insights**\n\nTMA helps", 1)
    kept = kept_paragraphs(edited, Version(name="v2", when="2027-01-01"))
    assert kept == {"Insights": "TMA helps"}
    again = written(edited, render_entry(Version(name="v2", when="2027-01-01"), [SLOW], kept))
    assert again.count("TMA helps") == 1
    assert again.count("## v2") == 1
    assert kept_paragraphs("", Version(name="v2")) == {}


def test_acceptance_in_words() -> None:
    new, bad = case("test_new", 1e6), replace(SLOW, measurement=None)
    found = [decide(c, c.baseline, (), Signature(why="x")) for c in (SLOW, new, bad)]
    lines = list(acceptance_lines(found, dry=True))
    assert lines == [
        "slower     tests/test_k.py::test_<i>[1]  1 ms -> 1.2 ms  +20.0 %",
        "new        tests/test_k.py::test_new  1 ms",
        "without a time  tests/test_k.py::test_<i>[1]  nothing was timed",
        "2 would be accepted; 1 without a time",
    ]
    assert [d["change"] for d in acceptance_json(found)] == ["slower", "new", "without a time"]
    assert list(acceptance_lines([])) == ["nothing to accept"]
