"""Files: replaced whole, locked across processes, read at either end."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import stat
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from pytest_perfgate.clock import HOST_CLOCK, seconds
from pytest_perfgate.model.errors import PerfgateError

_TAIL_BYTES = 16_384
_OPENED = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
_PATIENCE_S, _POLL_S = 3600.0, 0.05


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file by its new content: a reader, or the run after a crash, finds either one whole."""
    with refusals(path):
        replace_content(path, data)


def replace_content(path: Path, data: bytes) -> None:
    """Write beside the file and move it over; what the system refuses stays an ``OSError``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{path.name[:100]}."
    _remove_abandoned(path.parent, prefix)
    handle, name = tempfile.mkstemp(prefix=prefix, suffix=_NEW, dir=path.parent)
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


_NEW, _ABANDONED_S = ".new", 60.0


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """What writers left that were killed before they moved it over; a younger one may be at work still."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.name.endswith(_NEW):
                with contextlib.suppress(OSError):
                    if HOST_CLOCK.date() - entry.stat().st_mtime > _ABANDONED_S:
                        Path(entry.path).unlink()


@contextlib.contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Turn what the system refuses into an error that names the file."""
    try:
        yield
    except OSError as fault:
        what = f"it cannot be written: {fault.strerror or fault}"
        raise PerfgateError("file-unwritable", what, place=str(path)) from fault


def content(path: Path) -> bytes:
    """All of a file. A pipe or a device may never end: it is refused, save a pipe that a shell has opened already."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or (stat.S_ISFIFO(mode) and str(path).startswith(_OPENED))):
        raise OSError(errno.ESPIPE, "it is a pipe or a device, and no file")
    return path.read_bytes()


def first_bytes(path: Path, count: int) -> bytes:
    """The beginning of a file."""
    with path.open("rb") as file:
        return file.read(count)


def unpacked_head(head: bytes, count: int) -> bytes:
    """As much as the first bytes of a gzip file tell; nothing where they are damaged."""
    try:
        return zlib.decompressobj(wbits=31).decompress(head, count)
    except zlib.error:
        return b""


def last_lines(text: str, count: int, width: int = 240) -> tuple[str, ...]:
    """The last lines of an output, long ones cut."""
    return tuple(line[:width] for line in text.strip().splitlines()[-count:])


def file_tail(path: Path, count: int) -> tuple[str, ...]:
    """The last lines of a file, read from its end; none where it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return last_lines(file.read().decode("utf-8", "replace"), count)
    except OSError:
        return ()


def indented(lines: tuple[str, ...]) -> str:
    """Lines of an output as they stand below an error, each on a new line."""
    return "".join(f"\n    {line}" for line in lines)


def _mode(path: Path) -> int:
    """The mode of the file that is replaced; a new one has what the umask leaves."""
    with contextlib.suppress(OSError):
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


# locks: the kernel releases one when its owner ends, however it ends


@contextlib.contextmanager
def locked(root: Path, path: Path) -> Iterator[None]:
    """One writer of a file at a time; the lock lies in the project's own folder and stays there."""
    folder = root / ".perfgate" / "locks"
    import hashlib

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
            what = f"process {_owner(path)} has been making this build for {patience_s / 60:.0f} min"
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


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Without looking for circles: what is read into values has none, and the looking takes a fifth of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
