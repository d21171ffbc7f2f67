"""Files that the change under test edits, and that gated tests take fixtures, helpers, marks or parameters from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from pytest_perfgate.app.edits import NOTHING, WORDS, edits
from pytest_perfgate.app.gate import Court
from pytest_perfgate.app.reworked import held, since
from pytest_perfgate.core.gate.bodies import function_of
from pytest_perfgate.core.gate.borrowed import borrowed
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.verdict import CaseReport, SuiteNote

_ANY = ("",)


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
    names = borrowed({path: (texts[path][1] or "", of) for path, of in tests.items() if path in texts}, changed)
    if names:
        text = (
            f"{plural(len(names), 'file')} edited {change.since} that gated tests take fixtures, helpers, marks or"
            " parameters from: they may measure something else, or hold less"
        )
        said = tuple(f"{path}: {', '.join(parts)}" for path, parts in names.items())
        yield SuiteNote(kind="borrowed", effect=Effect.WARN, text=text, names=said)
