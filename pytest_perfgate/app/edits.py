"""Python files that the change under test edits: asked in CI, where there is something to hold them against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_perfgate.app.gate import Court
from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.ports import Repository
from pytest_perfgate.model.values import value
from pytest_perfgate.model.verdict import SuiteNote

WORDS = ("perfgate", "benchmark")
"""What the file of a gated test says: the marker, or one of the fixtures."""
NOTHING = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Git's name for a tree without files: every file is other than there."""
_LETTERS = 10


@value
class Edits:
    """What became of files since a commit."""

    base: str
    repository: Repository

    @property
    def since(self) -> str:
        """The commit, as a sentence names it."""
        return f"since {self.base[:_LETTERS]}"

    def texts(self, words: Sequence[str]) -> Mapping[str, tuple[str | None, str | None]] | None:
        """What files with one of these words were and are; nothing where git does not answer."""
        return self.repository.touched(self.base, words)

    def unknown(self, kind: str, what: str) -> SuiteNote:
        """That git did not answer, and what is not known for it."""
        text = f"which {what} changed {self.since} is not known: git did not answer for the files"
        return SuiteNote(kind=kind, effect=Effect.WARN, text=text)


def edits(court: Court, base: str) -> Edits | None:
    """Those since this commit; none on a laptop, nor where no commit or no repository can be asked."""
    repository = court.tools.repository
    if not court.context.policy.ci or not base or repository is None:
        return None
    return Edits(base=base, repository=repository)
