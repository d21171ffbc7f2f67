"""Instruments on a real GPU; elsewhere these skip with the reason."""

from __future__ import annotations

from statistics import median

import pytest

from pytest_perfgate.adapters.devices.catalogue import lookup_spec
from pytest_perfgate.adapters.runtimes.torch import TorchRuntime
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.wiring import devices as wired

RUNTIME = TorchRuntime(lookup_spec)
FOUND = RUNTIME.availability()
pytestmark = pytest.mark.skipif(not FOUND.usable, reason=f"no GPU for torch: {FOUND.why}")
PLAN = Plan(budget_ns=0.3e9, warmup_ns=50e6)


@pytest.fixture
def torch():
    import torch

    return torch


def test_the_timers_agree_on_a_copy(torch) -> None:
    source = torch.randn(64 << 20, device="cuda")
    target = torch.empty_like(source)
    read = {}
    for name in ("events", "graph"):
        samples = getattr(wired, f"{name}_timer")().measure(lambda: target.copy_(source), PLAN, RUNTIME)
        read[name] = median(samples.durations) - samples.overhead / samples.batch
    assert read["events"] == pytest.approx(read["graph"], rel=0.02)


def test_a_short_kernel_is_refused_by_events_and_timed_by_a_graph(torch) -> None:
    small = torch.randn(1024, device="cuda")
    with pytest.raises(PerfgateError, match="timer-too-coarse"):
        wired.events_timer().measure(lambda: small.add_(1e-6), PLAN, RUNTIME)
    samples = wired.graph_timer().measure(lambda: small.add_(1e-6), PLAN, RUNTIME)
    assert 500 < median(samples.durations) < 20_000


def test_work_on_another_stream_is_caught(torch) -> None:
    side = torch.cuda.Stream()

    def call() -> None:
        torch.cuda._sleep(200_000)
        with torch.cuda.stream(side):
            torch.cuda._sleep(2_000_000)

    samples = wired.events_timer().measure(call, PLAN, RUNTIME)
    assert [problem.code for problem in samples.problems] == ["work-escaped"]


def test_observing_clocks_leaves_the_card_alone(torch) -> None:
    device = RUNTIME.device()
    with wired.clocks().hold(device, PLAN) as watch:
        torch.cuda._sleep(200_000_000)
        torch.cuda.synchronize()
    assert watch.clock_hz()
