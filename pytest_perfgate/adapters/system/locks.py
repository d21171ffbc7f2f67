"""Locks across processes: the kernel releases a lock when its owner ends, however it ends."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pytest_perfgate.adapters.system.files import refusals
from pytest_perfgate.clock import seconds
from pytest_perfgate.model.errors import PerfgateError

_PATIENCE_S, _POLL_S = 3600.0, 0.05


@contextlib.contextmanager
def locked(root: Path, path: Path) -> Iterator[None]:
    """One writer of a file at a time; the lock lies in the project's own folder and stays there."""
    folder = root / ".perfgate" / "locks"
    name = hashlib.sha256(str(path.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    with refusals(folder / name):
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / name).open("a+b")
    with file:
        lock(file.fileno())
        try:
            yield
        finally:
            unlock(file.fileno())


@contextlib.contextmanager
def exclusive(path: Path, patience_s: float = _PATIENCE_S) -> Iterator[None]:
    """One process makes a thing while the others wait; the lock file names the owner and goes with the lock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = seconds() + patience_s
    while (handle := _acquired(path)) is None:
        if seconds() > deadline:
            what = f"process {_owner(path)} has been making this arm for {patience_s / 60:.0f} min"
            raise PerfgateError("arm-busy", what, place=str(path))
        time.sleep(_POLL_S)
    try:
        yield
    finally:
        # The file goes before the lock does: whoever waits notices that it locked a file that is gone.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)


def is_locked(path: Path) -> bool:
    """Whether a living process holds the lock of this file."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not try_lock(handle)
    finally:
        os.close(handle)


def _acquired(path: Path) -> int | None:
    """The handle of the locked file, or nothing while another process holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if try_lock(handle) and _is_still(handle, path):
            os.ftruncate(handle, 0)
            os.write(handle, str(os.getpid()).encode())
            return handle
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _is_still(handle: int, path: Path) -> bool:
    """Whether the path still names the open file: its last owner may have removed it between our open and our lock."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _owner(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") or "unknown"
    except OSError:
        return "unknown"


if sys.platform == "win32":
    import msvcrt

    def lock(handle: int) -> None:
        """Wait for the lock of an open file."""
        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)

    def try_lock(handle: int) -> bool:
        """Take the lock of an open file; false where another process holds it."""
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def unlock(handle: int) -> None:
        """Release the lock of an open file."""
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def lock(handle: int) -> None:
        """Wait for the lock of an open file."""
        fcntl.flock(handle, fcntl.LOCK_EX)

    def try_lock(handle: int) -> bool:
        """Take the lock of an open file; false where another process holds it."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(handle: int) -> None:
        """Release the lock of an open file, also for a process that was forked and still has the file open."""
        fcntl.flock(handle, fcntl.LOCK_UN)
