"""The other arm of a suspect whose baseline names a commit that a squash or a rebase left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_perfgate.model.baseline import DIRTY

if TYPE_CHECKING:
    from pytest_perfgate.plugin.docket import Docket


def standing_in(session: Docket, commit: str) -> tuple[str, str]:
    """The commit of a line; where this clone lacks it, the one that brought the line here stands in, and why.

    One of the change under test stands in for nothing: both arms would hold what is judged.
    """
    repository = session.court.tools.repository
    if repository is None or commit.endswith(DIRTY) or commit not in repository.missing((commit,)):
        return commit, ""
    found = repository.brought(commit, session.settings.project.baselines, session.court.accepted.base.commit or "HEAD")
    return (found, f"{commit[:10]} is not in this clone; {found[:10]} brought its line in") if found else (commit, "")
