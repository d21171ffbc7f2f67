"""A report as a file: whatever renders it, the target is a path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.verdict import RunReport


class File:
    """Writes what a renderer makes of the report."""

    def __init__(self, name: str, render: Callable[[RunReport], bytes]) -> None:
        self.name, self._render = name, render

    def deliver(self, report: RunReport, target: str) -> str:
        if not target:
            raise PerfgateError("delivery-failed", "no file was named", mend=f"write {self.name}:FILE")
        path = Path(target)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._render(report))
        except OSError as fault:
            raise PerfgateError("delivery-failed", f"it cannot be written: {fault}", place=target) from fault
        return f"wrote {target}"
