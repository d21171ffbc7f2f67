"""Runs that begin and end beside each other, and what is the last record meanwhile and afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores.records import Pointer
from pytest_perfgate.model.errors import PerfgateError


@pytest.fixture
def pointer(tmp_path: Path) -> Pointer:
    found = Pointer(tmp_path)
    found.point("old.json")
    return found


def test_a_run_that_measured_nothing_leaves_the_last_record_what_it_was(pointer: Pointer) -> None:
    pointer.suspend("a goes on")
    assert pointer.closed() == "a goes on"
    with pytest.raises(PerfgateError, match="a goes on") as caught:
        pointer.name()
    assert caught.value.code.name == "record-missing"
    pointer.resume("a goes on")
    assert (pointer.name(), pointer.closed()) == ("old.json", "")
    assert pointer.path.read_text() == "old.json\n"


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_two_runs_at_once_that_measured_nothing_leave_it_too(pointer: Pointer, order: str) -> None:
    pointer.suspend("a")
    pointer.suspend("b")
    assert pointer.closed() == "b"
    pointer.resume(order[0])
    assert pointer.closed() == order[1]
    pointer.resume(order[1])
    assert pointer.name() == "old.json"


def test_what_another_wrote_meanwhile_stays(pointer: Pointer) -> None:
    pointer.suspend("a")
    pointer.suspend("b")
    pointer.point("b.json")
    pointer.resume("a")
    assert pointer.name() == "b.json"
    pointer.suspend("c")
    pointer.close("in CI")
    pointer.resume("c")
    assert pointer.closed() == "in CI"


def test_a_run_that_was_killed_is_still_told_after_one_that_measured_nothing(pointer: Pointer) -> None:
    pointer.suspend("killed")
    pointer.suspend("mistyped")
    pointer.resume("mistyped")
    assert pointer.closed() == "killed"
    for number in range(50):
        pointer.suspend(f"killed {number}")
    assert pointer.closed() == "killed 49"
    assert len(pointer.path.read_text().splitlines()) == 20
    pointer.point("new.json")
    assert pointer.path.read_text() == "new.json\n"


def test_where_no_run_has_left_a_record_nothing_is_written(tmp_path: Path) -> None:
    fresh = Pointer(tmp_path)
    fresh.suspend("a")
    fresh.resume("a")
    fresh.close("b")
    assert (list(tmp_path.iterdir()), fresh.closed()) == ([], "")


def test_a_pointer_that_is_no_text_is_said_and_outlives_a_run_that_measured_nothing(pointer: Pointer) -> None:
    pointer.path.write_bytes(b"\xff\n")
    pointer.suspend("a")
    pointer.resume("a")
    assert pointer.path.read_bytes() == b"\xff\n"
    with pytest.raises(PerfgateError, match="it is not text"):
        pointer.name()
