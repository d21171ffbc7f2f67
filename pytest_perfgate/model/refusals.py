"""What the system refuses, told apart: permission, kind, absence, a full disk, a device that fails."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pytest_perfgate.model.errors import PerfgateError

_NAMES: Mapping[str, tuple[str, ...]] = {
    "file-missing": ("ENOENT",),
    "file-kind": ("EISDIR", "ENOTDIR", "EEXIST"),
    "file-full": ("ENOSPC", "EDQUOT", "EFBIG"),
    "file-broken": ("EIO", "ESTALE", "ENXIO"),
}
_CODES = {getattr(errno, name): code for code, names in _NAMES.items() for name in names if hasattr(errno, name)}
"""By number; whatever else there is (permission, a read-only disk) is refused for its own reason."""


def refusal(fault: OSError, place: str = "") -> PerfgateError:
    """The system's error as one of ours, which says what to do about this kind of it."""
    named = place or str(fault.filename or "")
    what = fault.strerror or str(fault) or type(fault).__name__
    return PerfgateError(_CODES.get(fault.errno or 0, "file-refused"), what, place=named)


@contextmanager
def written(place: str) -> Iterator[None]:
    """Writing something: what the system refuses names the place, which a full disk does not."""
    try:
        yield
    except OSError as fault:
        raise refusal(fault, place) from fault


def speaks_of_a_file(fault: OSError) -> bool:
    """Whether an error is of a file; a full or failing disk does not say of which."""
    return fault.filename is not None or _CODES.get(fault.errno or 0) in {"file-full", "file-broken"}
