"""What the controller of pytest-xdist tells its workers beside the verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_perfgate.core.gate.grammar import parse_limit
from pytest_perfgate.model.children import Fault
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.wiring import read_values, write_values
from tests.unit.core.gate.bench import KINDS


def test_a_fault_arrives_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError) as caught:
        parse_limit("tme <= 1s", kinds=KINDS, place="test_µ.py:3")
    write_values(tmp_path / "faults", [Fault.of("test_µ.py::test_a", caught.value)])
    (fault,) = read_values(tmp_path / "faults", Fault)
    assert fault.nodeid == "test_µ.py::test_a"
    assert fault.error().text() == caught.value.text()
    assert "did you mean 'time'" in fault.error().text()
    assert read_values(tmp_path / "nothing", Fault) == []
