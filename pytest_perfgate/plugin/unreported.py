"""Gated tests that were chosen and that pytest never ran: a verdict that no report carries fails nothing by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_perfgate.core.gate.policy import chosen
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.plan import Mode
from pytest_perfgate.model.verdict import SuiteNote

if TYPE_CHECKING:
    import pytest

    from pytest_perfgate.plugin.docket import Docket


def hear(session: Docket, report: pytest.TestReport) -> None:
    """A test was run, or something before it says why it was not."""
    if report.when == "call" or not report.passed:
        session.heard.add(report.nodeid)


def unreported_notes(session: Docket) -> tuple[SuiteNote, ...]:
    """One note of a whole run; it fails where a verdict would have, and else by what is done of the unmeasured."""
    lost = [nodeid for nodeid in session.cases if nodeid not in session.heard]
    if not lost or not session.complete or session.mode is Mode.OFF:
        return ()
    why = "by a hook of a conftest or a plugin that stands in for pytest's own"
    failing = any(report.effect is Effect.FAIL for nodeid in lost for report in session.reports.get(nodeid, ()))
    return (
        SuiteNote(
            kind="unrun",
            effect=Effect.FAIL if failing else chosen(session.court.context.policy, "unmeasured"),
            text=f"{plural(len(lost), 'gated test')} chosen and not run, {why}: no report carries a verdict",
            names=tuple(name for nodeid in lost for name in _said(session, nodeid)),
        ),
    )


def _said(session: Docket, nodeid: str) -> Iterator[str]:
    """The test, and what it came to where it was measured."""
    found = [f"{report.key}: {report.worst.value}" for report in session.reports.get(nodeid, ())]
    yield from found or [nodeid]
