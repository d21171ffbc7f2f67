"""One maker per arm, also when two runs start at once or one was killed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_perfgate.clock import HOST_CLOCK, seconds
from pytest_perfgate.model.errors import PerfgateError

_PATIENCE_S, _WRITING_S = 3600.0, 5.0


@contextmanager
def held(lock: Path, patience_s: float = _PATIENCE_S) -> Iterator[None]:
    """Wait while a living process has the lock; one whose owner died is taken over."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    until = seconds() + patience_s
    while not _taken(lock):
        if not is_alive(lock):
            _break(lock)
        elif seconds() > until:
            what = f"process {_owner(lock)} has been making this arm for {patience_s / 60:.0f} min"
            raise PerfgateError("arm-busy", what, place=str(lock))
        else:
            time.sleep(0.05)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def is_alive(lock: Path) -> bool:
    """Whether the process that a lock names still runs; a lock being written counts as alive for a moment."""
    try:
        owner = _owner(lock)
        if not owner:
            return HOST_CLOCK.date() - lock.stat().st_mtime < _WRITING_S
        os.kill(int(owner), 0)
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True


def _owner(lock: Path) -> str:
    return lock.read_text(encoding="utf-8")


def _taken(lock: Path) -> bool:
    try:
        handle = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return False
    try:
        os.write(handle, str(os.getpid()).encode())
    except OSError:
        lock.unlink()
        raise
    finally:
        os.close(handle)
    return True


def _break(lock: Path) -> None:
    """Of several who see a dead owner one moves its lock away; a lock that was taken meanwhile is put back."""
    aside = lock.with_name(f"{lock.name}.{os.getpid()}.dead")
    try:
        lock.rename(aside)
    except FileNotFoundError:
        return
    if is_alive(aside):
        aside.replace(lock)
    else:
        aside.unlink(missing_ok=True)
