"""Processes of this machine: who lives, who belongs to this run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

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
    """A process and its ancestors, the first of all included."""
    line = []
    while pid > 0 and pid not in line:
        line.append(pid)
        pid = parent(pid)
    return tuple(line)


class Others(NamedTuple):
    """Processes that are not known to be of this run."""

    foreign: tuple[int, ...] = ()
    """Outside of its tree."""
    elsewhere: tuple[int, ...] = ()
    """Not in this process table: of another container, or our own as seen from outside of ours."""


def others(pids: tuple[int, ...], root: int) -> Others:
    """Those that are neither below the run's root nor above this process; in a container either may be the first."""
    me = os.getpid()
    own = {me, *lineage(me)} - ({1} - {me, root})
    here = tuple(pid for pid in pids if (PROC / str(pid)).exists())
    return Others(
        foreign=tuple(pid for pid in here if pid not in own and root not in lineage(pid)),
        elsewhere=tuple(pid for pid in pids if pid not in here),
    )
