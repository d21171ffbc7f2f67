"""Tests of model/errors."""

from __future__ import annotations

import errno
import os

import pytest

from pytest_perfgate.model.errors import PerfgateError, either, nearest, proposal, refusal, speaks_of_a_file
from pytest_perfgate.model.measurement import Identity


def test_an_error_says_what_why_and_next() -> None:
    error = PerfgateError("limit-unit", "cannot read 'mfu >= 55 ns'", fix="write mfu >= 55%", place="test_a.py:7")
    what, why, fix = str(error).splitlines()
    assert what == "test_a.py:7: cannot read 'mfu >= 55 ns'  [limit-unit]"
    assert why.startswith("  why   ")
    assert fix == "  next  write mfu >= 55%"
    assert error.exit == 2


def test_an_unknown_code_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        PerfgateError("no-such-code", "anything")


def test_identities_say_what_differs() -> None:
    here = Identity(device="host-a", clocks="off", notes=(("tile", "64"),))
    there = Identity(device="host-a", clocks="lock", notes=(("tile", "128"),))
    assert here.differences(here) == ()
    assert [field for field, _, _ in here.differences(there)] == ["clocks", "notes"]


@pytest.mark.parametrize(
    ("number", "code", "next_"),
    [
        (errno.EACCES, "file-refused", "check the permissions"),
        (errno.EROFS, "file-refused", "name another place"),
        (errno.ENOENT, "file-missing", "check the path"),
        (errno.EISDIR, "file-kind", "the file itself"),
        (errno.ENOTDIR, "file-kind", "the file itself"),
        (errno.ENOSPC, "file-full", "free some space"),
        (errno.EIO, "file-broken", "copy the file again"),
    ],
)
def test_what_the_system_refuses_is_distinct_names(number: int, code: str, next_: str) -> None:
    error = refusal(OSError(number, os.strerror(number), "a/b"))
    assert error.code.name == code
    assert next_ in error.fix
    assert error.text().startswith(f"a/b: {os.strerror(number)}")


def test_a_place_that_the_system_does_not_name_is_given() -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    assert refusal(full, "here.json").place == "here.json"
    assert speaks_of_a_file(full)
    assert speaks_of_a_file(OSError(errno.EACCES, "denied", "x"))
    assert not speaks_of_a_file(OSError(errno.ECONNRESET, "reset"))
    assert refusal(OSError("odd")).what == "odd"


def test_words_that_were_probably_meant() -> None:
    assert nearest("fu", ["abcdefufghij"]) == ()
    assert nearest("ufg", ["abcdefufghij"]) == ("abcdefufghij",)
    assert (either("a"), either("ab"), either("abc")) == ("'a'", "'a' or 'b'", "'a', 'b' or 'c'")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("tiem", "time"),
        ("bwd", "fwd"),
        ("IF2", "I2F"),
        ("conv2d", "conv"),
        ("warning", "warn"),
        ("slowdwon", "slowdown"),
        ("registres", "registers"),
        ("latency", "comm_latency"),
    ],
)
def test_a_slip_is_near(word: str, meant: str) -> None:
    assert nearest(word, ["zzz", meant]) == (meant,)


@pytest.mark.parametrize(
    ("word", "far"),
    [
        ("pytest", "op_bytes"),
        ("round", "count"),
        ("loss", "tflops"),
        ("latency", "balance"),
        ("test_zz.py", "test_i.py::test_a"),
        ("speed", "sol"),
    ],
)
def test_letters_in_common_do_not_make_a_word_near(word: str, far: str) -> None:
    assert nearest(word, [far]) == ()


def test_three_words_are_proposed_and_twelve_shown() -> None:
    words = [f"kernel{at:02}" for at in range(13)]
    assert len(nearest("kernel", words)) == 3
    assert proposal("zzz", words, all_of="there are").endswith("kernel11 and 1 more")
    assert proposal("zzz", words[:12], all_of="there are").endswith("kernel10, kernel11")


def test_nothing_is_proposed_where_there_is_nothing() -> None:
    assert proposal("x", (), all_of="there are") == ""
    assert proposal("x", ("abcdef",), all_of="there are") == "there are: abcdef"


def test_a_tab_of_a_log_is_shown_as_blanks() -> None:
    assert "make:   no rule" in PerfgateError("arm-build-failed", "make:\tno rule").text()
