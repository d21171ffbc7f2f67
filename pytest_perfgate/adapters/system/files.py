"""Files: replaced atomically, locked across processes, read at either end."""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import os
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pytest_perfgate.clock import HOST_CLOCK, seconds
from pytest_perfgate.model.errors import PerfgateError

T = TypeVar("T")
_TAIL_BYTES = 16_384
_OPENED = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
_STREAMS = {"/dev/stdout": 1, "/dev/fd/1": 1, "/dev/stderr": 2, "/dev/fd/2": 2}
_PATIENCE_S, _POLL_S = 3600.0, 0.05
_NEW, _ABANDONED_S, _PREFIX = ".new", 60.0, 50  # so many characters of the name: each has up to four bytes of 255


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file atomically: a reader, even after a crash, sees the old or the new content."""
    with refusals(path):
        replace_content(path, data)


def replace_content(path: Path, data: bytes) -> None:
    """Do the same with the system's own errors; a link stays a link, and a pipe or a device is written to."""
    import tempfile

    if (stream := _STREAMS.get(str(path))) or (path.exists() and not path.is_file() and not path.is_dir()):
        sys.stdout.flush()  # a file behind a stream keeps what is in it already
        with open(stream or path, "wb", closefd=not stream) as file:
            file.write(data)
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{path.name[:_PREFIX]}."
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


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove old temporary files of writers that were killed; a recent one may still be in use."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            of_this_file = entry.name.startswith(prefix) and entry.name.endswith(_NEW)
            if of_this_file and HOST_CLOCK.date() - entry.stat().st_mtime > _ABANDONED_S:
                Path(entry.path).unlink()


@contextlib.contextmanager
def refusals(path: Path, fix: str = "") -> Iterator[None]:
    """Turn an error of the system into one that names the file."""
    try:
        yield
    except OSError as fault:
        what = f"it cannot be written: {fault.strerror or fault}"
        raise PerfgateError("file-unwritable", what, fix=fix, place=str(path)) from fault


def content(path: Path) -> bytes:
    """Return a file's content; refuse devices and pipes, which may not end, except a pipe that a shell has opened."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or (stat.S_ISFIFO(mode) and str(path).startswith(_OPENED))):
        raise OSError(errno.ESPIPE, "it is a pipe or a device, and no file")
    return path.read_bytes()


def json_table(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if it is missing, incomplete, or no object."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def first_bytes(path: Path, count: int) -> bytes:
    with path.open("rb") as file:
        return file.read(count)


def unpacked_head(head: bytes, count: int) -> bytes:
    """Return what the first bytes of a gzip file contain; empty if they are damaged."""
    try:
        return zlib.decompressobj(wbits=31).decompress(head, count)
    except zlib.error:
        return b""


def last_lines(text: str, count: int) -> tuple[str, ...]:
    """Return the last lines of an output, with long ones cut."""
    return tuple(line[:240] for line in text.strip().splitlines()[-count:])


def file_tail(path: Path, count: int) -> tuple[str, ...]:
    """Return the last lines of a file, read from its end; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return last_lines(file.read().decode("utf-8", "replace"), count)
    except OSError:
        return ()


def indented(lines: tuple[str, ...]) -> str:
    """Return the lines of an output as they are shown below an error."""
    return "".join(f"\n    {line}" for line in lines)


def _mode(path: Path) -> int:
    """Return the mode of the file that is replaced; for a new one, the mode by the umask."""
    with contextlib.suppress(OSError):
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def hide_from_git(folder: Path) -> None:
    """Make git ignore the folder ``.perfgate``, which belongs to this checkout only."""
    with contextlib.suppress(OSError):
        if not (folder / ".gitignore").exists():
            replace_content(folder / ".gitignore", b"# made by perfgate\n*\n")


@contextlib.contextmanager
def locked(root: Path, path: Path) -> Iterator[None]:
    """Allow one writer of a file at a time; the lock file is in the project's folder and stays there."""
    folder = root / ".perfgate" / "locks"
    import hashlib

    name = hashlib.sha256(str(path.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    with refusals(folder / name):
        folder.mkdir(parents=True, exist_ok=True)
        hide_from_git(folder.parent)
        file = (folder / name).open("a+b")
    with file:
        with refusals(folder / name, "use a clone on a file system with flock (Lustre: mounted with -o flock)"):
            lock(file.fileno())
        try:
            yield
        finally:
            unlock(file.fileno())


@contextlib.contextmanager
def exclusive(path: Path, patience_s: float = _PATIENCE_S) -> Iterator[None]:
    """Let one process make a thing while others wait; the lock file names the owner and goes with the lock."""
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
        # Removed before it is released, so that a waiting process notices that its locked file is gone.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)


def is_locked(path: Path) -> bool:
    """Return whether a living process holds the lock of this file."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not try_lock(handle)
    finally:
        os.close(handle)


def _acquired(path: Path) -> int | None:
    """Return the handle of the locked file, or None while another process holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if try_lock(handle) and _names_open_file(handle, path):
            os.ftruncate(handle, 0)
            os.write(handle, str(os.getpid()).encode())
            return handle
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _names_open_file(handle: int, path: Path) -> bool:
    """Return whether the path still names the open file, which its last owner may have removed before our lock."""
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
        msvcrt.locking(handle, msvcrt.LK_LOCK, 1)

    def try_lock(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def unlock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

else:
    import fcntl  # the kernel releases its locks when their owner ends, in whatever way

    def lock(handle: int) -> None:
        """Wait for the lock of an open file."""
        fcntl.flock(handle, fcntl.LOCK_EX)

    def try_lock(handle: int) -> bool:
        """Take the lock of an open file; return False if another process holds it."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(handle: int) -> None:
        """Release the lock of an open file, also for a forked process that still has it open."""
        fcntl.flock(handle, fcntl.LOCK_UN)


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Switch off garbage collection while values without cycles are read, which saves a fifth of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def read_once(read: Callable[..., T]) -> Callable[..., T]:
    """Return a reader that keeps what it read last of two sides, for as long as no file or ``NAME.json`` changes."""
    cached: dict[str, T] = {}

    def read_changed(paths: Sequence[Path], *options: Any) -> T:
        if not all(path.is_file() for path in paths):
            return read(paths, *options)
        notes = [path.with_suffix(".json") for path in paths]  # which state the launch of a cubin
        key = repr((paths, options, [_state(path) for path in (*paths, *notes)]))
        if key not in cached:
            for older in list(cached)[:-1]:
                del cached[older]
            cached[key] = read(paths, *options)
        return cached[key]

    return read_changed


def _state(path: Path) -> tuple[int, ...]:
    """Return numbers that change with the content of a file; none for a file that does not exist."""
    try:
        facts = path.stat()
    except OSError:
        return ()
    return (facts.st_ino, facts.st_size, facts.st_mtime_ns)
