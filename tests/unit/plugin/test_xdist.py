"""What the controller of pytest-xdist tells its workers beside the verdicts."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.protocol import Fault
from pytest_perfgate.plugin.xdist import WorkerRole
from pytest_perfgate.wiring import read_values, write_values
from tests.unit.core.judge.bench import KINDS


def test_a_fault_arrives_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError) as caught:
        parse_limit("tme <= 1s", kinds=KINDS, place="test_µ.py:3")
    write_values(tmp_path / "faults", [Fault.of("test_µ.py::test_a", caught.value)])
    (fault,) = read_values(tmp_path / "faults", Fault)
    assert fault.nodeid == "test_µ.py::test_a"
    assert fault.error().text() == caught.value.text()
    assert "did you mean 'time'" in fault.error().text()
    assert read_values(tmp_path / "nothing", Fault) == []


def test_a_test_that_asks_too_late_where_nothing_is_gated_is_told_so(request: pytest.FixtureRequest) -> None:
    """It ended in a failed assertion of the worker."""
    role = WorkerRole(request.config)
    role.gate(request.node)
    session = role._loaded_session()
    with contextlib.suppress(pytest.fail.Exception):  # in CI what was not measured fails
        session.judge(request.node)
    (report,) = session.reports[request.node.nodeid]
    assert not report.verdicts or "while it ran" in report.verdicts[0].sentence
    assert report.measurement is None
