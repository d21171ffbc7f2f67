"""What the history knows of a case, and what becomes of a run where it cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.model.baseline import Sitting
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.ports import HistoryStore

_LAST_SITTINGS = 20


class Past:
    """The newest sittings; where the store breaks under the run, what was measured is judged without it."""

    def __init__(self, store: HistoryStore | None) -> None:
        self._store = store
        self.fault: PerfgateError | None = None
        """Why nothing more is read."""

    def probe(self) -> None:
        """Raises where the store does not read: asked before anything is measured."""
        if self._store is not None:
            self._store.read(CaseKey(nodeid=""), "", 1)

    def newest(self, key: CaseKey, device: str) -> Sequence[Sitting]:
        """Sittings of a case, oldest first."""
        if self._store is None or self.fault is not None:
            return ()
        try:
            return self._store.read(key, device, _LAST_SITTINGS)
        except PerfgateError as fault:
            self.fault = fault
            return ()
