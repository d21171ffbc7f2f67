"""Cases on four cards at once, through the whole gate: real children, a management library of our own making."""

from __future__ import annotations

import pytest

from pytest_perfgate.adapters.stores.records import Records
from pytest_perfgate.app.spread import lane_of
from tests.plugin.projects import Project

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed", exc_type=ImportError)

CONFTEST = '''
import os
import time
from pytest_perfgate.adapters.devices import clock_watch
from pytest_perfgate.testing import SimulatedGpu
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import SAMPLING

SAMPLERS = []


class Sampler(clock_watch.DeviceSampler):
    def __init__(self, *given):
        super().__init__(*given)
        SAMPLERS.append(self)


clock_watch.DeviceSampler = Sampler


class Card(SimulatedGpu):
    """A simulated card that is whatever card the process was shown first."""

    name = "card"

    def device(self, index=0):
        uuid = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0]
        return Device(key="fake-card", name="NVIDIA H200", kind="gpu", uuid=uuid, pci="00000000:1B:00.0")

    def submit(self, work, cost, stream=0):
        self.now = max(self.now, time.perf_counter_ns())
        super().submit(work, cost, stream)

    def _wait(self, until):
        """Its host is this one: it waits for as long as the card says that it worked, and for a look at the clocks."""
        super()._wait(until)
        while (left := self.now - time.perf_counter_ns()) > 0:
            time.sleep(left / 1e9)
        while SAMPLING.mark % 2 and SAMPLERS and not SAMPLERS[-1].inside():
            time.sleep(0.001)


def pytest_perfgate_runtimes():
    return [CARD]


CARD = Card()
'''
SUITE = """
import os
import pytest


@pytest.fixture
def call(perfgate, pytestconfig):
    from conftest import CARD

    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    perfgate.note("sees", seen)
    perfgate.note("leases", len(os.environ.get("PERFGATE_LEASES", "").split(";")))
    return lambda: CARD.kernel(100_000)


@pytest.mark.perfgate("time <= 1ms", runtime="card")
@pytest.mark.parametrize("n", NUMBERS)
def test_single(perfgate, call, n):
    perfgate(call)


@pytest.mark.perfgate("time <= 1ms", runtime="card", devices=3)
def test_wide(perfgate, call):
    perfgate(call)


@pytest.mark.perfgate("time <= 1ms", runtime="card", devices=5)
def test_too_wide(perfgate, call):
    perfgate(call)
"""


def test_cases_are_spread_and_wide_ones_see_several(tmp_path, drivers) -> None:
    numbers = [next(n for n in range(99) if lane_of(f"test_s.py::test_single[{n}]", 4) == lane) for lane in (1, 2)]
    project = Project(tmp_path)
    project.configure("rounds = 1", 'pythonpath = ["."]')
    project.write("conftest.py", CONFTEST)
    project.write("test_s.py", SUITE.replace("NUMBERS", str(numbers)))
    locks = str(tmp_path / "locks")
    env = {"LD_LIBRARY_PATH": str(drivers), "PERFGATE_LOCKS": locks, "CUDA_DEVICE_ORDER": "", "FAKE_DENIED": "1"}
    done = project.run("--perfgate=full", "--perfgate-clocks=try-lock", **env)
    assert "test_wide" in done.tests, done.text
    assert done.outcome("test_wide") == "passed", done.text
    assert done.outcome("test_too_wide") == "passed", done.text
    cases = {case.key.test: case for case in Records(tmp_path).read().cases}
    for number, card in zip(numbers, "23"):
        measurement = cases[f"test_single[{number}]"].measurement
        assert measurement is not None, done.text
        notes = dict(measurement.identity.notes)
        assert notes == {"sees": f"GPU-{card}1111111-2222-3333-4444-555555555555", "leases": "4"}
        assert measurement.device.uuid == notes["sees"]
        assert dict(measurement.processes[0].notes)["sm clock"].startswith("1980 MHz")
        assert measurement.identity.clocks == "observe"
    assert done.text.count("clocks observed, not locked: ") == 1, done.text
    assert "Insufficient Permissions" in done.text
    assert cases["test_wide"].measurement is not None, done.text
    wide = dict(cases["test_wide"].measurement.identity.notes)
    assert (len(wide["sees"].split(",")), wide["leases"]) == (3, "3")
    assert "asks for 5 devices, and 4 of one kind are visible" in cases["test_too_wide"].verdicts[0].sentence


ASKED = """
import os
from pathlib import Path
import pytest
from conftest import CARD


@pytest.mark.perfgate("time <= 1ms", runtime="card")
@pytest.mark.parametrize("n", [1, 2])
def test_asked(perfgate, n):
    perfgate.note("sees", os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    perfgate(lambda: CARD.kernel(100_000))
    if "PYTEST_XDIST_WORKER" not in os.environ:
        Path(__file__).with_name(f"measured-{n}").touch()


def test_worker_sees():
    assert os.environ["PYTEST_XDIST_WORKER"]
    assert len(list(Path(__file__).parent.glob("measured-*"))) == 2, "a test runs while others are measured"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-31111111-2222-3333-4444-555555555555"
"""


def test_the_device_that_is_asked_for_is_that_of_workers_and_children(tmp_path, drivers) -> None:
    project = Project(tmp_path)
    project.configure("rounds = 1", 'pythonpath = ["."]')
    project.write("conftest.py", CONFTEST)
    project.write("test_s.py", ASKED)
    env = {"LD_LIBRARY_PATH": str(drivers), "PERFGATE_LOCKS": str(tmp_path / "locks"), "CUDA_DEVICE_ORDER": ""}
    done = project.run("-n", "2", "--perfgate=full", "--perfgate-device", "2", **env)
    assert [outcome for outcome, _ in done.tests.values()] == ["passed"] * 3, done.text
    for case in Records(tmp_path).read().cases:
        assert dict(case.measurement.identity.notes)["sees"] == "GPU-31111111-2222-3333-4444-555555555555"
        assert case.measurement.problems == ()
    wrong = project.run("-n", "2", "--perfgate=full", "--perfgate-device", "7", **env)
    assert wrong.code == pytest.ExitCode.USAGE_ERROR
    assert "no device '7' is visible here" in wrong.text
    assert "0: NVIDIA H200 GPU-1" in wrong.text
    assert "Traceback" not in wrong.text
