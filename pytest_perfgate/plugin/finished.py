"""Finished rounds of two arms on disk: a run that is cut short leaves them to the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.wiring import write_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pytest_perfgate.model.paired import PairedRound
    from pytest_perfgate.plugin.docket import Docket


class FinishedRounds:
    """Writes them after every round; a disk that takes none costs the resuming, and not the run."""

    def __init__(self, path: Path, session: Docket, say: Callable[[str], None]) -> None:
        self._path, self._session, self._say = path, session, say
        self._refused = False

    def __call__(self, rounds: Sequence[PairedRound]) -> None:
        try:
            write_values(self._path, rounds)
        except PerfgateError as fault:
            self._session.resumable = False
            if not self._refused:
                self._say(f"finished rounds are not kept for a run that is cut short: {fault.what}")
            self._refused = True
        else:
            self._session.resumable = True
