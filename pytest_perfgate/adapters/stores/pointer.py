"""``.perfgate/records/last`` names the last record; above that name stand runs that have not left theirs yet."""

from __future__ import annotations

from pathlib import Path

from pytest_perfgate.adapters.system.files import write_atomically
from pytest_perfgate.adapters.system.locks import locked
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.refusals import refusal, written

_NONE = "# "
"""Stands before the reason why a run has no record."""
_MOST = 20
"""Lines that are kept: runs that were killed one after the other."""


class Pointer:
    """The first line counts. Each run takes its own line away again, whatever others wrote meanwhile."""

    def __init__(self, root: Path) -> None:
        self._root, self.path = root, root / ".perfgate" / "records" / "last"

    def name(self) -> str:
        """The last record's file name; raises where there is none, or the last run has left none."""
        name = self._first()
        if name.startswith(_NONE):
            mend = f"run the gate again; older records lie in {self.path.parent}, and are read by their path"
            raise PerfgateError("record-missing", name.removeprefix(_NONE), mend=mend, place=str(self.path))
        return Path(name).name

    def closed(self) -> str:
        """Why the last run has left no record; empty where it has, and where none ever did."""
        name = self._first() if self.path.exists() else ""
        return name.removeprefix(_NONE) if name.startswith(_NONE) else ""

    def point(self, name: str) -> None:
        """This record is the last one now."""
        with locked(self._root, self.path):
            self._write([name])

    def close(self, why: str) -> None:
        """The last run left no record: what an earlier one left is not its own."""
        if self._there():
            with locked(self._root, self.path):
                self._write([_NONE + why])

    def suspend(self, why: str) -> None:
        """A run has begun: until it has left its record, none is the last."""
        if self._there():
            with locked(self._root, self.path):
                self._write([_NONE + why, *self._lines()])

    def resume(self, why: str) -> None:
        """That run measured nothing: the last record is the one that it was."""
        if not self._there() or _NONE + why not in self._lines():
            return
        with locked(self._root, self.path):
            lines = self._lines()
            if _NONE + why in lines[: len(lines) - 1]:
                lines.remove(_NONE + why)
                self._write(lines)

    def _there(self) -> bool:
        with written(str(self.path)):
            return self.path.exists()

    def _lines(self) -> list[str]:
        with written(str(self.path)):
            return self.path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()

    def _write(self, lines: list[str]) -> None:
        text = "".join(f"{line}\n" for line in lines[:_MOST])
        write_atomically(self.path, text.encode("utf-8", "surrogateescape"))

    def _first(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8").partition("\n")[0].strip()
        except UnicodeDecodeError as fault:
            what = "it names no record: it is not text"
            raise PerfgateError("record-unreadable", what, place=str(self.path)) from fault
        except (FileNotFoundError, NotADirectoryError) as fault:
            mend = _elsewhere(self._root)
            raise PerfgateError(
                "record-missing", "no run has left a record here", mend=mend, place=str(self.path)
            ) from fault
        except OSError as fault:
            raise refusal(fault, str(self.path)) from fault


def _elsewhere(root: Path) -> str:
    """Projects below a folder that has no record itself; empty where none has one."""
    found = sorted(path for depth in ("*", "*/*", "*/*/*") for path in root.glob(f"{depth}/.perfgate/records/last"))
    names = [path.parents[2].relative_to(root).as_posix() for path in found]
    return (
        f"a run left one below: --root {names[0]}" + (f" (of {len(names)})" if len(names) > 1 else "") if names else ""
    )
