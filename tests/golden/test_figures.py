"""The pictures that pages show are those that perfgate draws; ``PERFGATE_GOLDEN=write`` draws them anew."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.app.inspections import picture
from pytest_perfgate.core.analysis.kernels.diagnosis import diagnose
from pytest_perfgate.core.analysis.kernels.pictures import draw
from pytest_perfgate.core.analysis.occupancy import LIMITS
from pytest_perfgate.core.render.drawing import standalone
from pytest_perfgate.core.render.pictures import distribution_picture
from pytest_perfgate.model.measurement import HistoryEntry, Samples, Stop
from pytest_perfgate.model.metric import Picture
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.profiles import KernelFacts, Launch, Resources
from pytest_perfgate.wiring.built_ins import BuiltIns
from tests.drawings import flaws
from tests.kineto_file import host, kernel, launch, written
from tests.reports import case

FIGURES = Path(__file__).parents[2] / "docs" / "figures"

STEP = (("gemm", 7, 0, 190), ("softmax", 7, 200, 60), ("gemm", 7, 270, 180), ("gemm", 7, 640, 200))

SENT = (("ncclDevKernel_AllGather", 20, 60, 110), ("ncclDevKernel_ReduceScatter", 20, 330, 280))


def timeline(folder: Path) -> Picture:
    """Two steps: the gather is hidden, and of the scatter what the products leave over."""
    events, number = [], 0
    for step in (0, 1):
        at = 900 * step
        events.append(host(f"ProfilerStep#{step}", at, 880, cat="user_annotation"))
        for name, stream, start, length in (*STEP, *SENT):
            number += 1
            events.append(launch(at + start // 8 + 1, number))
            late = 40 * step if stream == 20 and start > 300 else 0
            events.append(kernel(name, at + start, length + late, stream=stream, correlation=number))
    inspector = next(one for one in BuiltIns().pytest_perfgate_inspectors() if one.name == "kineto")
    return picture(inspector.inspect([written(folder / "step.json", events)], {}), "timeline")


def occupancy(_: Path) -> Picture:
    facts = KernelFacts(
        name="gemm_tiled",
        arch="sm_90",
        launch=Launch(block=(256, 1, 1), shared_dynamic=72 * 1024),
        resources=Resources(registers=80),
    )
    return draw("occupancy", [diagnose(facts, facts.name, LIMITS["sm_90"])])


def samples(_: Path) -> Picture:
    """12 % slower than what was accepted, and the runs before were not."""
    slow = case("test_gemm[4096]", 1.12e6, 1e6, Outcome.REGRESSED)
    assert slow.baseline is not None
    assert slow.measurement is not None
    wave = [((7 * n) % 23 - 11) / 11 for n in range(200)]
    processes = tuple(
        Samples(durations=tuple(1.12e6 * (1 + 0.006 * w + 0.002 * p) for w in wave), timer="events", stop=Stop.SETTLED)
        for p in range(3)
    )
    past = [HistoryEntry(key=slow.key, device="d", time=1e6 * (1 + 0.008 * w), when="2026-05-01") for w in wave[:30]]
    now = replace(
        slow,
        measurement=replace(slow.measurement, processes=processes),
        baseline=replace(slow.baseline, scatter=0.006, anchor=0.97e6),
    )
    drawn = distribution_picture(now, past)
    assert drawn is not None
    return drawn


@pytest.mark.parametrize("figure", [timeline, occupancy, samples], ids=lambda one: one.__name__)
def test_figures_of_pages_are_as_they_are_drawn(figure, tmp_path: Path) -> None:
    drawn = figure(tmp_path)
    assert not flaws(drawn)
    path, text = FIGURES / f"{figure.__name__}.svg", standalone(drawn.svg) + "\n"
    if os.environ.get("PERFGATE_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
