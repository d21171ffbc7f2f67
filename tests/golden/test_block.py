from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge, not_measured
from pytest_perfgate.core.render.block import render_block
from pytest_perfgate.core.render.words import printable
from pytest_perfgate.model.metric import Interval, Problem
from pytest_perfgate.model.plan import CaseKey, Decision, Mode, Outcome
from pytest_perfgate.model.values import Work
from pytest_perfgate.model.verdict import CaseReport, Paired
from tests.unit.core.judge.bench import GPU, KEY, KINDS, accepted, limit, measured, samples

PAGES = Path(__file__).parent / "blocks"
CONTEXT = JudgeContext(kinds=KINDS, gates=40)
WORK = Work(flops=2 * 4096**3, bytes=1e8, dtype="bf16")


def gpu(time: float, shape=(0.999, 1.0, 1.001), **fields):
    processes = tuple(samples(time * f, count=40, clock_hz=(1.5e9,)) for f in shape)
    return measured(0, device=GPU, clocks="lock", work=WORK, **{"processes": processes} | fields)


def judged(measurement, *texts: str, context=CONTEXT, baseline="held", paired=None, **options) -> CaseReport:
    line = accepted(382.1e3, device=GPU, clocks="lock") if baseline == "held" else baseline
    limits = [limit(text, **options) for text in texts or ("slowdown <= 3%",)]
    return judge(measurement, limits, baseline=line, context=context, paired=paired)


def paired(decision: Decision, shift: float, **fields) -> Paired:
    interval = Interval(low=shift - 0.01, high=shift + 0.01)
    return Paired(
        decision=decision, differences=(shift,) * 10, shift=shift, interval=interval, base="a1b2c3d", **fields
    )


def why(report: CaseReport, *facts: str) -> CaseReport:
    first = replace(report.verdicts[0], evidence=tuple(("why", fact) for fact in facts))
    return replace(report, verdicts=(first, *report.verdicts[1:]))


LONG = CaseKey(nodeid="tests/bench/test_attention.py::TestCausal::test_forward[" + "-".join(["float8_e4m3"] * 12) + "]")
BLOCKS = {
    "passed": lambda: judged(gpu(382e3), "slowdown <= 3%", "mfu >= 40%"),
    "improved": lambda: judged(gpu(340e3)),
    "accepted": lambda: judged(
        gpu(412.3e3), context=replace(CONTEXT, edited=accepted(412e3, why="exact softmax", device=GPU, clocks="lock"))
    ),
    "not_applicable": lambda: judged(gpu(412.3e3), "mfu >= 40%", on=("A100*",)),
    "moved": lambda: judged(
        gpu(412.3e3), paired=paired(Decision.NOT_SLOWER, 0.001, moved=(("driver", "570.1", "580.2"),))
    ),
    "suspect": lambda: judged(gpu(400e3), context=replace(CONTEXT, mode=Mode.QUICK)),
    "suspect_full": lambda: judged(gpu(400e3)),
    "unstable": lambda: judged(gpu(350e3, shape=(1.0, 1.001, 1.1, 1.101))),
    "undecided": lambda: judged(gpu(382e3, shape=(0.97, 1.0, 1.03))),
    "undecided_rounds": lambda: judged(gpu(400e3), paired=paired(Decision.UNDECIDED, 0.025, visible=0.035, wants_s=90)),
    "two_samples": lambda: judged(gpu(0, processes=(samples(382e3, durations=(190e3, 574e3)),)), "time <= 500us"),
    "two_processes": lambda: judged(gpu(382e3, shape=(0.5, 1.5)), "slowdown <= 3%", "time <= 500us"),
    "unbaselined": lambda: judged(gpu(382e3), baseline=None),
    "other_identity": lambda: judged(gpu(382e3), baseline=accepted(382.1e3, device=GPU, clocks="off")),
    "not_measured": lambda: not_measured(KEY, [limit("slowdown <= 3%")], "region() was never entered", CONTEXT),
    "absent_metric": lambda: judged(gpu(382e3), "overlap(stage=stage2) >= 80%"),
    "invalid": lambda: judged(
        gpu(382e3, problems=(Problem(code="clock-moved", what="the SM clock fell from 1500 to 1200 MHz"),))
    ),
    "regressed": lambda: why(
        judged(gpu(412.3e3), paired=paired(Decision.SLOWER, 0.079)),
        "shared memory per block 96 -> 114 KiB: 2 -> 1 blocks per SM",
    ),
    "regressed_and_broken": lambda: judged(gpu(812.3e3), "slowdown <= 3%", "mfu >= 40%", "time <= 1s"),
    "command_line": lambda: judged(gpu(812.3e3), "slowdown <= 10%", source="command line"),
    "long_name": lambda: judged(gpu(812.3e3, key=LONG)),
}
EXPECTED = {
    "undecided_rounds": Outcome.UNDECIDED,
    "two_samples": Outcome.UNDECIDED,
    "two_processes": Outcome.UNDECIDED,
    "suspect_full": Outcome.SUSPECT,
    "other_identity": Outcome.UNBASELINED,
    "absent_metric": Outcome.NOT_MEASURED,
    "regressed_and_broken": Outcome.BROKEN,
    "command_line": Outcome.REGRESSED,
    "long_name": Outcome.REGRESSED,
}


@pytest.mark.parametrize("name", BLOCKS)
def test_the_block_of_every_outcome(name: str) -> None:
    report = BLOCKS[name]()
    assert report.worst is EXPECTED.get(name, Outcome.__members__.get(name.upper()))
    page, block = PAGES / f"{name}.txt", render_block(report)
    if os.environ.get("PERFGATE_GOLDEN") == "write":
        page.write_text(block, encoding="utf-8")
    assert block == page.read_text(encoding="utf-8")


def test_every_outcome_has_a_block() -> None:
    assert {report().worst for report in BLOCKS.values()} == set(Outcome)


def test_long_names_and_commands_stay_whole() -> None:
    lines = render_block(BLOCKS["long_name"]()).splitlines()
    assert lines[0] == f"REGRESSED  {LONG.test}"
    assert lines[1].startswith("  time  +112.6 %")
    assert any(line.endswith(f"perfgate profile '{LONG}'") for line in lines)


def test_a_quote_in_a_name_stays_inside_its_quotes() -> None:
    key = CaseKey(nodeid="t.py::test_x[it's]")
    import shlex

    block = render_block(judged(gpu(812.3e3, key=key)))
    (line,) = [line for line in block.splitlines() if "profile" in line]
    assert shlex.split(line)[-1] == str(key)


def test_a_name_cannot_move_the_cursor() -> None:
    assert printable("a\x1b[2Jb\rc é 漢") == "a\\x1b[2Jb\\rc é 漢"
    key = CaseKey(nodeid="t.py::test_x[\x1b[2J]")
    assert "\x1b" not in render_block(judged(gpu(812.3e3, key=key)))


def test_narrow_terminals_wrap_reasons_and_nothing_else() -> None:
    block = render_block(BLOCKS["moved"](), width=50)
    reasons = block[block.index("  why") :].partition("  next")[0]
    assert max(map(len, reasons.splitlines())) <= 50
    assert "\n        " in reasons


def test_a_case_without_limits_shows_what_was_measured() -> None:
    report = judge(gpu(382e3), [], baseline=None, context=CONTEXT)
    assert (
        render_block(report)
        == "  now   382 µs  3 processes x 40 samples  NVIDIA H200 at 1500 MHz, locked  45 % of SOL\n"
    )
