"""Instruments on a real GPU; elsewhere these skip with the reason."""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import median

import pytest

from pytest_perfgate.adapters.devices.visible import lookup_spec
from pytest_perfgate.adapters.runtimes.torch import TorchRuntime
from pytest_perfgate.app.instrument import lease_name
from pytest_perfgate.app.output_check import OutputCheck, Subject
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import CaseKey, Plan
from pytest_perfgate.plugin.calls import MeasuredCall
from pytest_perfgate.wiring import devices
from tests.plugin.projects import Project

RUNTIME = TorchRuntime(lookup_spec)
PLANTED = Path(__file__).resolve().parents[2] / "examples" / "planted_on_gpu"
PLAN = Plan(budget_ns=0.3e9, warmup_ns=50e6)

pytestmark = [pytest.mark.gpu, pytest.mark.torch]


@pytest.fixture(autouse=True)
def torch():
    availability = RUNTIME.availability()
    if not availability.usable:
        pytest.skip(f"no GPU for torch: {availability.why}")
    import torch

    return torch


def test_the_timers_agree_on_a_copy(torch) -> None:
    source = torch.randn(64 << 20, device="cuda")
    target = torch.empty_like(source)
    read = {}
    for name in ("events", "graph"):
        samples = getattr(devices, f"{name}_timer")().measure(lambda: target.copy_(source), PLAN, RUNTIME)
        read[name] = median(samples.durations)
    assert read["events"] == pytest.approx(read["graph"], rel=0.02)


def test_a_short_kernel_is_refused_by_events_and_timed_by_a_graph(torch) -> None:
    small = torch.randn(1024, device="cuda")
    with pytest.raises(PerfgateError, match="timer-too-coarse"):
        devices.events_timer().measure(lambda: small.add_(1e-6), PLAN, RUNTIME)
    samples = devices.graph_timer().measure(lambda: small.add_(1e-6), PLAN, RUNTIME)
    assert 500 < median(samples.durations) < 20_000


def test_work_on_another_stream_is_caught(torch) -> None:
    side = torch.cuda.Stream()

    def call() -> None:
        torch.cuda._sleep(800_000)
        with torch.cuda.stream(side):
            torch.cuda._sleep(2_000_000)

    samples = devices.events_timer().measure(call, PLAN, RUNTIME)
    assert [problem.code for problem in samples.problems] == ["work-escaped"]


def test_observing_clocks_leaves_the_card_alone(torch) -> None:
    device = RUNTIME.device()
    with devices.clocks().hold(device, PLAN) as watch:
        torch.cuda._sleep(200_000_000)
        torch.cuda.synchronize()
    assert watch.clock_hz()


def test_kernel_records_see_two_streams_at_once(torch) -> None:
    availability = devices.cupti_timer().availability(RUNTIME)
    if not availability.usable:
        pytest.skip(f"no CUPTI: {availability.why}")
    side = torch.cuda.Stream()

    def call() -> None:
        torch.cuda._sleep(400_000)
        with torch.cuda.stream(side):
            torch.cuda._sleep(400_000)

    samples = devices.cupti_timer().measure(call, PLAN, RUNTIME)
    assert dict(samples.notes)["kernels"] == "2 a call on 2 streams"
    assert all(span >= busy for span, busy in zip(samples.durations, samples.busy, strict=True))


@pytest.mark.parametrize(("honest", "codes"), [(True, []), (False, ["output-not-written"])])
def test_outputs_on_the_device_are_poisoned_and_looked_at(torch, honest, codes) -> None:
    a, b = (torch.randn(2048, 2048, device="cuda") for _ in range(2))
    out = a @ b

    def call():
        torch.mm(a, b, out=out if honest else torch.empty_like(out))
        return out

    measured_call = MeasuredCall(CaseKey(nodeid="t"), call, check=lambda result: bool(torch.isfinite(result).all()))
    timed = measured_call.with_last_result()
    subject = Subject(
        once=measured_call.called,
        last=lambda: timed.last,
        check=measured_call.judge,
        reach=(call,),
        synchronize=RUNTIME.synchronize,
    )
    timer = devices.events_timer()
    scrutiny = OutputCheck(subject, devices.contents())
    samples = scrutiny.scrutinised(lambda: timer.measure(timed, PLAN, RUNTIME))
    assert [problem.code for problem in samples.problems] == codes


def test_the_device_is_the_one_that_the_management_library_knows() -> None:
    device, fleet = RUNTIME.device(), devices.fleet()
    assert lease_name(device) in {lease_name(card) for card in fleet.devices}
    assert dict(device.facts)["driver"]


def test_planted_regressions_of_a_gpu_are_confirmed_and_nothing_else(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for file in PLANTED.glob("*.*"):
        shutil.copy(file, tmp_path)
    for planted in ("", "", "memory speedup"):
        run = project.run("--perfgate=full", fresh=True, PLANTED=planted)
        outcomes = {name: run.outcome(f"test_{name}") for name in ("memory", "speedup")}
        assert outcomes == dict.fromkeys(outcomes, "failed" if planted else "passed"), run.text
    assert all("REGRESSED" in run.says(f"test_{name}") for name in outcomes), run.text
