"""What an analysis saw, in the gate's failure block."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.acceptance import Change, Proposal
from pytest_perfgate.core.judge.accepted_line import FigureStep
from pytest_perfgate.core.render.block import (
    decision_lines,
    notable_findings,
    render_block,
    render_blocks,
    step_text,
)
from pytest_perfgate.core.render.report import by_outcome
from pytest_perfgate.core.render.words import other_notes
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Identity, Measurement
from pytest_perfgate.model.metric import Figure, Finding, Severity
from pytest_perfgate.model.plan import CaseKey, Effect, Outcome
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import CaseReport, SuiteNote
from tests.reports import baseline, case


def test_the_class_its_evidence_and_triggered_advice_come_in_three_lines() -> None:
    findings = (
        Finding(title="gemm", detail="latency-bound: compute 34.4 % of its roof", trigger="compute=0.344"),
        Finding(title="chatter", detail="all is well", severity=Severity.INFO),
        Finding(title="Fill the device", advice="more blocks", trigger="waves=0.4"),
        Finding(title="A rule", detail="said\x1b[2J so", trigger="rule=r"),
        Finding(title="left out", detail="the fourth"),
    )
    measurement = Measurement(
        key=CaseKey(nodeid="t.py::t"),
        processes=(),
        device=Device(key="d", name="d", kind="gpu"),
        identity=Identity(device="d"),
        findings=findings,
    )
    assert list(notable_findings(measurement)) == [
        ("seen", "gemm: latency-bound: compute 34.4 % of its roof"),
        ("try", "Fill the device: more blocks (waves=0.4)"),
        ("seen", "A rule: said\\x1b[2J so"),
    ]


@pytest.mark.parametrize("rounds", [("=19", "=60"), ("=60", "=19"), ("=9", "=60"), ("", "=60")])
def test_of_commands_that_differ_in_rounds_the_most_rounds_remain(rounds: tuple[str, str]) -> None:
    report = case("test_a", 1e6, 1e6, Outcome.UNDECIDED)
    (verdict,) = report.verdicts
    steps = [f"pytest t.py --perfgate=full{f' --perfgate-rounds{count}' if count else ''}" for count in rounds]
    lines = render_block(replace(report, verdicts=tuple(replace(verdict, next=(step,)) for step in steps)))
    commands = [line for line in lines.splitlines() if "pytest" in line]
    assert commands == ["  next  pytest t.py --perfgate=full --perfgate-rounds=60"]


def unmeasured(name: str, why: str) -> CaseReport:
    (verdict,) = case(name, 1e6, 1e6, Outcome.NOT_MEASURED).verdicts
    key = CaseKey(nodeid=f"t.py::{name}")
    lost = replace(verdict, sentence=why, next=("a driver",), metric=None, baseline=None, evidence=())
    return CaseReport(key=key, verdicts=(lost,))


def test_cases_that_were_not_measured_for_one_reason_share_one_block() -> None:
    reports = [unmeasured("test_a", "no device"), unmeasured("test_b", "no file"), unmeasured("test_c", "no device")]
    first, second = render_blocks(reports)
    assert first.splitlines()[1:] == ["  why   no device", "  next  a driver", "  also  1 more case: test_c"]
    assert "also" not in second
    assert "test_b" in second


def test_figures_that_cannot_be_trusted_for_one_reason_share_one_block() -> None:
    reports = [case(f"test_{name}", 1e6 * (1 + at), 1e6, Outcome.INVALID) for at, name in enumerate("abc")]
    alike = [replace(r, verdicts=tuple(replace(v, next=("install it",)) for v in r.verdicts)) for r in reports]
    (block,) = render_blocks(alike)
    assert "also  2 more cases: test_b, test_c" in block
    assert "now " in block


def test_new_cases_share_one_block_and_one_command() -> None:
    """The first comment of a suite had twenty blocks that differed in the name only."""
    nodeids = ["t.py::test_a", "t.py::test_b", "t.py::test_c"]
    reports = [case(nodeid.partition("::")[2], 1e6, 0, Outcome.UNBASELINED) for nodeid in nodeids]
    new = [
        replace(r, verdicts=tuple(replace(v, baseline=None, next=(f"perfgate accept --from RECORD {n}",)) for v in r.verdicts))
        for r, n in zip(reports, nodeids)
    ]  # fmt: skip
    (block,) = render_blocks(new)
    assert block.splitlines()[-2:] == [
        "  next  perfgate accept --from RECORD --new", "  also  2 more cases: test_b, test_c",
    ]  # fmt: skip
    (alone,) = render_blocks(new[:1])
    assert "  next  perfgate accept --from RECORD t.py::test_a" in alone


def test_outcomes_of_any_length_leave_the_names_in_one_column() -> None:
    (verdict,) = unmeasured("test_a", "nothing has been accepted").verdicts
    verdicts = (replace(verdict, outcome=Outcome.NOT_MEASURED), replace(verdict, outcome=Outcome.UNSTABLE))
    heads = render_block(CaseReport(key=CaseKey(nodeid="t.py::test_a"), verdicts=verdicts)).splitlines()[:2]
    assert {line.index("test_a") for line in heads} == {len("NOT MEASURED  ")}


def test_one_reason_of_two_limits_is_one_line() -> None:
    (verdict,) = unmeasured("test_a", "nothing has been accepted").verdicts
    loss = replace(verdict, limit=replace(verdict.limit, metric="loss"), sentence="loss: nothing has been accepted")
    lines = render_block(CaseReport(key=CaseKey(nodeid="t.py::test_a"), verdicts=(verdict, loss))).splitlines()
    assert [line for line in lines if "why" in line] == ["  why   nothing has been accepted"]
    limit = replace(verdict.limit, metric="metric", labels=(("name", "adds/s"),))
    counter = replace(verdict, limit=limit, sentence="metric: no file has it")
    lines = render_block(CaseReport(key=CaseKey(nodeid="t.py::test_a"), verdicts=(verdict, counter))).splitlines()
    assert "  why   adds/s: no file has it" in lines


def test_a_case_that_two_devices_measured_has_a_block_for_each() -> None:
    """Of a merged record the figures of the second device were left out: "also  1 more case", with the same name."""
    other = Device(key="B", name="B", kind="gpu")
    reports = [case("test_a", 2e6, 1e6, Outcome.REGRESSED), case("test_a", 3e6, 1e6, Outcome.REGRESSED, device=other)]
    assert [text.split()[3] for text in render_blocks(reports)] == ["+100.0", "+200.0"]


def test_undecided_cases_behind_the_three_slowest_share_one_block_with_their_figures() -> None:
    changes = (1.02, 1.01, 1.4, 1.03, 0.9)
    reports = [case(f"test_{n}", 1e6 * change, 1e6, Outcome.UNDECIDED) for n, change in enumerate(changes)]
    *whole, last = render_blocks(reports, brief=True)
    assert [text.split()[1] for text in whole] == ["test_0", "test_2", "test_3"]
    assert "also  2 more cases: test_1 +1.0 %, test_4 -10.0 %" in last
    assert len(list(render_blocks(reports))) == 5


def test_a_report_shows_the_slowest_of_equal_outcomes_and_failing_notes_first() -> None:
    cases = [case(name, then * 1e6, 1e6, Outcome.UNDECIDED) for name, then in (("test_a", 1.01), ("test_b", 1.4))]
    assert [c.key.test for c in sorted(cases, key=by_outcome)] == ["test_b", "test_a"]
    notes = [
        SuiteNote(kind=kind, effect=effect, text=kind) for kind, effect in (("a", Effect.WARN), ("b", Effect.FAIL))
    ]
    assert [note.kind for note in other_notes(cases, notes)] == ["b", "a"]


@pytest.mark.parametrize(
    ("dimension", "then", "now", "text"),
    [
        (Dimension.COUNT, 128, 132, "x  128 -> 132  +3.1 %"),
        (Dimension.COUNT, 4, 1, "x  4 -> 1  -75.0 %"),
        (Dimension.TIME, 1e6, 1.5e6, "x  1 ms -> 1.5 ms  +50.0 %"),
        (Dimension.PLAIN, -2.0, -1.0, "x  -2 -> -1  +50.0 %"),
        (Dimension.FRACTION, 0.5, 0.48, "x  50 % -> 48 %  -2 pp"),
        (Dimension.BYTES, 0, 48, "x  0 B -> 48 B  +48 B"),
        (Dimension.COUNT, None, 7, "x  7  new"),
        (Dimension.COUNT, 7, None, "x  7 -> gone"),
    ],
)
def test_a_step_of_a_figure_is_a_share_an_amount_or_points(
    dimension: Dimension, then: float | None, now: float | None, text: str
) -> None:
    before, after = (
        None if number is None else Figure(name="x", value=number, dimension=dimension) for number in (then, now)
    )
    assert step_text(FigureStep(before=before, after=after)) == text
    if before and after:
        assert step_text(FigureStep(before=before, after=after, asks=True)) == f"{text}  worse"
        assert step_text(FigureStep(before=before, after=after, better=True)) == f"{text}  better"


@pytest.mark.parametrize(
    ("time", "then", "text"),
    [(1.2e6, 1e6, "1 ms -> 1.2 ms  +20.0 %"), (0.8e6, 1e6, "1 ms -> 800 µs  -20.0 %"), (2e6, None, "2 ms")],
)
def test_an_accepted_time_is_shown_against_the_one_before(time: float, then: float | None, text: str) -> None:
    before, line = baseline("test_a", then) if then else None, baseline("test_gone", 1.6e6)
    report, after = case("test_a", time), baseline("test_a", time)
    decision = Proposal(report=report, change=Change.SLOWER, before=before, after=after)
    assert next(decision_lines(decision)) == f"slower     tests/test_k.py::test_a  {text}"
    shift = f"{(time / 1.6e6 - 1) * 100:+.1f} % after {line.key}, which is gone (1.6 ms)"
    assert next(decision_lines(replace(decision, before=None, predecessor=line))).endswith(shift)


def test_a_block_names_the_evidence_behind_its_time() -> None:
    report = case("test_a", 1.2e6, 1e6, Outcome.REGRESSED)
    measured = report.measurement
    assert measured is not None
    clocks = ((1.1e9, 1.7e9), (1.5e9,), ())
    processes = [replace(one, durations=one.durations[:count], clock_hz=hz)
                 for one, count, hz in zip(measured.processes, (41, 30, 35), clocks)]  # fmt: skip
    measured = replace(measured, processes=tuple(processes), identity=replace(measured.identity, clocks="lock"))
    lines = render_block(replace(report, measurement=measured)).splitlines()
    assert "limit +3 %" in lines[0]
    assert "  now   1.2 ms  3 processes x 30 samples  NVIDIA H200 at 1500 MHz, locked" in lines
