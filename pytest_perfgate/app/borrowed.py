"""Files that the change under test edits, and that gated tests take fixtures, marks or parameters from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_perfgate.app.absent import NOTHING
from pytest_perfgate.app.gate import Court
from pytest_perfgate.app.reworked import WORDS, held, since
from pytest_perfgate.core.gate.borrowed import borrowed
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.verdict import CaseReport, SuiteNote

_ANY = ("",)


def borrowed_parts(court: Court, reports: Sequence[CaseReport]) -> Iterable[SuiteNote]:
    """One note in CI with each file once: tests that read as before may measure something else, or hold less."""
    base, repository = since(court), court.tools.repository
    paths = {report.key.path for report in reports if held(court, report)}
    if not court.context.policy.ci or not base or repository is None or not paths:
        return
    changed = repository.touched(base, _ANY) or {}  # that git does not answer, another note says
    if changed.keys() <= paths:
        return
    texts = repository.touched(NOTHING, WORDS) or {}
    names = borrowed({path: texts[path][1] or "" for path in paths if path in texts}, changed)
    if names:
        text = (
            f"{plural(len(names), 'file')} edited since {base[:10]} that gated tests take fixtures, marks or parameters"
            " from: they may measure something else, or hold less"
        )
        said = tuple(f"{path}: {', '.join(parts)}" for path, parts in names.items())
        yield SuiteNote(kind="borrowed", effect=Effect.WARN, text=text, names=said)
