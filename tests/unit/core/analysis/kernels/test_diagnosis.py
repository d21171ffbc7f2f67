"""What resources allow is not what was there."""

from __future__ import annotations

from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis, resident
from pytest_perfgate.core.analysis.kernels.sections import occupancy_section
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.metric import Document
from pytest_perfgate.model.profiles import Launch
from tests.launches import BUSY, launch

WAVES, ACTIVE = "launch__waves_per_multiprocessor", "sm__warps_active.avg.pct_of_peak_sustained_active"
IDLE = {name: 5.0 for name in BUSY}


def occupancy_text(diagnosis: Diagnosis) -> str:
    return " ".join(render_text(Document(title="", blocks=tuple(occupancy_section(diagnosis)))).split())


def test_few_blocks_cap_what_a_multiprocessor_can_have() -> None:
    few = launch(counters={**IDLE, WAVES: 0.1}, launch=Launch(block=(128, 1, 1), grid=(64, 1, 1)))
    assert few.occupancy is not None
    assert (few.occupancy.blocks, resident(few.occupancy, few.numbers)) == (8, 4)
    assert "Theoretical warps/SM: 32 of 64 (0.1 waves of blocks: at most 4 are there, fewer than 8" in occupancy_text(
        few
    )
    assert "4.0 warps a multiprocessor, fewer than 8" in few.classification.evidence
    titles = [finding.title for finding in few.advice]
    assert "Fill the device" in titles
    assert "More warps a multiprocessor" not in titles


def test_waves_that_a_report_rounded_up_add_no_block() -> None:
    rounded = launch(counters={**IDLE, WAVES: 0.251}, launch=Launch(block=(128, 1, 1), grid=(264, 1, 1)))
    assert rounded.occupancy is not None
    assert resident(rounded.occupancy, rounded.numbers) == 8
    assert "at most 8 are there)" in occupancy_text(rounded)


def test_sufficient_is_said_where_what_was_active_agrees() -> None:
    assert "(sufficient to hide latency)" in occupancy_text(launch(counters={**IDLE, ACTIVE: 40.0, WAVES: 0.5}))
    assert "(sufficient to hide latency)" in occupancy_text(launch(counters={**IDLE, WAVES: 4.0}))
    assert "(4.0 were active: fewer than 8 to hide latency)" in occupancy_text(launch(counters={**IDLE, ACTIVE: 6.25}))
    fat = launch(counters=IDLE, launch=Launch(block=(32, 1, 1), shared_dynamic=100_000, grid=(4096, 1, 1)))
    assert "(insufficient: fewer than 8 to hide latency)" in occupancy_text(fat)
    assert "More warps a multiprocessor" in [finding.title for finding in fat.advice]
