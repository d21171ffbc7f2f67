"""Gated tests that were deselected and whose marks the change under test edits: its own marks may have done it."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_perfgate.app.edits import WORDS, edits
from pytest_perfgate.app.gate import Court
from pytest_perfgate.core.gate.definitions import marks_of
from pytest_perfgate.core.gate.suite import Suite
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.plan import parse_case_key
from pytest_perfgate.model.verdict import SuiteNote


def newly_marked(court: Court, suite: Suite) -> Iterable[SuiteNote]:
    """One note in CI for all of them that have an accepted line."""
    changed = edits(court, court.accepted.base.commit)
    left = {line.key.nodeid for line in suite.baselines} & suite.deselected
    if not left or changed is None:
        return
    texts = changed.texts(WORDS) or {}  # that git does not answer, another note says
    tests = {(key.path, key.test_id.partition("[")[0]) for key in map(parse_case_key, left) if key.path in texts}
    names = tuple(f"{path}::{test}" for path, test in sorted(tests) if _edited(*texts[path], test))
    if names:
        text = f"{plural(len(names), 'accepted test')} deselected, and their marks are edited {changed.since}"
        yield SuiteNote(kind="newly marked", effect=Effect.WARN, text=text, names=names)


def _edited(then: str | None, now: str | None, test: str) -> bool:
    before, after = marks_of(then or "", test), marks_of(now or "", test)
    return None not in (before, after) and before != after
