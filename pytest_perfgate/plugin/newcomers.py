"""Tests that the revision under comparison cannot run: new ones, and those that the change edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_perfgate.app.lanes import run_spread
from pytest_perfgate.app.measure import Rounds
from pytest_perfgate.core.gate.bodies import is_new
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.plugin.crew import crew_of
from pytest_perfgate.plugin.progress import Progress
from pytest_perfgate.wiring.devices import fleet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_perfgate.model.children import CaseResult
    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.plugin.docket import Docket


def file_texts(session: Docket, base: str) -> Callable[[str], tuple[str | None, str]]:
    """Reads a test file at the base, where it is there, and here."""
    repository, root = session.court.tools.repository, session.settings.pytest.rootpath

    def texts(path: str) -> tuple[str | None, str]:
        then = repository.show(base, path) if repository is not None else None
        return then, (root / path).read_text(encoding="utf-8", errors="replace")

    return texts


def newcomers(session: Docket, base: str, troubled: Mapping[str, str]) -> list[Case]:
    """Of tests that did not run in both arms, those that the base does not have at all."""
    if session.court.tools.repository is None:
        return []
    texts = file_texts(session, base)
    cases = (session.cases[nodeid] for nodeid in troubled)
    return [case for case in cases if is_new(*texts(case.path), case.nodeid)]


def measured_alone(session: Docket, cases: Sequence[Case]) -> Mapping[str, CaseResult]:
    """Measured as without a revision: their own limits on time and the like hold all the same."""
    line = f"{plural(len(cases), 'case')} that the base cannot run, measured alone"
    progress = Progress(session.settings.pytest, line, cases)
    rounds = Rounds(cases, crew_of(session, progress))
    try:
        run_spread(rounds, cases, fleet(progress.tell))
    finally:
        progress.close()
    return rounds.results()
