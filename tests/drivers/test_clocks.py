"""Clocks through pynvml itself, on a management library of our own making."""

from __future__ import annotations

import functools
import signal

import pytest

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed", exc_type=ImportError)


@pytest.fixture
def clocks(scenarios):
    return functools.partial(scenarios, "clock_scenarios.py")


def test_a_lock_is_taken_read_back_and_put_back(clocks) -> None:
    answer = clocks("lock_permitted")
    assert answer["locked"] == 1500
    assert answer["clocks"] == [1.5e9]
    assert (answer["after"], answer["sets"], answer["resets"], answer["left"]) == (0, 1, 1, 0)
    assert answer["owner"] is True
    assert answer["codes"] == []
    assert answer["facts"]["clocks"] == "locked"


def test_a_denied_lock_is_an_error_that_leaves_nothing(clocks) -> None:
    answer = clocks("lock_denied")
    assert answer["code"] == "clocks-denied"
    assert "Insufficient Permissions" in answer["text"]
    assert answer["left"] == 0


def test_where_a_lock_is_only_tried_a_denied_one_is_observed_and_the_reason_known(clocks) -> None:
    answer = clocks("try_lock_denied")
    assert answer["policy"] == "observe"
    assert "Insufficient Permissions" in answer["why"]
    assert answer["same"] is True
    assert answer["facts"]["clocks"] == "observed"
    assert (answer["sets"], answer["left"], answer["codes"]) == (0, 0, [])


def test_where_a_lock_is_only_tried_a_permitted_one_is_taken(clocks) -> None:
    answer = clocks("try_lock_permitted")
    assert (answer["policy"], answer["why"], answer["after_trial"]) == ("lock", "", 0)
    assert (answer["locked"], answer["after"], answer["left"]) == (1500, 0, 0)
    assert answer["facts"]["clocks"] == "locked"


def test_an_unsupported_lock_is_another_error(clocks) -> None:
    assert clocks("lock_unsupported")["code"] == "clocks-unsupported"


def test_observing_never_touches_the_card(clocks) -> None:
    answer = clocks("observed")
    assert (answer["sets"], answer["resets"], answer["codes"]) == (0, 0, [])
    assert answer["clocks"] == [1.98e9]
    assert answer["facts"]["power"] == "650 W at most, 650 W sampled"
    assert (answer["capped"], answer["watts"]) == (0.0, 650.0)


def test_off_does_not_even_look(clocks) -> None:
    answer = clocks("off")
    assert (answer["looks"], answer["sets"]) == (0, 0)
    assert answer["facts"]["clocks"] == "not observed: clocks=off"


def test_throttling_half_way_is_invalid_with_its_evidence(clocks, scenarios) -> None:
    answer = clocks("throttled_half_way")
    assert answer["codes"] == ["throttled"]
    names = [name for name, _ in answer["evidence"][0]]
    assert names == ["software thermal slowdown", "software thermal slowdown, counted"]
    assert scenarios("power_scenarios.py", "power_brake")["codes"] == ["throttled"]


def test_the_power_limit_is_a_state_that_is_recorded(scenarios) -> None:
    answer = scenarios("power_scenarios.py", "power_limited")
    assert answer["codes"] == []
    assert 0 < answer["capped"] <= 1
    assert answer["facts"]["at the power limit"].endswith("% of the sampling")


def test_a_device_has_settled_when_clock_and_power_hold_still_under_load(scenarios) -> None:
    answer = scenarios("power_scenarios.py", "warmed_up")
    assert answer["steady"] == [False, True, False, True, True]
    assert answer["after"] is True


def test_counters_are_held_against_the_time_in_which_samples_were_taken(clocks) -> None:
    answer = clocks("held_before_and_while_sampling")
    assert answer["before"] == [[], []]
    codes, evidence = answer["within"]
    assert codes == ["throttled"]
    assert evidence[0][0][0] == "software thermal slowdown, counted"
    assert evidence[0][0][1].endswith("% of the sampling")


def test_a_lock_that_is_lost_is_invalid(clocks) -> None:
    answer = clocks("lock_lost")
    assert answer["codes"] == ["clock-moved"]
    assert ["locked at", "1500 MHz"] in answer["evidence"][0]
    assert answer["resets"] == 1


