"""A failure to make an arm, said so that a person knows which side, and whether the disk was full."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_perfgate.model.errors import PerfgateError

_FULL = ("No space left on device", "Disk quota exceeded", "not enough space", "No usable temporary directory")
_LEAST = 4 << 20
_MB = 1e6


@contextmanager
def explained(side: str, home: Path) -> Iterator[None]:
    """Name the side; a full disk is said to be one, whoever met it."""
    try:
        yield
    except PerfgateError as fault:
        what = f"{side}: {fault.what}"
        if _is_full(fault.what, home):
            raise _no_room(what, home) from fault
        raise PerfgateError(fault.code.name, what, why=fault.why, mend=fault.mend, place=fault.place) from fault
    except OSError as fault:
        what = f"{side}: {fault}"
        raise (_no_room(what, home) if _is_full(str(fault), home) else PerfgateError("arm-not-made", what)) from fault


def _is_full(said: str, home: Path) -> bool:
    return any(words in said for words in _FULL) or _free(home) < _LEAST


def _free(folder: Path) -> int:
    """Bytes for us on the disk that a folder lies or would lie on."""
    place = next(place for place in (folder, *folder.parents) if place.exists())
    return shutil.disk_usage(place).free


def _no_room(what: str, home: Path) -> PerfgateError:
    try:
        scratch = tempfile.gettempdir()
    except OSError:
        scratch = "/tmp"  # noqa: S108 - only to say how full it is
    left = ", ".join(f"{_free(Path(place)) / _MB:.0f} MB on {place}" for place in (str(home), scratch))
    return PerfgateError("arm-no-room", f"{what}\n  left free: {left}")
