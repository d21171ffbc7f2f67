"""Why there is no measurement of a call that a test now reads: what the session knows of it, in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import CaseKey
    from pytest_perfgate.model.verdict import CaseReport

_LONGEST = 300


def fate(reports: Mapping[str, Sequence[CaseReport]], key: CaseKey) -> str:
    """What became of a call when its test was measured; empty where nobody knows."""
    found = reports.get(key.nodeid, ())
    mine = [report for report in found if report.key == key] or [report for report in found if not report.key.name]
    lost = (verdict.sentence for report in mine if report.measurement is None for verdict in report.verdicts)
    said = " ".join(next(filter(None, lost), "").split())
    if not said and found and not mine:
        said = f"when the test was measured this call did not happen: {_called(found)} did"
    return f"{said[:_LONGEST]}…" if len(said) > _LONGEST else said


def _called(found: Sequence[CaseReport]) -> str:
    return ", ".join(repr(report.key.name) for report in found)
