"""A comparison with a revision that holds the same code: it says something of the machine and nothing of a change."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_perfgate.app.gate import Court
from pytest_perfgate.core.gate.policy import chosen
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.verdict import SuiteNote

_LETTERS = 10


def alike_arms(court: Court) -> Iterable[SuiteNote]:
    """One note where both arms held the same code; the commit under test held against itself was not compared."""
    revision, repository = court.revision, court.tools.repository
    if not revision or not court.alike:
        return
    named = revision[:_LETTERS]
    if repository is not None and repository.head() == revision:
        text = (
            f"nothing was compared: --perfgate-against means {named}, the commit under test itself; without a REV it"
            " takes the merge base with the target branch, and on that branch what was there before"
        )
        yield SuiteNote(kind="uncompared", effect=chosen(court.context.policy, "unmeasured"), text=text)
        return
    text = f"both arms held the same code, that of {named}: what differed was the machine"
    yield SuiteNote(kind="uncompared", effect=Effect.WARN, text=text)
