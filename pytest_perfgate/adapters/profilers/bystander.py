"""A capture that runs nothing by itself: the child leaves what it is after."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.plan import Plan


class Bystander:
    """Everything of a profiler but its artifacts."""

    name: str

    def availability(self) -> Availability:
        return Availability(name=self.name, usable=True)

    def command(self, argv: Sequence[str], out: Path, plan: Plan) -> list[str]:
        del out, plan
        return list(argv)

    def region(self, out: Path) -> AbstractContextManager[None]:
        del out
        return nullcontext()
