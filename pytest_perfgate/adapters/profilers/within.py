"""Captures that put nothing around the child: it does the work by itself, as it is assigned."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.plan import Plan


class Within:
    """The child as it is; what it leaves is for those who know this capture to find."""

    name = ""

    def availability(self) -> Availability:
        return Availability(name=self.name, usable=True)

    def command(self, argv: Sequence[str], out: Path, plan: Plan) -> list[str]:
        del out, plan
        return list(argv)

    def region(self, out: Path) -> AbstractContextManager[None]:
        del out
        return nullcontext()
