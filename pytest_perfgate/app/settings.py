"""Settings of the merge base beside those of the change under test."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_perfgate.app.gate import Court
from pytest_perfgate.app.uprooted import any_lines
from pytest_perfgate.core.gate.changed import changed, requirements
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.tools import DEPENDENCIES
from pytest_perfgate.model.verdict import SuiteNote


def changed_settings(court: Court) -> Iterable[SuiteNote]:
    """One note in CI for all of them: the change is judged by its own settings."""
    base = court.accepted.base.commit
    if not court.context.policy.ci or not base:
        return
    then, now = (dict(court.tools.settings(revision)) for revision in (base, ""))
    if moved := requirements(then.pop(DEPENDENCIES, "[]"), now.pop(DEPENDENCIES, "[]")):
        text = f"declared dependencies changed since {base[:10]}; two arms share what is installed now"
        yield SuiteNote(kind="settings", effect=Effect.WARN, text=text, names=moved)
    names = changed(then, now)
    if names and (then or any_lines(court, base)):
        text = f"{plural(len(names), 'setting')} changed since {base[:10]}; this run was judged by the new"
        yield SuiteNote(kind="settings", effect=Effect.WARN, text=text, names=names)
