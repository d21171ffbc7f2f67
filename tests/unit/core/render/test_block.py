"""What an analysis saw, in the gate's failure block."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.render.block import notable_findings, render_block
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Identity, Measurement
from pytest_perfgate.model.metric import Finding, Severity
from pytest_perfgate.model.plan import CaseKey, Outcome
from tests.reports import case


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
