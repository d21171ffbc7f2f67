"""Event mode: the child times the call with the device's own events and leaves a record."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.model.profiling import TIMED

TIMES = "event.json"


class EventTimes:
    """Runs nothing by itself: the events timer of the child does, where a device has events."""

    name = TIMED

    def availability(self) -> Availability:
        return Availability(name=self.name, usable=True)

    def command(self, argv: Sequence[str], out: Path, plan: Plan) -> list[str]:
        del out, plan
        return list(argv)

    def region(self, out: Path) -> AbstractContextManager[None]:
        del out
        return nullcontext()

    def artifacts(self, out: Path) -> tuple[Artifact, ...]:
        path = out / TIMES
        if not path.is_file():
            raise PerfgateError("profile-child", "no call was timed", mend="perfgate(fn) in the test", place=str(out))
        return (Artifact(kind="record", path=str(path)),)
