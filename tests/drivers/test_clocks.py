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
    told = clocks("lock_permitted")
    assert told["locked"] == 1500
    assert told["clocks"] == [1.5e9]
    assert (told["after"], told["sets"], told["resets"], told["left"]) == (0, 1, 1, 0)
    assert told["owner"] is True
    assert told["codes"] == []
    assert told["facts"]["clocks"] == "locked"


def test_a_denied_lock_is_an_error_that_leaves_nothing(clocks) -> None:
    told = clocks("lock_denied")
    assert told["code"] == "clocks-denied"
    assert "Insufficient Permissions" in told["text"]
    assert told["left"] == 0


def test_where_a_lock_is_only_tried_a_denied_one_is_observed_and_the_reason_known(clocks) -> None:
    told = clocks("try_lock_denied")
    assert told["policy"] == "observe"
    assert "Insufficient Permissions" in told["why"]
    assert told["same"] is True
    assert told["facts"]["clocks"] == "observed"
    assert (told["sets"], told["left"], told["codes"]) == (0, 0, [])


def test_where_a_lock_is_only_tried_a_permitted_one_is_taken(clocks) -> None:
    told = clocks("try_lock_permitted")
    assert (told["policy"], told["why"], told["after_trial"]) == ("lock", "", 0)
    assert (told["locked"], told["after"], told["left"]) == (1500, 0, 0)
    assert told["facts"]["clocks"] == "locked"


def test_an_unsupported_lock_is_another_error(clocks) -> None:
    assert clocks("lock_unsupported")["code"] == "clocks-unsupported"


def test_observing_never_touches_the_card(clocks) -> None:
    told = clocks("observed")
    assert (told["sets"], told["resets"], told["codes"]) == (0, 0, [])
    assert told["clocks"] == [1.98e9]
    assert told["facts"]["power"] == "650 W at most, 650 W sampled"
    assert (told["capped"], told["watts"]) == (0.0, 650.0)


def test_off_does_not_even_look(clocks) -> None:
    told = clocks("off")
    assert (told["looks"], told["sets"]) == (0, 0)
    assert told["facts"]["clocks"] == "not observed: clocks=off"


def test_throttling_half_way_is_invalid_with_its_evidence(clocks, scenarios) -> None:
    told = clocks("throttled_half_way")
    assert told["codes"] == ["throttled"]
    names = [name for name, _ in told["evidence"][0]]
    assert names == ["software thermal slowdown", "software thermal slowdown, counted"]
    assert scenarios("power_scenarios.py", "power_brake")["codes"] == ["throttled"]


def test_the_power_limit_is_a_state_that_is_recorded(scenarios) -> None:
    told = scenarios("power_scenarios.py", "power_limited")
    assert told["codes"] == []
    assert 0 < told["capped"] <= 1
    assert told["facts"]["at the power limit"].endswith("% of the sampling")


def test_a_device_has_settled_when_clock_and_power_hold_still_under_load(scenarios) -> None:
    told = scenarios("power_scenarios.py", "warmed_up")
    assert told["steady"] == [False, True, False, True, True]
    assert told["after"] is True


def test_counters_are_held_against_the_time_in_which_samples_were_taken(clocks) -> None:
    told = clocks("held_before_and_while_sampling")
    assert told["before"] == [[], []]
    codes, evidence = told["within"]
    assert codes == ["throttled"]
    assert evidence[0][0][0] == "software thermal slowdown, counted"
    assert evidence[0][0][1].endswith("% of the sampling")


def test_a_lock_that_is_lost_is_invalid(clocks) -> None:
    told = clocks("lock_lost")
    assert told["codes"] == ["clock-moved"]
    assert ["locked at", "1500 MHz"] in told["evidence"][0]
    assert told["resets"] == 1


def test_the_memory_is_locked_where_it_can_be_and_said_where_not(clocks) -> None:
    told = clocks("memory_is_locked_too")
    assert told["seen"] == [[3201, True]]
    assert told["locked"]["facts"]["memory clock lock"] == "at 3201 MHz"
    assert (told["after"], told["locked"]["codes"], told["moved"]) == (0, [], ["clock-moved"])
    refused = told["refused"]
    assert refused["facts"]["memory clock lock"].startswith("not available: nvmlDeviceSetMemoryLockedClocks")
    assert (refused["codes"], refused["locked"] > 0, refused["after"], refused["left"]) == ([], True, 0, 0)


def test_a_lost_device_is_invalid_and_no_hang(clocks) -> None:
    assert clocks("device_lost")["codes"] == ["device-lost"]


def test_a_foreign_process_is_invalid_and_our_own_is_not(clocks) -> None:
    told = clocks("foreign_process")
    assert told["codes"] == ["foreign-process"]
    assert told["evidence"][0][0][0] == "processes"
    assert clocks("own_process")["codes"] == []


def test_a_hot_device_is_waited_for(clocks) -> None:
    told = clocks("hot_then_cool")
    assert told["waited"] >= 5
    assert told["codes"] == []


def test_a_device_that_stays_hot_is_invalid(clocks) -> None:
    assert "hot" in clocks("hot_and_stays")["codes"]


def test_a_lock_that_cannot_be_put_back_is_said_and_kept_on_file(clocks) -> None:
    told = clocks("reset_fails")
    assert told["code"] == "clocks-not-restored"
    assert told["left"] == 1


def test_a_failing_test_puts_the_clocks_back(clocks) -> None:
    told = clocks("the_test_raises")
    assert (told["after"], told["left"], told["resets"]) == (0, 0, 1)


def test_a_terminated_process_puts_the_clocks_back(clocks) -> None:
    told = clocks("terminated")
    assert (told["signal"], told["locks"]) == (signal.SIGTERM, 0)


def test_a_killed_process_leaves_its_name_and_the_next_takes_over(clocks) -> None:
    told = clocks("killed")
    assert (told["signal"], told["locks"]) == (signal.SIGKILL, 1)
    assert clocks("stale_is_found")["stale"] is True
    assert clocks("stale_is_found")["left"] == 0


def test_another_living_owner_is_not_disturbed(clocks) -> None:
    told = clocks("held_by_another")
    assert (told["code"], told["sets"], told["left"]) == ("clocks-held", 0, 1)


def test_without_a_driver_observing_says_why_and_locking_fails(clocks) -> None:
    told = clocks("driver_missing", missing=True)
    assert told["usable"] is False
    assert "NVMLError_LibraryNotFound" in told["why"]
    assert "not observed" in told["facts"]["clocks"]
    assert told["code"] == "clocks-unsupported"


def test_a_device_that_nvml_does_not_know_is_an_error(clocks) -> None:
    assert clocks("unmapped")["code"] == "device-unmapped"


def test_errors_of_a_card_make_what_it_measured_invalid(clocks) -> None:
    told = clocks("errors_of_the_card")
    assert told["before"] == [[], "2 corrected, 3 not, 1 row replaced"], "what was before is a fact and no fault"
    assert told["memory"][0] == ["device-faulty"]
    assert told["xid"][0] == ["device-faulty"]
    assert told["replaced"][0] == ["device-faulty"]
    assert told["waiting"][0] == ["device-faulty"]
    assert told["failed"][0] == ["device-faulty"]
    assert told["silent"] == [[], ""]


def test_the_counter_of_energy_is_read_in_joules(scenarios) -> None:
    told = scenarios("power_scenarios.py", "energy")
    assert told["first"] > 0
    assert told["more"] == 300
    assert told["host"] is True
