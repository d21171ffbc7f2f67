"""Tests of app/devices."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.devices import visible
from pytest_perfgate.adapters.runtimes import torch as torch_runtime
from pytest_perfgate.app.devices import catalogue_document, measured_ceilings, why_too_low
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.device import Availability, Ceilings, Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Samples, Stop
from pytest_perfgate.model.metric import Problem, Table
from pytest_perfgate.model.project import Config
from pytest_perfgate.testing import SimulatedGpu
from pytest_perfgate.wiring import devices as wired

CARD = Device(key="card-lock", name="card", kind="gpu", uuid="GPU-1")
LOADS = (
    SimpleNamespace(name="product", dtype="bf16", flops=2e9, bytes=0.0, call="product"),
    SimpleNamespace(name="copy", dtype="", flops=0.0, bytes=1e6, call="copy"),
)
GOOD = Samples(durations=(1e6,) * 5, timer="events", stop=Stop.COUNT, clock_hz=(1.5e9,))
HOT = Samples(
    durations=(1e6,) * 5, timer="events", stop=Stop.COUNT, problems=(Problem(code="throttled", what="power cap"),)
)


def ceilings_of(**by_load):
    def take(call):
        taken = by_load[call]
        if isinstance(taken, Exception):
            raise taken
        return taken

    return measured_ceilings(CARD, "torch", take, LOADS, "2026-01-01")


def test_the_catalogue_fits_the_terminal() -> None:
    catalogue = tuple(wired.catalogue(Config()))
    narrow, wide = catalogue_document(catalogue, 80), catalogue_document(catalogue)
    assert max(map(len, render_text(narrow, 80, 80).splitlines())) <= 80
    assert isinstance(narrow.blocks[0], Table)
    assert isinstance(wide.blocks[0], Table)
    assert {"device", "arch", "bandwidth", "bf16"} <= {column.name for column in narrow.blocks[0].columns}
    assert "Not shown for want of room: confidence, units" in narrow.blocks[0].note
    assert {"confidence", "units", "fp64"} <= {column.name for column in wide.blocks[0].columns}


def test_the_fastest_sample_of_each_load_with_its_clock() -> None:
    ceilings = ceilings_of(product=GOOD, copy=GOOD)
    assert (ceilings.compute, ceilings.bandwidth, ceilings.clock_hz) == ((("bf16", 2e12),), 1e9, 1.5e9)


def test_a_load_with_too_few_samples_is_measured_until_there_are_five() -> None:
    calls = []

    def take(call):
        calls.append(call)
        return Samples(durations=(4e6 / len(calls), 4e6), timer="events", stop=Stop.COUNT, clock_hz=(1.5e9,))

    ceilings = measured_ceilings(CARD, "torch", take, LOADS[:1], "2026-01-01")
    assert (len(calls), ceilings.compute) == (3, (("bf16", 2e9 / (4e6 / 3 / 1e9)),))
    assert dict(ceilings.facts)["product"].startswith("6 samples by events")


def test_a_load_of_several_turns_counts_its_best_and_other_programs_are_named() -> None:
    turns = [(4e6, 4e6), (1e6, 4e6), (5e6, 5e6), (4e6, 6e6)]
    slow = iter(Samples(durations=one, timer="host", stop=Stop.COUNT, others=0.9) for one in turns)
    ceilings = measured_ceilings(CARD, "host", lambda call: next(slow), LOADS[:1] * 2, "2026-01-01")
    assert ceilings.compute == (("bf16", 2e12),)
    assert dict(ceilings.facts)["product"].startswith("8 samples by host; WARNING: half of them 300 % slower")
    assert dict(ceilings.facts)["other programs"].startswith("WARNING: used 0.9 processors meanwhile")
    assert "other programs" not in dict(ceilings_of(product=GOOD, copy=GOOD).facts)


def test_a_higher_rate_of_an_earlier_run_stays_and_is_named() -> None:
    low, high = (Ceilings(device="d", compute=(("fp32", n),), bandwidth=n, method="m") for n in (1e12, 2e12))
    later = low.or_higher(high)
    assert (later.compute, later.bandwidth) == (high.compute, high.bandwidth)
    assert dict(later.facts) == {
        "fp32 of an earlier run": "kept: this run reached 1000 GFLOPS",
        "copy of an earlier run": "kept: this run reached 1000 GB/s",
    }
    assert high.or_higher(low) == high.or_higher(None) == high
    assert low.or_higher(replace(high, method="another")) == low.or_higher(replace(high, device="another")) == low
    assert replace(low, compute=()).or_higher(high).compute == high.compute


def test_what_was_spoiled_is_no_ceiling() -> None:
    ceilings = ceilings_of(product=HOT, copy=GOOD)
    assert (ceilings.compute, ceilings.bandwidth) == ((), 1e9)
    assert dict(ceilings.facts)["product"].startswith("not measured: power cap")


def test_nothing_measured_is_an_error_and_not_a_file_without_ceilings() -> None:
    with pytest.raises(PerfgateError, match="product: not measured: power cap") as raised:
        ceilings_of(product=HOT, copy=RuntimeError("out of memory"))
    assert raised.value.code.name == "ceilings-none"


def test_a_lock_that_is_denied_ends_it() -> None:
    with pytest.raises(PerfgateError, match="Insufficient"):
        ceilings_of(product=PerfgateError("clocks-denied", "Insufficient Permissions"), copy=GOOD)


def test_on_a_gpu_the_clocks_are_held_as_asked_and_the_card_is_leased(tmp_path, monkeypatch) -> None:
    states: list[tuple[str, str]] = []

    class Clocks:
        @contextmanager
        def hold(self, device, plan):
            states.append((plan.clocks.value, os.environ.get("PERFGATE_LEASES", "").partition("=")[0]))
            yield SimpleNamespace(
                problems=tuple, clock_hz=lambda: (1.5e9,), watts=lambda: None, capped=lambda: None, facts=tuple
            )

    class Torch(SimulatedGpu):
        def __init__(self, lookup) -> None:
            super().__init__(launch_ns=4_000)

        def device(self, index=0):
            return CARD

    gpus: list[Torch] = []
    monkeypatch.setenv("PERFGATE_LOCKS", str(tmp_path))
    monkeypatch.delenv("PERFGATE_LEASES", raising=False)
    monkeypatch.setattr(torch_runtime, "TorchRuntime", lambda lookup: gpus.append(Torch(lookup)) or gpus[0])
    monkeypatch.setattr(visible, "torch_loads", lambda device: LOADS)
    monkeypatch.setattr(wired, "clocks", lambda tell: Clocks())
    monkeypatch.setattr(wired, "events_timer", lambda: SimpleNamespace(measure=lambda call, plan, runtime: GOOD))
    bench = wired.ceiling_bench(Config(), "torch", "lock")
    assert bench.take("product").clock_hz == (1.5e9,)
    assert states == [("lock", "1")]
    assert "PERFGATE_LEASES" not in os.environ


@pytest.mark.parametrize(
    ("durations", "sentence"),
    [
        ((1.0, 1.1, 1.05, 1.0, 1.2), ""),
        ((1.0, 1.6, 1.5, 1.6, 1.4), "; WARNING: half of them 50 % slower than the fastest: measure"),
    ],
)
def test_a_ceiling_of_a_busy_machine_is_doubted_aloud(durations: tuple[float, ...], sentence: str) -> None:
    assert why_too_low(durations).startswith(sentence)
    assert bool(why_too_low(durations)) is bool(sentence)


class CUDAError(Exception):
    """As that of cuda.core, which is no RuntimeError."""


@pytest.mark.parametrize("kind", [RuntimeError, CUDAError])
def test_a_library_that_fails_at_its_first_device_does_not_end_the_doctor(kind: type[Exception]) -> None:
    def fails() -> Device:
        raise kind("all CUDA-capable devices are busy or unavailable\nmore of it")

    busy_library = SimpleNamespace(availability=lambda: Availability(name="cuda", usable=True), device=fails)
    devices, (busy, well) = wired.machine([busy_library, wired.host_runtime()])
    assert [device.kind for device in devices] == ["host"]
    assert (busy.usable, well.usable) == (False, True)
    assert busy.why == f"{kind.__name__}: all CUDA-capable devices are busy or unavailable"
