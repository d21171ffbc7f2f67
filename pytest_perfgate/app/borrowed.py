"""Files that the change under test edits, and that gated tests take fixtures, helpers, marks or parameters from."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from pytest_perfgate.app.edits import NOTHING, WORDS, edits
from pytest_perfgate.app.gate import Court
from pytest_perfgate.app.reworked import held, since
from pytest_perfgate.core.gate.bodies import function_of
from pytest_perfgate.core.gate.borrowed import Texts, borrowed, is_above
from pytest_perfgate.core.gate.conftests import CONFTEST, PACKAGE
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.ports import Repository
from pytest_perfgate.model.verdict import CaseReport, SuiteNote

_ANY = ("",)
_USED = "usefixtures"


def borrowed_parts(court: Court, reports: Sequence[CaseReport]) -> Iterable[SuiteNote]:
    """One note in CI with each file once: tests that read as before may measure something else, or hold less."""
    change = edits(court, since(court))
    if change is None:
        return
    tests: dict[str, set[str]] = defaultdict(set)
    for report in reports:
        if held(court, report):
            tests[report.key.path].add(function_of(report.key.test)[0])
    changed = (change.texts(_ANY) or {}) if tests else {}  # that git does not answer, another note says
    if changed.keys() <= tests.keys():
        return
    texts = change.repository.touched(NOTHING, WORDS) or {}
    taking = {path: (texts[path][1] or "", of) for path, of in tests.items() if path in texts}
    names = borrowed(taking, changed, _standing(change.repository, taking, changed), _around_all(court))
    if names:
        text = (
            f"{plural(len(names), 'file')} edited {change.since} that gated tests take fixtures, helpers, marks or"
            " parameters from: they may measure something else, or hold less"
        )
        said = tuple(f"{path}: {', '.join(parts)}" for path, parts in names.items())
        yield SuiteNote(kind="borrowed", effect=Effect.WARN, text=text, names=said)


def _standing(repository: Repository, tests: Collection[str], changed: Texts) -> Mapping[str, str]:
    """Conftests and packages above these tests as they are now; read where the change edits what they could import."""
    found = {path: now for path, (_, now) in changed.items() if now is not None and _stands(path, tests)}
    if changed.keys() <= {*tests, *found}:
        return {}
    folders = {parent for path in tests for parent in PurePosixPath(path).parents}
    possible = {str(folder / name) for folder in folders for name in (CONFTEST, PACKAGE)} - changed.keys()
    there = possible.intersection(repository.files("HEAD", ".")) if possible else ()
    texts = {path: repository.show("HEAD", path) or "" for path in there if _stands(path, tests)}
    return {**found, **texts}


def _stands(path: str, tests: Iterable[str]) -> bool:
    return any(is_above(path, test) for test in tests)


def _around_all(court: Court) -> Collection[str]:
    """Fixtures that the settings of pytest put around every test."""
    found = court.tools.settings("")
    given = (json.loads(text) for key, text in found.items() if key.endswith(f": {_USED}"))
    return {word for one in given for word in (one if isinstance(one, list) else str(one).split())}
