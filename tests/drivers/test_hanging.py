"""A driver that never returns ends in an error, through pynvml itself on a management library of our own making."""

from __future__ import annotations

import functools

import pytest

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed", exc_type=ImportError)


@pytest.fixture
def clocks(scenarios):
    return functools.partial(scenarios, "hanging_scenarios.py")


def test_a_driver_that_never_starts_ends_in_an_error(clocks) -> None:
    told = clocks("the_start_hangs")
    why = "NVML did not answer within 0.2 s, asked for nvmlInit"
    assert (told["held"], told["tried"], told["why"]) == (["driver-silent", why], ["driver-silent", why], why)
    assert told["facts"] == told["fleet"] == []
    assert told["codes"][0] == 0
    assert told["codes"][1] >= 10
    assert told["said"].count(why) == 2


def test_a_driver_that_finds_no_device_ends_in_an_error(clocks) -> None:
    first, second = clocks("finding_a_device_hangs")["held"]
    assert first == second
    assert first[0] == "driver-silent"
    assert "the device GPU-11111111" in first[1]


def test_a_driver_whose_first_reading_hangs_ends_in_an_error(clocks) -> None:
    told = clocks("the_first_reading_hangs")
    assert told["held"] == told["again"] == ["driver-silent", "NVML did not answer within 0.2 s, asked for sample"]
    assert told["locked"] == 0


def test_a_driver_that_hangs_while_clocks_are_put_back_is_named_and_the_lock_stays_on_file(clocks) -> None:
    told = clocks("putting_back_hangs")
    assert told["held"][0] == "clocks-not-restored"
    assert "did not answer within 0.2 s, asked for unlock" in told["held"][1]
    assert told["left"] == 1


def test_a_lock_that_is_taken_after_all_has_a_name(clocks) -> None:
    told = clocks("locking_takes_longer_than_anybody_waits")
    assert (told["held"][0], told["locked"], told["owners"]) == ("driver-silent", 1500, [True])


def test_a_denied_lock_leaves_the_name_of_whoever_left_one(clocks) -> None:
    told = clocks("denied_where_a_lock_was_left")
    assert (told["held"][0], told["same"], told["stale"]) == ("clocks-denied", True, [True])


def test_clocks_that_a_killed_child_left_locked_are_put_back_by_its_run_alone(clocks) -> None:
    told = clocks("locks_that_dead_children_left")
    assert (len(told["said"]), told["again"], told["locked"], told["left"]) == (1, [], 0, [True])
    assert told["said"][0].startswith("put back the clocks of GPU-1")
