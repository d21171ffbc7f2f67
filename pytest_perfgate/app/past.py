"""What the history knows of a case, and what becomes of a run where it cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.gate.clocks import how_measured, limited
from pytest_perfgate.model.baseline import Sitting
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.ports import HistoryStore

_LAST_SITTINGS, _READ = 20, 100


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

    def newest(self, measurement: Measurement) -> Sequence[Sitting]:
        """Sittings of a case that were measured as this one, oldest first."""
        if self._store is None or self.fault is not None:
            return ()
        try:
            return sittings_like(measurement, self._store)
        except PerfgateError as fault:
            self.fault = fault
            return ()


def sittings_like(measurement: Measurement, store: HistoryStore) -> Sequence[Sitting]:
    """The newest of a case: with other threads, another timer or cache it is another measurement, and no scatter."""
    how = how_measured(measurement.identity, at_limit=limited(measurement.processes))
    found = store.read(measurement.key, measurement.device.key, _READ)
    return [sitting for sitting in found if sitting.identity in {"", how}][-_LAST_SITTINGS:]
