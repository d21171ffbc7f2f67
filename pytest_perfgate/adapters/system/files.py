"""Files that survive a crash, and the beginnings and ends of files."""

from __future__ import annotations

import contextlib
import os
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.errors import PerfgateError

_TAIL_BYTES = 16_384


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
