"""Tables of ``[[tool.perfgate.tests]]`` that no test answers to: their limits are held against nothing."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import pytest

from pytest_perfgate.core.gate.nearest import proposal
from pytest_perfgate.core.gate.patterned import unmatched
from pytest_perfgate.core.gate.policy import chosen
from pytest_perfgate.core.render.plural import first_of
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.verdict import SuiteNote
from pytest_perfgate.plugin.skips import skipped_files

if TYPE_CHECKING:
    from pytest_perfgate.model.config import ConfigPattern
    from pytest_perfgate.plugin.docket import Docket


def pattern_notes(session: Docket, *, filtered: bool) -> tuple[SuiteNote, ...]:
    """What a whole run can tell; where it left tests out, or was interrupted, the table may be for those."""
    if filtered or not session.complete:
        return ()
    known = {*session.cases, *session.faults}
    idle = unmatched(session.settings.project.tests, known)
    if not idle:
        return ()
    hidden = _unopened(session.settings.pytest)
    said = "; ".join(
        ["no gated test has a node id that they match: what they say is done to nothing"]
        + ([f"{hidden} skipped whole, which may hide some"] if hidden else [])
    )
    names = tuple(f"{table.place}: {table.pattern!r}{_near(table, known)}" for table in idle)
    effect = Effect.WARN if hidden else chosen(session.court.context.policy, "unmeasured")
    return (
        SuiteNote(kind="unmatched", effect=effect, text=f"patterns of [[tool.perfgate.tests]]: {said}", names=names),
    )


def _near(table: ConfigPattern, known: Collection[str]) -> str:
    near = proposal(table.pattern, sorted(known))
    return f"; {near}" if near else ""


def _unopened(config: pytest.Config) -> str:
    """Files whose tests nobody saw, because they skipped themselves while they were collected."""
    files = sorted(skipped_files(config))
    return first_of(files, 3)
