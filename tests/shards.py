"""Records of the two shards of a run of four tests."""

from __future__ import annotations

from dataclasses import replace

from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Environment
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.verdict import RunReport, Shard, Universe
from tests.reports import LIMIT, case, run

NAMES = tuple(f"tests/test_k.py::test_{letter}" for letter in "abcd")
UNIVERSE = Universe(cases=tuple((name, (LIMIT,)) for name in NAMES), policy=CI)
ENVIRONMENT = Environment(python="3.11", platform="Linux", commit="c0ffee1234567890", facts=(("driver", "580.1"),))
A100 = Device(key="NVIDIA-A100", name="NVIDIA A100", kind="gpu")


def record(
    index: int, letters: str, *, outcome: Outcome = Outcome.PASSED, device: Device | None = None, **fields
) -> RunReport:
    """Shard ``index`` of 2 with these of the four tests."""
    card = {} if device is None else {"device": device}
    shard = Shard(
        run=f"run-{index}-{device.name if device else ''}", index=index, count=2, universe=UNIVERSE,
        chosen=tuple("abcd".index(letter) for letter in letters), host=f"node-{index}",
        device=device.name if device else "NVIDIA H200", environment=ENVIRONMENT,
        started=f"2026-06-01T10:0{index}:00+00:00", seconds=10.0 * index,
    )  # fmt: skip
    cases = [case(f"test_{letter}", 1e6, 1e6, outcome, **card) for letter in letters]
    return run(*cases, environment=ENVIRONMENT, shards=(replace(shard, **fields),))
