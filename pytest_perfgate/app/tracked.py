"""What a change brings along that nobody reads: in the folder of what a machine learnt by itself, and as binaries."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_perfgate.app.edits import edits
from pytest_perfgate.app.gate import Court
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.verdict import SuiteNote

FOLDER = ".perfgate"
_BINARY = (".pyc", ".pyo", ".so", ".pyd", ".dll", ".dylib")
"""What Python may load in place of a source, or beside it."""


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


def binary_files(court: Court) -> Iterable[SuiteNote]:
    """In CI, a note: what Python loads of such a file is not what a reviewer of the sources reads."""
    change = edits(court, court.revision or court.accepted.base.commit)
    if change is None:
        return
    found = [path for path in change.repository.changed(change.base) if path.endswith(_BINARY)]
    there = frozenset(change.repository.files("HEAD", ".")) if found else frozenset()
    names = tuple(path for path in found if path in there)
    if names:
        text = f"{plural(len(names), 'binary file')} committed {change.since} that Python may load in place of a source"
        yield SuiteNote(kind="binary", effect=Effect.WARN, text=text, names=names)
