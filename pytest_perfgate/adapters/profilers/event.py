"""Event mode: the child times the call with the device's own events and leaves a record."""

from __future__ import annotations

from pathlib import Path

from pytest_perfgate.adapters.profilers.bystander import Bystander
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.profiling import TIMED

TIMES = "event.json"


class EventTimes(Bystander):
    """The events timer of the child does the work, where a device has events."""

    name = TIMED

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        path = out / TIMES
        if not path.is_file():
            raise PerfgateError("profile-child", "no call was timed", mend="perfgate(fn) in the test", place=str(out))
        return (Artifact(kind="record", path=str(path)),)
