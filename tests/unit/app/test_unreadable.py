"""A baseline that does not read is found before anything is measured; found later, it costs no measurement."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.plugin.measure_ahead import judge_measured
from tests.unit.app.test_gate import Lines, captured, case, court
from tests.unit.core.gate.bench import KEY, accepted, measured


class Torn(Lines):
    """Baselines of which those of one revision do not read."""

    def __init__(self, revision: str) -> None:
        super().__init__(accepted(1e6), accepted(1e6))
        self.revision = revision

    def devices(self) -> tuple[str, ...]:
        return ("host",)

    def read(self, device: str, path: str, revision: str = "") -> dict[str, Baseline]:
        if revision == self.revision:
            raise PerfgateError("baseline-unreadable", "line 1 does not read")
        return super().read(device, path, revision)


@pytest.mark.parametrize("revision", ["", "base"])
def test_files_are_read_before_anything_is_measured(revision: str) -> None:
    with pytest.raises(PerfgateError, match="does not read"):
        court(Torn(revision)).read_baselines([case()])
    court(Torn("another")).read_baselines([case()])
    court(Torn(revision)).read_baselines([])


def test_what_was_measured_is_kept_without_a_verdict() -> None:
    held: Any = SimpleNamespace(court=court(Torn("")), reports={}, faults={}, died=set())
    with pytest.raises(PerfgateError, match="does not read"):
        judge_measured(held, {KEY.nodeid: captured(measured(1e6))})
    ((report,),) = held.reports.values()
    assert report.measurement is not None
    assert report.worst is Outcome.NOT_MEASURED
