"""Which slowdown two arms are asked about."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.judge.against_revision import UNASKED, arm_limit, contested_limit
from pytest_perfgate.model.plan import CaseKey, Effect, Limit, Outcome
from pytest_perfgate.model.verdict import CaseReport, Verdict
from tests.unit.core.gate.bench import GPU, HOST, KEY, limit


def on(text: str, *patterns: str) -> Limit:
    return limit(text, on=patterns)


@pytest.mark.parametrize(
    ("limits", "counts"),
    [
        ((), 0.03),
        ((limit("time <= 1ms"), limit("throughput >= 1/s")), UNASKED),
        ((limit("slowdown <= 1%"),), 0.01),
        ((limit("slowdown <= 10%"), limit("slowdown < 5%")), 0.05),
        ((limit("slowdown <= -20%"),), UNASKED),
        ((limit("slowdown <= 0%"), limit("slowdown <= 5%")), 0.0),
        ((on("slowdown <= 1%", "H200*"), limit("slowdown <= 8%")), 0.08),
        ((limit("slowdown(case=other) <= 1%"), limit("slowdown <= 8%")), 0.08),
        ((limit("slowdown(case=mine) <= 1%"), limit("slowdown <= 8%")), 0.01),
        ((limit("slowdown(stage=mine) <= 1%"), limit("slowdown <= 8%")), 0.08),
    ],
)
def test_the_tightest_that_is_meant_for_the_call(limits: tuple[Limit, ...], counts: float) -> None:
    assert arm_limit(limits, CaseKey(nodeid=KEY.nodeid, name="mine"), HOST) == pytest.approx(counts)


def test_what_is_meant_for_other_devices_is_not_asked() -> None:
    limits = (on("slowdown <= 1%", f"{GPU.key}*"), on("slowdown <= 8%", HOST.key))
    assert [arm_limit(limits, KEY, device) for device in (GPU, HOST)] == [0.01, 0.08]


def test_a_case_is_asked_about_the_limits_that_are_open() -> None:
    def verdict(text: str, outcome: Outcome) -> Verdict:
        return Verdict(limit=limit(text), outcome=outcome, effect=Effect.WARN)

    found = [verdict("slowdown <= 9%", Outcome.SUSPECT), verdict("slowdown <= 2%", Outcome.PASSED)]
    assert contested_limit(CaseReport(key=KEY, verdicts=tuple(found))) == 0.09
    found.append(verdict("slowdown <= 4%", Outcome.REGRESSED))
    assert contested_limit(CaseReport(key=KEY, verdicts=tuple(found))) == 0.04
    assert contested_limit(CaseReport(key=KEY, verdicts=())) == UNASKED
