"""Whether suspects of this session are tried in two arms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_perfgate.model.plan import Case, CaseKey, Mode
from pytest_perfgate.model.tools import Convict, GateTools
from pytest_perfgate.model.verdict import CaseReport

if TYPE_CHECKING:
    from pytest_perfgate.plugin.docket import Docket


def convictor(session: Docket, tools: GateTools) -> Convict | None:
    """The paired conviction, where the project wants it and git knows the commits."""
    settings = session.settings
    if session.mode is not Mode.FULL or settings.project.conviction == "interval":
        return None
    if settings.options.perfgate_against or tools.repository is None or not tools.repository.head():
        return None

    def convict(reports: Mapping[CaseKey, CaseReport], cases: Mapping[str, Case]) -> Mapping[CaseKey, CaseReport]:
        from pytest_perfgate.plugin.arms import Bailiff

        return Bailiff(session).convict(reports, cases)

    return convict
