"""The machine on one screen, from instruments that only say what they are."""

from __future__ import annotations

import pytest

from pytest_perfgate.app.diagnosis import DoctorTools, diagnosis, same_against_same, words
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Samples, Stop


class Named:
    def __init__(self, name, **why) -> None:
        self.name, self._why = name, why

    def availability(self, runtime=None):
        why = self._why.get(runtime.name, "") if runtime else ""
        return Availability(name=self.name, usable=not why, why=why)


class Lock:
    device, pid, stale = "GPU-1", 12, True


def figures(runtime, timer):
    if timer == "graph":
        raise PerfgateError("timer-broken", "no")
    return 1500.0, 500.0


def text(same=None, **changed) -> str:
    doctor_tools = DoctorTools(
        **{
            "devices": [Device(key="k", name="Card", kind="gpu", memory_bytes=2.0**30)],
            "libraries": [Availability(name="cupy", usable=False, why="not installed", fix="pip install cupy")],
            "runtimes": [Named("torch"), Named("host")],
            "timers": [Named("auto"), Named("events", host="no queue"), Named("graph", host="no queue"), Named("host", torch="behind")],
            "management": Availability(name="nvml", usable=True, version="driver 580"),
            "profilers": [],
            "gpu_permissions": [],
            "host_permissions": [],
            "locks": [Lock()],
            "visible": "CUDA_VISIBLE_DEVICES=1",
            "restricted": True,
            "resolution": figures,
            **changed,
        }
    )  # fmt: skip
    return render_text(diagnosis(doctor_tools, same))


def test_everything_has_its_line() -> None:
    output = text((0.001, 0.002))
    assert "k: Card, 1 GiB, no data sheet" in output
    assert "no   cupy: not installed; next: pip install cupy" in output
    assert "yes  nvml: driver 580" in output
    assert "host without events, graph: no queue" in output
    assert "torch without host: behind" in output
    assert "CUDA_VISIBLE_DEVICES=1" in output
    assert "GPU-1 were left locked by process 12" in output
    assert "1.5 µs" in output
    assert "auto" not in output


def test_a_timer_that_fails_when_it_is_asked_has_no_figures() -> None:
    (line,) = [line for line in text().splitlines() if line.startswith("torch    graph")]
    assert line.count("not collected") == 2


@pytest.mark.parametrize(("same", "warned"), [((0.001, 0.002), False), ((-0.05, 0.001), True), ((0.0, 0.03), True)])
def test_a_machine_that_is_not_quiet_is_told(same, warned) -> None:
    assert ("Something else is running" in text(same)) is warned
    assert "against itself" not in text()


def test_roles_change_places_so_that_a_drift_is_no_shift() -> None:
    class Drifting:
        now = 100.0

        def measure(self, call, plan, runtime):
            self.now *= 1.01
            return Samples(durations=(self.now,), timer="t", stop=Stop.COUNT)

    shift, scatter = same_against_same(lambda: None, None, Drifting(), 1.0)
    assert abs(shift) < 0.0101
    assert scatter == pytest.approx(0.01, rel=0.1)
    assert words(Availability(name="x", usable=False, why="no")) == "no   x: no"
