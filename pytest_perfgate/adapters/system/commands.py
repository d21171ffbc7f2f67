"""Commands that end with everything they started: with their output in a log, or returned."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_perfgate.adapters.system.files import file_tail, indented

TIMED_OUT = 124
"""The exit code of a command that had to be ended, as timeout(1) gives it."""
_LOG_LINES, _WORDS = 30, 6
_GRACE_S = 5.0
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


def run_logged(command: Sequence[str], log: Path, *, folder: Path, env: Mapping[str, str], timeout_s: float) -> int:
    """Run a command with its output at the end of a log; its exit code, 128 + N after signal N, or ``TIMED_OUT``."""
    if not is_installed(command[0], folder, env.get("PATH", "")):
        raise FileNotFoundError(errno.ENOENT, f"{command[0]} is not installed", command[0])
    line = [sys.executable, "-I", "-S", "-c", _WATCH, *command]
    with log.open("ab") as out:
        process = subprocess.Popen(
            line, cwd=folder, env=env, stdin=subprocess.PIPE, stdout=out, stderr=out, start_new_session=True
        )
        with process:  # leaving it closes the pipe, and with it whatever still runs
            try:
                return process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                return TIMED_OUT


def run_captured(
    command: Sequence[str],
    timeout_s: float | None,
    *,
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command and return what it printed; after a timeout its whole process group is ended."""
    source = subprocess.DEVNULL if stdin is None else subprocess.PIPE
    process = subprocess.Popen(
        list(command),
        cwd=folder,
        env=env,
        stdin=source,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with process:
        try:
            out, err = process.communicate(stdin, timeout_s)
        except BaseException:
            end_group(process)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def answer(command: Sequence[str], timeout_s: float) -> str | None:
    """What a command printed; nothing where it is missing, fails or does not end."""
    try:
        done = run_captured(command, timeout_s)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout.decode("utf-8", "replace")


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End the whole process group of a command: gently, then by force."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
            break
    # Members that ignored the gentle signal outlive their leader otherwise.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def is_installed(program: str, folder: Path, path: str) -> bool:
    """Whether a command can start: a path from its folder, or a name on the search path."""
    if Path(program).name != program:
        return os.access(folder / program, os.X_OK)
    return shutil.which(program, path=path) is not None


def abridged(command: Sequence[str]) -> str:
    """The beginning of a command line, quoted for a shell."""
    return shlex.join(command[:_WORDS]) + (" ..." if len(command) > _WORDS else "")


def log_tail(log: Path) -> str:
    """The last lines of a log as they stand below an error."""
    return indented(file_tail(log, _LOG_LINES))
