"""Commands of a build: in a group of their own that ends with us, and with a log of all they said."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_perfgate.model.errors import PerfgateError

_WATCH = """
import os, signal, subprocess, sys, threading

def watch():
    sys.stdin.buffer.read(1)
    os.killpg(0, signal.SIGKILL)

threading.Thread(target=watch, daemon=True).start()
code = subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL)
os._exit(code if code >= 0 else 128 - code)
"""
"""Ends the whole group, compilers included, when our end of the pipe closes: also when we are killed."""
_LINES, _WIDTH = 30, 240


def run_logged(
    command: Sequence[str], folder: Path, log: Path, environment: Mapping[str, str], timeout_s: float
) -> None:
    """Run it to its end, or say why it failed, with the tail of its log."""
    if not _is_there(command[0], folder, environment.get("PATH", "")):
        raise _failure(command, f"{command[0]} is not installed", log)
    line = [sys.executable, "-I", "-S", "-c", _WATCH, *command]
    with log.open("ab") as out:
        process = subprocess.Popen(
            line, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=out, stderr=out, start_new_session=True
        )
        with process:  # leaving it closes the pipe, and with it whatever still runs
            try:
                code = process.wait(timeout_s)
            except subprocess.TimeoutExpired as late:
                raise _failure(command, f"no end after {timeout_s:.0f} s", log) from late
    if code:
        raise _failure(command, f"exit {code}{' (killed: out of memory?)' * (code == 137)}", log)


def log_tail(log: Path) -> str:
    """The last lines of a log as they stand below an error."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()[-_LINES:]
    except OSError:
        return ""
    return "".join(f"\n    {line[:_WIDTH]}" for line in lines)


def _is_there(program: str, folder: Path, path: str) -> bool:
    if Path(program).name != program:
        return os.access(folder / program, os.X_OK)
    return shutil.which(program, path=path) is not None


def _failure(command: Sequence[str], how: str, log: Path) -> PerfgateError:
    shown = shlex.join(command[:6]) + (" ..." if len(command) > 6 else "")
    return PerfgateError("arm-build-failed", f"{shown}: {how}{log_tail(log)}", place=str(log))
