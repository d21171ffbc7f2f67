"""A measurement as a value."""

from __future__ import annotations

from dataclasses import fields, replace

from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Artifact, Environment, Identity, Measurement, Reference, Samples, Stop
from pytest_perfgate.model.metric import Finding, Metric, MetricSet, Problem
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import Dimension, Work

FULL = Measurement(
    key=CaseKey(nodeid="t.py::test"),
    processes=(Samples(durations=(1.0,), timer="host", stop=Stop.SETTLED),),
    device=Device(key="host", name="host", kind="host"),
    identity=Identity(device="host"),
    environment=Environment(python="3.12"),
    work=Work(flops=1.0),
    findings=(Finding(title="said"),),
    problems=(Problem(code="p", what="wrong"),),
    artifacts=(Artifact(kind="trace", path="t.json"),),
    modules=(("m.py", "1"),),
    limits=("time <= 1s",),
    references=(Reference(over="eager"),),
    params=(("n", "1"),),
)
METRICS = MetricSet(metrics=(Metric(name="time", value=1.0, dimension=Dimension.TIME),))


def test_with_other_metrics_nothing_else_is_lost() -> None:
    plain = Measurement(key=FULL.key, processes=(), device=FULL.device, identity=Identity(device="other"))
    unset = {field.name for field in fields(Measurement) if getattr(FULL, field.name) == getattr(plain, field.name)}
    assert unset == {"key", "device", "metrics"}, "a field that this test leaves as it comes is not held by it"
    assert FULL.with_metrics(METRICS) == replace(FULL, metrics=METRICS)
