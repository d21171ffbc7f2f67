from __future__ import annotations

import pytest

from pytest_perfgate.adapters.timers.bench import Rules
from pytest_perfgate.model.measurement import Stop
from pytest_perfgate.testing import SimulatedGpu


@pytest.fixture
def gpu() -> SimulatedGpu:
    return SimulatedGpu()


@pytest.fixture
def rules(gpu) -> Rules:
    return Rules(
        stop=lambda durations, spent, plan: Stop.COUNT if len(durations) >= 20 else None,
        warm=lambda medians, calls, spent, plan: calls >= 5,
        clock=gpu.clock,
    )
