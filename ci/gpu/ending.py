"""Ends a part with all that it has started, processes with a session of their own included."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

from pytest_perfgate.adapters.system.processes import lineage, started

PATIENCE_S = 5.0
LOOK_S = 0.5


def below(pid: int) -> dict[int, str]:
    """Return all descendants of a process, each with its start, since the system reuses numbers."""
    numbers = (int(entry.name) for entry in Path("/proc").glob("[0-9]*"))
    return {number: started(number) for number in numbers if pid in lineage(number)[1:]}


def end(process: subprocess.Popen[str], patience_s: float = PATIENCE_S) -> str:
    """Interrupt a process, so that it resets clocks and ends its children, then kill it; return what it printed."""
    kin = below(process.pid)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    output = _last_output(process, patience_s)
    kin |= below(process.pid)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pid, when in kin.items():
        if when and started(pid) == when:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
    heard = output if output is not None else _last_output(process, patience_s)
    return heard if heard is not None else "it could not be ended"


def end_with_parent() -> None:
    """Interrupt this process if its parent is gone, since nobody else would end it on the card."""
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_S)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=look, name="forsaken", daemon=True).start()


def _last_output(process: subprocess.Popen[str], patience_s: float) -> str | None:
    """Return what a process printed; None while somebody holds its output open."""
    try:
        return process.communicate(timeout=patience_s)[1]
    except subprocess.TimeoutExpired:
        return None
