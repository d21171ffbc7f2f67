"""Tests that the revision of a comparison has, and the change under test has not: they are listed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_perfgate.app.edits import NOTHING, WORDS
from pytest_perfgate.app.gate import Court
from pytest_perfgate.core.gate.absent import absent
from pytest_perfgate.core.gate.suite import Suite
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.ports import Repository
from pytest_perfgate.model.verdict import SuiteNote

_CONFTEST = "conftest.py"
_HIDING = ("collect_ignore", "pytest_ignore_collect", "pytest_collect", "pytest_pycollect")
"""By which a conftest keeps files from being collected."""


def absent_tests(court: Court, suite: Suite) -> Iterable[SuiteNote]:
    """One note of a run against a revision: what is on its side alone was not compared."""
    revision, repository = court.revision, court.tools.repository
    if not revision or repository is None or not suite.complete or suite.reach.unknown:
        return
    names = sorted(_absent(repository, revision, suite))
    if names:
        text = f"{plural(len(names), 'gated test')} of {revision[:10]} alone, not compared"
        yield SuiteNote(kind="absent", effect=Effect.WARN, text=text, names=tuple(names))


def _absent(repository: Repository, revision: str, suite: Suite) -> Iterator[str]:
    found = suite.collected | suite.deselected
    texts = repository.touched(revision, WORDS) or {}
    for path, (then, now) in texts.items():
        yield from absent(path, then or "", now, found, suite.reach)
    hiding = repository.touched(revision, _HIDING) or {}
    if any(path.rpartition("/")[2] == _CONFTEST for path in hiding):
        for path, (_, text) in (repository.touched(NOTHING, WORDS) or {}).items():
            if path not in texts:
                yield from absent(path, text or "", text, found, suite.reach)
