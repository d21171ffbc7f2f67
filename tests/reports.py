"""Reports that tests are made of: cases with a time, a baseline and a verdict."""

from __future__ import annotations

from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Baseline, Environment, Identity, Measurement, Samples, Stop
from pytest_perfgate.model.metric import Interval, Metric, MetricSet, Problem
from pytest_perfgate.model.plan import CaseKey, Effect, Limit, Operator, Outcome
from pytest_perfgate.model.values import Dimension, Work
from pytest_perfgate.model.verdict import CaseReport, RunReport, Verdict

DEVICE = Device(key="NVIDIA-H200", name="NVIDIA H200", kind="gpu", facts=(("driver", "580.1"),))
LIMIT = Limit(
    metric="slowdown", labels=(), operator=Operator.AT_MOST, bound=0.03, dimension=Dimension.FRACTION,
    text="slowdown <= 3%", source="default",
)  # fmt: skip


def measurement(
    test: str,
    time: float,
    *,
    spread: float = 0.005,
    problems: tuple[Problem, ...] = (),
    device: Device = DEVICE,
    **fields,
) -> Measurement:
    samples = [time * (1 + spread * step / 20) for step in range(-20, 21)]
    metrics = (
        Metric(name="time", value=time, dimension=Dimension.TIME, interval=Interval(low=time * (1 - spread), high=time * (1 + spread))),
        Metric(name="mfu", value=0.66, dimension=Dimension.FRACTION),
    )  # fmt: skip
    return Measurement(
        key=CaseKey(nodeid=f"tests/test_k.py::{test}"),
        processes=tuple(Samples(durations=tuple(samples), timer="host", stop=Stop.SETTLED) for _ in range(3)),
        device=device,
        identity=Identity(device=device.key, threads="2"),
        environment=Environment(python="3.11", platform="Linux", commit="c0ffee1234567890"),
        work=Work(flops=1e9, bytes=1e6, dtype="bf16"),
        metrics=MetricSet(metrics=metrics),
        problems=problems,
        **fields,
    )


def baseline(test: str, time: float, **fields) -> Baseline:
    values = {"device": DEVICE.key, "commit": "a1b2c3d", "when": "2026-05-02", "why": "TMA loads"} | fields
    return Baseline(key=CaseKey(nodeid=f"tests/test_k.py::{test}"), time=time, **values)


def case(test: str, time: float, then: float | None = None, outcome: Outcome = Outcome.PASSED, **fields) -> CaseReport:
    effect = Effect.FAIL if outcome in {Outcome.REGRESSED, Outcome.BROKEN, Outcome.INVALID} else Effect.PASS
    measured = measurement(test, time, **fields)
    before = baseline(test, then) if then else None
    shift = Metric(name="slowdown", value=time / then - 1, dimension=Dimension.FRACTION) if then else None
    verdict = Verdict(
        limit=LIMIT, outcome=outcome, effect=effect, metric=shift, baseline=before, visible=0.021,
        sentence="said in one sentence", evidence=(("why", "shared memory 96 -> 114 KiB"),),
        next=(f"perfgate accept '{test}' --reason '...'",),
    )  # fmt: skip
    return CaseReport(key=measured.key, verdicts=(verdict,), measurement=measured, baseline=before)


def run(*cases: CaseReport, **fields) -> RunReport:
    environment = Environment(python="3.11", platform="Linux", commit="c0ffee1234567890")
    values = {"mode": "full", "started": "2026-06-01T10:00:00+00:00", "seconds": 12.5, "environment": environment}
    return RunReport(cases=cases, **(values | fields))


def day(number: int, *times: float, mode: str = "full", commit: str = "") -> RunReport:
    """The run of one day: a case a time, each of another name."""
    environment = Environment(python="3.11", platform="Linux", commit=commit or f"{number:040x}")
    cases = [case(f"test_{name}", time, 1e6, Outcome.PASSED) for name, time in zip("abcdefg", times)]
    return run(*cases, started=f"2026-06-{number:02}T10:00:00+00:00", environment=environment, mode=mode)
