from __future__ import annotations

import pytest

from pytest_perfgate.core.analysis.kernels.reports import analysis_report, contract_document
from pytest_perfgate.core.analysis.kernels.views import HEALTH, health_view, unhealthy
from pytest_perfgate.core.render.text import render_text
from tests.launches import ELAPSED, launch

WELL = {"tc_util": 0.7, "dram": 0.3, "occupancy": 0.3, "l2_hit": 0.9, "spills": 0.0, "waves": 2.0}


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({}, []),
        ({"tc_util": 0.6}, ["tc_util", "dram"]),
        ({"tc_util": 0.1, "dram": 0.71}, []),
        ({"occupancy": 0.25}, ["occupancy"]),
        ({"l2_hit": 0.8}, ["l2_hit"]),
        ({"spills": 8.0}, ["spills"]),
        ({"waves": 1.0}, ["waves"]),
    ],
)
def test_each_row_at_its_bound(changed: dict[str, float], named: list[str]) -> None:
    assert [row.name for row, _ in unhealthy({**WELL, **changed})] == named


def test_what_was_not_collected_is_not_judged() -> None:
    assert list(unhealthy({})) == []
    assert [row.name for row, _ in unhealthy({"dram": 0.2})] == ["dram"]
    assert len(HEALTH) == 6


def test_the_view_the_report_and_the_contract_say_it() -> None:
    counters = {
        f"dram__throughput{ELAPSED}": 75.0,
        f"sm__throughput{ELAPSED}": 30.0,
        f"sm__pipe_tensor_cycles_active{ELAPSED}": 10.0,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 12.5,
    }
    ill = launch(counters=counters)
    page = render_text(health_view([ill], "T"))
    assert "registers or shared memory hold it down" in page
    assert "the other side binds" in page
    assert "healthy" in page
    assert "k: occupancy 12.5 % (healthy: over 25 %)" in render_text(analysis_report([ill], "T"))
    assert "occupancy 12.5 %" in render_text(contract_document([ill]))
