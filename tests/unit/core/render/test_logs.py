"""Tests of core/render/logs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.analysis.results import Previous, previous_of
from pytest_perfgate.core.analysis.roofline import IN_CACHE
from pytest_perfgate.core.judge.acceptance import decide
from pytest_perfgate.core.judge.accepted_line import Signature
from pytest_perfgate.core.render.block import acceptance_lines, render_block
from pytest_perfgate.core.render.exports import acceptance_json
from pytest_perfgate.core.render.logs import (
    Version,
    bars,
    history_document,
    kept_paragraphs,
    render_entry,
    written,
)
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Figure, HistoryEntry
from pytest_perfgate.model.metric import Finding, Interval, Metric, MetricSet, labels
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import CaseReport
from tests.reports import DEVICE, baseline, case, run

CASE = case("test_k[4096-bf16]", 1e6, 1e6)


def entry(*metrics: Metric, findings: tuple[Finding, ...] = (), kernels: str = "") -> str:
    measured = CASE.measurement
    all_metrics = MetricSet(metrics=measured.metrics.metrics + metrics)
    changed = replace(CASE, measurement=replace(measured, metrics=all_metrics, findings=findings))
    return render_entry(Version(name="v2"), [changed], sections=kernels)


def of(kernel: str, name: str, value: float, dimension: Dimension = Dimension.FRACTION) -> Metric:
    return Metric(name=name, value=value, dimension=dimension, labels=labels(kernel=kernel))


def test_the_longest_kernel_speaks_for_the_call() -> None:
    text = entry(
        of("a", "occupancy", 0.5), of("b", "occupancy", 0.25),
        of("a", "duration", 10.0, Dimension.TIME), of("b", "duration", 90.0, Dimension.TIME),
    )  # fmt: skip
    assert "| Occupancy | 25 % |" in text
    assert ", 4096-bf16):" in text


def test_one_kernel_speaks_for_itself_and_several_without_times_for_nobody() -> None:
    assert "| TC Util | 70 % |" in entry(of("a", "tc_util", 0.7))
    assert "| TC Util | not collected |" in entry(of("a", "tc_util", 0.7), of("b", "tc_util", 0.1))


def test_titles_and_figures_of_a_processor_agree() -> None:
    """A host's log had `Achieved TFLOPs/s` over MFLOPS, and rows that only a GPU can fill."""
    rates = (
        Metric(name="tflops", value=45.19e6, dimension=Dimension.FLOPS),
        Metric(name="bandwidth", value=3.35e7, dimension=Dimension.BANDWIDTH),
    )
    measured = replace(CASE.measurement, metrics=MetricSet(metrics=CASE.measurement.metrics.metrics[:1] + rates))
    assert "| Occupancy | not collected |" in render_entry(Version(name="v2"), [replace(CASE, measurement=measured)])
    host = replace(measured, device=Device(key="host-x", name="x", kind="host"))
    text = render_entry(Version(name="v2"), [replace(CASE, measurement=host)])
    assert "| Achieved FLOP/s | 45.19 MFLOPS |" in text
    assert "| Achieved B/s | 33.5 MB/s |" in text
    assert not any(word in text for word in ("TFLOPs", "Occupancy", "TC Util"))


def test_a_class_in_the_findings_is_the_bottleneck() -> None:
    finding = Finding(title="gemm", detail="compute-bound: compute 70.4 % of its roof")
    assert "**Bottleneck**: gemm: compute-bound: compute 70.4 %" in entry(findings=(finding,))


def test_what_changed_in_the_kernels_stands_before_what_people_write() -> None:
    text = entry(kernels="### Kernels\n\n- faster\n")
    assert text.index("- faster") < text.index("**Issues**")


def test_many_cases_of_which_only_the_time_is_known_share_a_table() -> None:
    bare = [case(f"test_k[{n}|x]", 1e6, 1e6) for n in range(4)]
    timed = replace(bare[0], measurement=replace(bare[0].measurement, metrics=MetricSet(metrics=(
        *bare[0].measurement.metrics.metrics, of("a", "occupancy", 0.5)))))  # fmt: skip
    other = replace(case("test_other", 1e6), measurement=timed.measurement)
    text = render_entry(Version(name="v2"), [*bare, other])
    assert "### 4 cases of which only the time was collected" in text
    assert text.count("TFLOPs/s") == 1
    assert "test_k[3\\|x] | 1 ms |  | none that was measured in the same way |" in text
    assert "### 4 cases" not in render_entry(Version(name="v2"), bare[:3])


