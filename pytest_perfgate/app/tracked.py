"""What a change brings along in the folder where a machine keeps what it learnt by itself."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_perfgate.app.gate import Court
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.verdict import SuiteNote

FOLDER = ".perfgate"


def tracked_files(court: Court) -> Iterable[SuiteNote]:
    """In CI, a failing note: the history, local baselines and arms there are believed, and a change wrote them."""
    repository = court.tools.repository
    if repository is None or not court.context.policy.ci:
        return
    names = tuple(path for path in repository.files("HEAD", FOLDER) if path != f"{FOLDER}/.gitignore")
    if names:
        text = (
            f"{plural(len(names), 'file')} under {FOLDER}/ {'is' if len(names) == 1 else 'are'} committed: what lies "
            f"there is believed to be this machine's own; git rm -r --cached {FOLDER}"
        )
        yield SuiteNote(kind="committed", effect=Effect.FAIL, text=text, names=names)
