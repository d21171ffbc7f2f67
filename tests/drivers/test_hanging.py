"""A driver that never returns ends in an error, through pynvml itself on a management library of our own making."""

from __future__ import annotations

import functools

import pytest

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed", exc_type=ImportError)


@pytest.fixture
def clocks(scenarios):
    return functools.partial(scenarios, "hanging_scenarios.py")


def test_a_driver_that_never_starts_ends_in_an_error(clocks) -> None:
    answer = clocks("the_start_hangs")
    why = "NVML did not answer within 0.2 s, asked for nvmlInit"
    assert (answer["held"], answer["tried"], answer["why"]) == (["driver-silent", why], ["driver-silent", why], why)
    assert answer["facts"] == answer["fleet"] == []
    assert answer["codes"][0] == 0
    assert answer["codes"][1] >= 10
    assert answer["said"].count(why) == 2


def test_a_driver_that_finds_no_device_ends_in_an_error(clocks) -> None:
    first, second = clocks("finding_a_device_hangs")["held"]
    assert first == second
    assert first[0] == "driver-silent"
    assert "the device GPU-11111111" in first[1]


def test_a_driver_whose_first_reading_hangs_ends_in_an_error(clocks) -> None:
    answer = clocks("the_first_reading_hangs")
    assert answer["held"] == answer["again"] == ["driver-silent", "NVML did not answer within 0.2 s, asked for sample"]
    assert answer["locked"] == 0


def test_a_driver_that_hangs_while_clocks_are_put_back_is_named_and_the_lock_stays_on_file(clocks) -> None:
    answer = clocks("putting_back_hangs")
    assert answer["held"][0] == "clocks-not-restored"
    assert "did not answer within 0.2 s, asked for unlock" in answer["held"][1]
    assert answer["left"] == 1


def test_a_lock_that_is_taken_after_all_has_a_name(clocks) -> None:
    answer = clocks("locking_takes_longer_than_anybody_waits")
    assert (answer["held"][0], answer["locked"], answer["owners"]) == ("driver-silent", 1500, [True])


def test_a_denied_lock_leaves_the_name_of_whoever_left_one(clocks) -> None:
    answer = clocks("denied_where_a_lock_was_left")
    assert (answer["held"][0], answer["same"], answer["stale"]) == ("clocks-denied", True, [True])


def test_clocks_that_a_killed_child_left_locked_are_put_back_by_its_run_alone(clocks) -> None:
    answer = clocks("locks_that_dead_children_left")
    assert (len(answer["said"]), answer["again"], answer["locked"], answer["left"]) == (1, [], 0, [True])
    assert answer["said"][0].startswith("put back the clocks of GPU-1")
