"""What an analysis saw, in the gate's failure block."""

from __future__ import annotations

from pytest_perfgate.core.render.block import notable_findings
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Identity, Measurement
from pytest_perfgate.model.metric import Finding, Severity
from pytest_perfgate.model.plan import CaseKey


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
