"""Files that survive a crash and a second writer."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pytest_perfgate.model.errors import PerfgateError


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file by its new content; whoever reads, or a crash, sees the old or the new one whole."""
    with said(path):
        _replace(path, data)


@contextlib.contextmanager
def said(path: Path) -> Iterator[None]:
    """What the system refuses, as a sentence."""
    try:
        yield
    except OSError as fault:
        what = f"it cannot be written: {fault.strerror or fault}"
        raise PerfgateError("file-unwritable", what, place=str(path)) from fault


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(_mode(path))
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _mode(path: Path) -> int:
    """The mode of the file that is replaced; a new one gets what the umask leaves."""
    with contextlib.suppress(OSError):
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


@contextlib.contextmanager
def locked(root: Path, path: Path) -> Iterator[None]:
    """One writer of this file at a time, across processes; the lock ends with its process."""
    folder = root / ".perfgate" / "locks"
    name = hashlib.sha256(str(path.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    with said(folder / name):
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / name).open("a+b")
    with file:
        _lock(file.fileno())
        try:
            yield
        finally:
            _unlock(file.fileno())


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)

    def _unlock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX)

    def _unlock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)
