"""Files that the change under test edits, and that gated tests take fixtures, helpers, marks or parameters from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from pytest_perfgate.app.absent import NOTHING
from pytest_perfgate.app.gate import Court
from pytest_perfgate.app.reworked import WORDS, held, since
from pytest_perfgate.core.gate.bodies import function_of
from pytest_perfgate.core.gate.borrowed import borrowed
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.verdict import CaseReport, SuiteNote

_ANY = ("",)


def borrowed_parts(court: Court, reports: Sequence[CaseReport]) -> Iterable[SuiteNote]:
    """One note in CI with each file once: tests that read as before may measure something else, or hold less."""
    base, repository = since(court), court.tools.repository
    if not court.context.policy.ci or not base or repository is None:
        return
    tests: dict[str, set[str]] = defaultdict(set)
    for report in reports:
        if held(court, report):
            tests[report.key.path].add(function_of(report.key.test)[0])
    changed = (repository.touched(base, _ANY) or {}) if tests else {}  # that git does not answer, another note says
    if changed.keys() <= tests.keys():
        return
    texts = repository.touched(NOTHING, WORDS) or {}
    names = borrowed({path: (texts[path][1] or "", of) for path, of in tests.items() if path in texts}, changed)
    if names:
        text = (
            f"{plural(len(names), 'file')} edited since {base[:10]} that gated tests take fixtures, helpers, marks or"
            " parameters from: they may measure something else, or hold less"
        )
        said = tuple(f"{path}: {', '.join(parts)}" for path, parts in names.items())
        yield SuiteNote(kind="borrowed", effect=Effect.WARN, text=text, names=said)
