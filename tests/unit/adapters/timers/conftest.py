from __future__ import annotations

import pytest

from pytest_perfgate.adapters.timers.bench import Rules
from pytest_perfgate.model.measurement import Stop
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.testing import SimulatedGpu


def stop_at_count(durations, spent_ns, plan):
    del spent_ns
    return Stop.COUNT if len(durations) >= plan.min_samples else None


def warm_after_count(medians, calls, spent_ns, plan):
    del medians, spent_ns, plan
    return calls >= 10


@pytest.fixture
def gpu() -> SimulatedGpu:
    return SimulatedGpu()


@pytest.fixture
def rules(gpu) -> Rules:
    return Rules(stop=stop_at_count, warm=warm_after_count, clock=gpu.clock)


@pytest.fixture
def plan() -> Plan:
    return Plan(min_samples=40)
