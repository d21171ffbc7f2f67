"""What a project does to the clocks reaches no budget, no date and no cost of a later run."""

from __future__ import annotations

import json
import time

from tests.plugin.projects import Project

FROZEN = """
    import datetime, pytest, time

    class Frozen(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2001, 1, 1, tzinfo=tz)

    datetime.datetime = Frozen
    time.time = lambda: 1e9

    @pytest.fixture(scope="session")
    def frozen():
        time.perf_counter = time.monotonic = lambda: 1.7e9
        time.perf_counter_ns = time.monotonic_ns = lambda: 17 * 10**17
"""
TESTS = """
    import pytest

    pytestmark = pytest.mark.perfgate("time <= 1s")

    def test_first(perfgate, frozen):
        perfgate(sorted, [2, 1])

    def test_second(perfgate):
        perfgate(sorted, [2, 1])
"""


def test_a_frozen_clock_reaches_no_cost_no_budget_and_no_date(project: Project) -> None:
    project.write("conftest.py", FROZEN)
    project.write("test_it.py", TESTS)
    project.run("--perfgate=full", fresh=True)  # a fork has imported what a conftest cannot change any more
    costs = json.loads((project.root / ".perfgate" / "costs.json").read_text())
    assert sorted(costs) == ["", "test_it.py::test_first", "test_it.py::test_second"]
    assert all(0 < cost < 60 for cost in costs.values()), costs
    again = project.run("--perfgate=full", "--perfgate-budget=60s", fresh=True)
    assert "sampling cut" not in again.text
    records = list((project.root / ".perfgate" / "records").glob("*.json"))
    assert all(record.name.startswith(time.strftime("%Y%m", time.gmtime())) for record in records), records
    assert all(0 < json.loads(record.read_text())["run"]["seconds"] < 60 for record in records)
