"""Waits for what a test expects, so that no speed of the machine decides what it sees."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

Seen = TypeVar("Seen")
HANGS_S = 120.0
"""What takes longer hangs, on the slowest machine."""


def until(look: Callable[[], Seen]) -> Seen:
    """What a look sees as soon as it is true, or what it sees in the end."""
    ends = time.monotonic() + HANGS_S
    while not (result := look()) and time.monotonic() < ends:
        time.sleep(0.01)
    return result


def ended(pid: int) -> bool:
    """Whether a process ends; one that nobody reaped has ended."""
    return until(lambda: not runs(pid))


def runs(pid: int) -> bool:
    return stat(pid)[:1] not in ([], ["Z"], ["X"])


def stat(pid: int) -> list[str]:
    """What the kernel says of a process after its name: its state, its parent and more; nothing of one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def patient(monkeypatch: pytest.MonkeyPatch, begun: Callable[[], object]) -> None:
    """Give no process up before something has begun: a busy machine starts it late."""
    wait = subprocess.Popen.wait

    def waited(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        if timeout is not None:
            until(lambda: begun() or process.poll() is not None)
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", waited)
