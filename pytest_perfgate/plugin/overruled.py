"""A run that failed, and that a hook of the project lets end as if it had passed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.plugin.complaints import complain
from pytest_perfgate.plugin.told import told

if TYPE_CHECKING:
    from pytest_perfgate.plugin.docket import Docket


def stand_by(docket: Docket, config: pytest.Config) -> None:
    """In CI a failed gate fails the job: ``pytest.exit`` and ``exitstatus`` in a conftest come after its verdicts."""
    session: Any = config.pluginmanager.get_plugin("session")
    failed = _failed(docket)
    if failed and session is not None and session.exitstatus == pytest.ExitCode.OK and told(config).get("CI"):
        what = f"{plural(failed, 'verdict')} of this run failed, and a conftest or a plugin ended it with 0"
        complain(config, PerfgateError("run-overruled", what))
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _failed(docket: Docket) -> int:
    """Verdicts that failed a test of this run, or the suite; not those of tests that are expected to fail."""
    tests = [report for nodeid in docket.judged for report in docket.reports.get(nodeid, ())]
    failed = [f"{report.worst.value}: {report.key}" for report in tests if report.effect is Effect.FAIL]
    notes = sum(note.effect is Effect.FAIL for note in docket.notes)
    return notes + sum(said not in docket.excused for said in failed)
