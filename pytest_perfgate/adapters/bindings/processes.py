"""Processes of this machine: who lives, who belongs to this run."""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")


def alive(pid: int) -> bool:
    """Whether a process with this number runs; one of another user does too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def started(pid: int) -> str:
    """When a process started, in ticks: a number that was given out again starts at another time."""
    try:
        return (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def parent(pid: int) -> int:
    """The parent's number, 0 where it is not known."""
    try:
        return int(
            (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]
        )
    except (OSError, IndexError, ValueError):
        return 0


def lineage(pid: int) -> tuple[int, ...]:
    """A process and its ancestors, without the first of all."""
    line = []
    while pid > 1 and pid not in line:
        line.append(pid)
        pid = parent(pid)
    return tuple(line)


def foreign(pids: tuple[int, ...], root: int) -> tuple[int, ...]:
    """Those outside of this run's own tree: neither below its root nor above this process.

    A number that this machine's process table does not show is of another container, perhaps our
    own from outside; nothing can be said about it.
    """
    own = set(lineage(os.getpid()))
    return tuple(pid for pid in pids if (PROC / str(pid)).exists() and pid not in own and root not in lineage(pid))
