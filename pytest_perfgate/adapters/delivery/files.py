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
        path, data = Path(target), self._render(report)
        try:
            made = "" if path.parent.is_dir() else f", and made the folder {path.parent}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as fault:
            mend = "name a file in a folder that you may write to"
            raise PerfgateError("delivery-failed", f"it cannot be written: {fault}", mend=mend, place=target) from fault
        return f"wrote {target}{made}"
