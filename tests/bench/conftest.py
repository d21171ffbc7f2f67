from __future__ import annotations

import pytest

from ci.gpu import parts
from tests.bench.simulated import SimulatedCheck


@pytest.fixture
def check(monkeypatch):
    monkeypatch.setattr(parts, "truths", lambda clocks: ({}, "no profiler here"))
    monkeypatch.setattr(parts, "proof_failure", lambda: "")
    return SimulatedCheck("observe")
