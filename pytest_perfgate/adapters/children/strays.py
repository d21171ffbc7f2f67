"""Children whose parent is gone: a killed run may leave one that has not noticed yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

PARENT = "PERFGATE_PARENT"
_PROCESSES = Path("/proc")


def stray_children(processes: Path = _PROCESSES) -> tuple[int, ...]:
    """Process ids, as far as this user may look; empty where there is no ``/proc``."""
    return tuple(sorted(_found(processes)))


def _found(processes: Path) -> Iterator[int]:
    for folder in processes.glob("[0-9]*"):
        parent = _parent(folder)
        if parent and not (processes / parent).exists():
            yield int(folder.name)


def _parent(folder: Path) -> str:
    """Whose child it is, by what it was started with."""
    try:
        lines = (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    said = (line[len(PARENT) + 1 :] for line in lines if line.startswith(PARENT.encode() + b"="))
    text = next(said, b"").decode("ascii", "replace")
    return text if text.isdecimal() else ""