SLOW = case("test_<i>[1]", 1.2e6, 1e6, Outcome.REGRESSED)

ENTRIES = [
    HistoryEntry(key=SLOW.key, device="d", time=1e6 + n * 1e4, when="2026-05-01", commit="c0ffee1") for n in range(9)
]


def test_history_as_a_document() -> None:
    histories = [(SLOW.key, "d", ENTRIES, baseline("test_<i>[1]", 1e6)), (SLOW.key, "e", [], None)]
    overview = render_text(history_document(histories, overview=True))
    assert "1.08 ms" in overview
    assert "when (UTC)" in overview
    text = render_text(history_document(histories, overview=False))
    assert "accepted: nothing" in text
    assert "+8.0 %" in text
    assert "measured with" not in text
    assert (text.count(bars([s.time for s in ENTRIES])), text.count("█")) == (1, 1), "one line of bars"
    assert (bars([]), bars([1.0, 1.0]), bars([1.0, 2.0])) == ("", "▄▄", "▁█")


def test_the_drift_by_accepted_steps_stands_beside_the_accepted_time() -> None:
    """Five steps of 4 % each are within every limit; in the history and in the block of a failure they stand as one."""
    crept = replace(baseline("test_<i>[1]", 1.2e6), anchor=1e6, anchored="2026-03-02")
    text = render_text(history_document([(SLOW.key, "d", ENTRIES, crept)], overview=False))
    assert "accepted: 1.2 ms  +20.0 % since 2026-03-02" in text
    judged = replace(SLOW, verdicts=tuple(replace(verdict, baseline=crept) for verdict in SLOW.verdicts))
    assert "  +20.0 % since 2026-03-02" in render_block(judged)
    still = replace(crept, anchor=0.0, anchored="")
    assert "since" not in render_text(history_document([(SLOW.key, "d", ENTRIES, still)], overview=False))


@pytest.mark.parametrize(("runs", "expected"), [(1, False), (2, True)])
def test_one_run_is_no_drift(runs: int, expected: bool) -> None:
    line = replace(baseline("test_<i>[1]", 1e6), identity=SLOW.measurement.identity)
    assert line.identity is not None
    slow = [replace(one, time=1.5e6, identity=line.identity.text()) for one in ENTRIES[:runs]]
    assert ("ANCHOR" in render_text(history_document([(SLOW.key, "d", slow, line)], overview=False))) is expected


