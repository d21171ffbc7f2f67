from __future__ import annotations

import errno
import os

import pytest

from pytest_perfgate.model.errors import refusal, speaks_of_a_file


@pytest.mark.parametrize(
    ("number", "code", "next_"),
    [
        (errno.EACCES, "file-refused", "who may read and write"),
        (errno.EROFS, "file-refused", "name another place"),
        (errno.ENOENT, "file-missing", "check the path"),
        (errno.EISDIR, "file-kind", "the file itself"),
        (errno.ENOTDIR, "file-kind", "the file itself"),
        (errno.ENOSPC, "file-full", "free some space"),
        (errno.EIO, "file-broken", "copy the file again"),
    ],
)
def test_what_the_system_refuses_is_told_apart(number: int, code: str, next_: str) -> None:
    error = refusal(OSError(number, os.strerror(number), "a/b"))
    assert error.code.name == code
    assert next_ in error.mend
    assert error.text().startswith(f"a/b: {os.strerror(number)}")


def test_a_place_that_the_system_does_not_name_is_given() -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    assert refusal(full, "here.json").place == "here.json"
    assert speaks_of_a_file(full)
    assert speaks_of_a_file(OSError(errno.EACCES, "denied", "x"))
    assert not speaks_of_a_file(OSError(errno.ECONNRESET, "reset"))
    assert refusal(OSError("odd")).what == "odd"
