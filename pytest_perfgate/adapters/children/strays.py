"""Children whose parent is gone: a killed run may leave one that has not noticed yet."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

_SET_END_WITH_PARENT = 1
PARENT = "PERFGATE_PARENT"
_PROCESSES = Path("/proc")


def end_with_parent() -> None:
    """A child of a parent that is killed is asked to end at once: its call may take long, with the clocks locked.

    Linux alone does that; elsewhere a child notices when its call returns.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(_SET_END_WITH_PARENT, int(signal.SIGTERM), 0, 0, 0)


def stray_children(processes: Path = _PROCESSES) -> tuple[int, ...]:
    """Process ids, as far as this user may look; empty where there is no ``/proc``."""
    return tuple(sorted(_found(processes)))


def any_running(group: int, processes: Path = _PROCESSES) -> bool:
    """Whether a process group has a member that is no zombie; where there is no ``/proc``, it may have one."""
    if not processes.is_dir():
        return True
    return any(_state(folder) not in ("Z", "X") for folder in processes.glob("[0-9]*") if _group(folder) == group)


def _stat(folder: Path) -> list[str]:
    """What the kernel says of a process behind its name: its state, its parent, its group."""
    try:
        return (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _state(folder: Path) -> str:
    return next(iter(_stat(folder)), "X")


def _group(folder: Path) -> int:
    return int(next(iter(_stat(folder)[2:3]), -1))


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