def test_a_history_holds_nothing_against_a_time_that_was_measured_differently() -> None:
    """8 ms on all threads stood as a slowdown of the 1 ms that one thread was accepted with, and as its anchor."""
    line = baseline("test_<i>[1]", 1e6)
    line = replace(line, identity=replace(SLOW.measurement.identity, threads="1"))
    assert line.identity is not None
    other = [replace(s, time=8e6, identity="threads=8") for s in ENTRIES[:3]]
    text = render_text(
        history_document(
            [(SLOW.key, "d", [replace(ENTRIES[0], identity=line.identity.text()), *other], line)], overview=False
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
    assert "**Bottleneck**: memory-bound: DRAM 80 %" in entry_of(Finding(title="memory-bound", detail="DRAM 80 %"))
    with_sol = entry_of(sol=True)
    assert "**Bottleneck**: 66 % of SOL; compute roof" in with_sol
    assert "| Achieved TFLOPs/s | 100 TFLOPS | -16.7 % |" in with_sol
    assert "Previous: the accepted time (a1b2c3d, 2026-05-02)." in with_sol


def test_an_entry_compares_with_what_was_measured_before() -> None:
    def made(time: float, occupancy: float | None) -> CaseReport:
        report = case("test_a", time)
        more = () if occupancy is None else (Metric(name="occupancy", value=occupancy, dimension=Dimension.FRACTION),)
        metrics = MetricSet(metrics=report.measurement.metrics.metrics + more)
        return replace(report, measurement=replace(report.measurement, metrics=metrics))

    now, then = made(0.9e6, 0.5), made(1e6, 0.375)
    place = (now.key, DEVICE.key)
    before = {place: Previous(commit="b2c3d4e", when="2026-05-30", metrics=then.measurement.metrics)}
    text = render_entry(Version(name="v3"), [now], before=before)
    assert "| Duration | 900 µs | 10.0 % faster |" in text
    assert "| Occupancy | 50 % | +12.5 pp |" in text
    assert "Previous: measured (b2c3d4e, 2026-05-30)." in text
    for high, cell in ((1.0e6, "10.0 % faster (within noise)"), (0.95e6, "10.0 % faster")):
        wide = replace(now.measurement.metrics.metrics[0], interval=Interval(low=0.8e6, high=high))
        near = replace(then.measurement.metrics.metrics[0], interval=Interval(low=0.97e6, high=1.1e6))
        noisy = replace(now, measurement=replace(now.measurement, metrics=MetricSet(metrics=(wide,))))
        earlier = {place: replace(before[place], metrics=MetricSet(metrics=(near,)))}
        assert f"| Duration | 900 µs | {cell} |" in render_entry(Version(name="v3"), [noisy], before=earlier)
        decided = replace(noisy, verdicts=(replace(now.verdicts[0], outcome=Outcome.IMPROVED, rounds=9),))
        assert "| 10.0 % faster |" in render_entry(Version(name="v3"), [decided], before=earlier), "two builds said so"
    bare = {place: replace(before[place], metrics=made(1e6, None).measurement.metrics, commit="")}
    assert "| Occupancy | 50 % | not collected |" in render_entry(Version(name="v3"), [now], before=bare)
    assert "Previous: none that was measured in the same way." in render_entry(Version(name="v3"), [now])
    left_open = {place: replace(one, undecided=True) for place, one in before.items()}
    assert "Previous: measured (b2c3d4e, 2026-05-30, UNDECIDED in that run)." in render_entry(
        Version(name="v2"), [now], before=left_open
    )


def test_an_entry_goes_where_it_belongs() -> None:
    first = written("", entry_of())
    assert written(first, entry_of()) == first
    both = written(first, render_entry(Version(name="v3"), [SLOW]))
    assert both.index("## v2") < both.index("## v3")
    edited = both.replace("**Insights**\n\n_none yet_", "**Insights**\n\nTMA helps", 1)
    paragraphs = kept_paragraphs(edited, Version(name="v2", when="2027-01-01"))
    assert paragraphs == {"Insights": "TMA helps"}
    again = written(edited, render_entry(Version(name="v2", when="2027-01-01"), [SLOW], paragraphs))
    assert again.count("TMA helps") == 1
    assert again.count("## v2") == 1
    assert kept_paragraphs("", Version(name="v2")) == {}


def test_acceptance_in_words() -> None:
    new, bad = case("test_new", 1e6), replace(SLOW, measurement=None)
    decisions = [decide(c, c.baseline, (), Signature(why="x")) for c in (SLOW, new, bad)]
    lines = list(acceptance_lines(decisions, dry=True))
    assert lines == [
        "slower     tests/test_k.py::test_<i>[1]  1 ms -> 1.2 ms  +20.0 %",
        "new        tests/test_k.py::test_new  1 ms",
        "without a time  tests/test_k.py::test_<i>[1]  nothing was timed",
        "2 would be accepted; 1 without a time",
        "warning  1 of 3 cases further from its anchor than the setting anchor allows, so CI fails; if intended: perfgate accept --anchor",
    ]
    assert [(row["change"], row["before_ns"], row["after_ns"]) for row in acceptance_json(decisions)] == [
        ("slower", 1e6, 1.2e6), ("new", None, 1e6), ("without a time", 1e6, None),
    ]  # fmt: skip
    assert list(acceptance_lines([])) == ["nothing to accept"]


def test_seconds_that_were_taken_for_nanoseconds_are_no_silent_line() -> None:
    decisions = [decide(case("test_new", time), None, (), Signature()) for time in (0.00027, 1.0)]
    warnings = [line for line in acceptance_lines(decisions) if line.startswith("warning")]
    assert len(warnings) == 1
    assert "1 of 2 cases" in warnings[0]
    assert 'unit="s"' in warnings[0]


def test_accepting_for_several_devices_names_each() -> None:
    other = Device(key="NVIDIA-A100", name="NVIDIA A100", kind="gpu")
    cases = [case("test_new", 1e6), case("test_new", 2e6, device=other)]
    lines = list(acceptance_lines([decide(c, None, (), Signature(why="x")) for c in cases]))
    assert lines[:2] == [
        "new        tests/test_k.py::test_new  1 ms  on NVIDIA-H200",
        "new        tests/test_k.py::test_new  2 ms  on NVIDIA-A100",
    ]


def test_issues_are_those_that_the_run_knows_beside_those_that_people_wrote() -> None:
    text = render_entry(Version(name="v2"), [SLOW], {"Issues": "odd sizes spill"})
    issues = text.partition("**Issues**")[2].partition("**Insights**")[0]
    assert issues.strip().splitlines()[0] == "odd sizes spill"
    assert "slowdown" in issues
    assert issues.count("by the run") == 1
    paragraphs = kept_paragraphs(text, Version(name="v2"))
    assert paragraphs == {"Issues": "odd sizes spill"}
    assert render_entry(Version(name="v2"), [SLOW], paragraphs) == text
    assert "by the run" not in render_entry(Version(name="v2"), [CASE])


def test_issues_and_gated_figures_of_several_devices_stand_with_their_own() -> None:
    cases = []
    for device, registers in ((DEVICE, 128.0), (Device(key="NVIDIA-A100", name="NVIDIA A100", kind="gpu"), 96.0)):
        slow = case("test_k", 1.2e6, 1e6, Outcome.REGRESSED, device=device)
        figure = Figure(name="registers", value=registers, dimension=Dimension.COUNT)
        cases.append(replace(slow, verdicts=(replace(slow.verdicts[0], figure=figure),)))
    text = render_entry(Version(name="v2"), cases)
    own, other = text.partition("**Issues**")[0].split("### ")[1:]
    assert ("| 128 ->" in own, "| 96 ->" in own) == (True, False)
    assert ("| 128 ->" in other, "| 96 ->" in other) == (False, True)
    issues = text.partition("**Issues**")[2]
    assert all(f"test_k ({name}): regressed" in issues for name in ("NVIDIA H200", "NVIDIA A100"))


def test_a_case_that_was_not_measured_is_an_issue() -> None:
    verdict = replace(
        SLOW.verdicts[0], outcome=Outcome.NOT_MEASURED, metric=None, sentence="its call raised ValueError"
    )
    text = render_entry(Version(name="v2"), [replace(SLOW, measurement=None, verdicts=(verdict,))])
    assert "not measured, slowdown <= 3%; its call raised ValueError" in text.partition("**Issues**")[2]


def test_figures_of_a_report_name_their_parameters_device_and_duration() -> None:
    where = labels(kernel="k", arch="sm_90")
    figures = (
        Metric(name="duration", value=51e6, dimension=Dimension.TIME, labels=where),
        Metric(name="l2_hit", value=0.4, dimension=Dimension.FRACTION, labels=where),
    )
    host = Device(key="host-x", name="A host", kind="host")
    read = replace(
        CASE.measurement, metrics=MetricSet(metrics=figures), device=host, params=(("b", "32"), ("t", "4096"))
    )
    text = render_entry(Version(name="v2"), [replace(CASE, measurement=read)])
    assert "A host; figures of sm_90 by its report" in text
    assert ", b=32, t=4096):" in text
    assert "| Duration | 51 ms |" in text
    slower = MetricSet(metrics=(replace(figures[0], value=102e6),))
    before = {(CASE.key, "host-x"): Previous(commit="b2c3d4e", when="2026-05-30", metrics=slower)}
    moved = render_entry(Version(name="v2"), [replace(CASE, measurement=read)], before=before)
    assert "| Duration | 51 ms | 50.0 % faster |" in moved
    assert "l2_hit 40 %" in text
    both = render_entry(Version(name="v2"), [replace(CASE, measurement=read), CASE])
    assert f"- {CASE.key} (sm_90): l2_hit 40 %" in both


def test_without_a_capture_the_class_follows_from_both_roofs() -> None:
    parts = (("compute", 0.8), ("memory", 0.3))
    made = [Metric(name="sol", value=v, dimension=Dimension.FRACTION, labels=labels(roof=n)) for n, v in parts]
    text = entry(Metric(name="sol", value=0.8, dimension=Dimension.FRACTION, note="compute roof"), *made)
    assert "**Bottleneck**: compute-bound" in text
    assert "80 % of SOL" in text


def test_data_that_stays_in_the_cache_is_not_bound_by_memory() -> None:
    one = Metric(name="sol", value=0.5, dimension=Dimension.FRACTION, labels=labels(roof="compute"))
    note = f"compute roof; memory {IN_CACHE}"
    text = entry(Metric(name="sol", value=0.5, dimension=Dimension.FRACTION, note=note), one)
    assert "**Bottleneck**: compute-bound; " in text
    text = entry(Metric(name="sol", value=0.5, dimension=Dimension.FRACTION, note="compute roof"), one)
    assert "**Bottleneck**: 50 % of SOL" in text