def test_the_memory_is_locked_where_it_can_be_and_said_where_not(clocks) -> None:
    answer = clocks("memory_is_locked_too")
    assert answer["seen"] == [[3201, True]]
    assert answer["locked"]["facts"]["memory clock lock"] == "at 3201 MHz"
    assert (answer["after"], answer["locked"]["codes"], answer["moved"]) == (0, [], ["clock-moved"])
    refused = answer["refused"]
    assert refused["facts"]["memory clock lock"].startswith("not available: nvmlDeviceSetMemoryLockedClocks")
    assert (refused["codes"], refused["locked"] > 0, refused["after"], refused["left"]) == ([], True, 0, 0)


def test_a_lost_device_is_invalid_and_no_hang(clocks) -> None:
    assert clocks("device_lost")["codes"] == ["device-lost"]


def test_a_foreign_process_is_invalid_and_our_own_is_not(clocks) -> None:
    answer = clocks("foreign_process")
    assert answer["codes"] == ["foreign-process"]
    assert answer["evidence"][0][0][0] == "processes"
    assert clocks("own_process")["codes"] == []


def test_a_process_on_another_instance_of_the_card_is_not_foreign(clocks) -> None:
    assert clocks("foreign_process_on_an_instance")["codes"] == [["foreign-process"], []]


def test_a_hot_device_is_waited_for(clocks) -> None:
    answer = clocks("hot_then_cool")
    assert answer["waited"] >= 5
    assert answer["codes"] == []


def test_a_device_that_stays_hot_is_invalid(clocks) -> None:
    assert "hot" in clocks("hot_and_stays")["codes"]


def test_a_lock_that_cannot_be_put_back_is_said_and_kept_on_file(clocks) -> None:
    answer = clocks("reset_fails")
    assert answer["code"] == "clocks-not-restored"
    assert answer["left"] == 1


def test_a_failing_test_puts_the_clocks_back(clocks) -> None:
    answer = clocks("the_test_raises")
    assert (answer["after"], answer["left"], answer["resets"]) == (0, 0, 1)


def test_a_terminated_process_puts_the_clocks_back(clocks) -> None:
    answer = clocks("terminated")
    assert (answer["signal"], answer["locks"]) == (signal.SIGTERM, 0)


def test_a_killed_process_leaves_its_name_and_the_next_takes_over(clocks) -> None:
    answer = clocks("killed")
    assert (answer["signal"], answer["locks"]) == (signal.SIGKILL, 1)
    assert clocks("stale_is_found")["stale"] is True
    assert clocks("stale_is_found")["left"] == 0


def test_another_living_owner_is_not_disturbed(clocks) -> None:
    answer = clocks("held_by_another")
    assert (answer["code"], answer["sets"], answer["left"]) == ("clocks-held", 0, 1)


def test_without_a_driver_observing_says_why_and_locking_fails(clocks) -> None:
    answer = clocks("driver_missing", missing=True)
    assert answer["usable"] is False
    assert "NVMLError_LibraryNotFound" in answer["why"]
    assert "not observed" in answer["facts"]["clocks"]
    assert answer["code"] == "clocks-unsupported"


def test_a_device_that_nvml_does_not_know_is_an_error(clocks) -> None:
    assert clocks("unmapped")["code"] == "device-unmapped"


def test_errors_of_a_card_make_what_it_measured_invalid(clocks) -> None:
    answer = clocks("errors_of_the_card")
    assert answer["before"] == [[], "2 corrected, 3 not, 1 row replaced"], "what was before is a fact and no fault"
    assert answer["memory"][0] == ["device-faulty"]
    assert answer["xid"][0] == ["device-faulty"]
    assert answer["replaced"][0] == ["device-faulty"]
    assert answer["waiting"][0] == ["device-faulty"]
    assert answer["failed"][0] == ["device-faulty"]
    assert answer["silent"] == [[], ""]


def test_the_counter_of_energy_is_read_in_joules(scenarios) -> None:
    answer = scenarios("power_scenarios.py", "energy")
    assert answer["first"] > 0
    assert answer["more"] == 300
    assert answer["host"] is True
