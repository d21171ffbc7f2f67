"""Runtimes whose true times are known, for the tests of a timer or a plugin."""

from __future__ import annotations

from pytest_perfgate.adapters.runtimes.fakes import FakeEvent, FakeRuntime, SimulatedEvent, SimulatedGpu

__all__ = ["FakeEvent", "FakeRuntime", "SimulatedEvent", "SimulatedGpu"]
