"""AMD's cards through amdsmi itself, on a management library of our own making."""

from __future__ import annotations

import functools
from importlib.util import find_spec

import pytest

if find_spec("amdsmi") is None:
    pytest.skip("amdsmi is not installed (extra: amd)", allow_module_level=True)


@pytest.fixture
def amd(scenarios):
    return functools.partial(scenarios, "amd_scenarios.py")


def test_a_card_is_described_and_found_by_bus_and_uuid(amd) -> None:
    answer = amd("described")
    assert (answer["name"], answer["index"], answer["pci"]) == ("AMD Instinct MI300X", 1, "0000:26:00.0")
    assert (answer["memory"], answer["first"]) == (206141652992.0, "0000:05:00.0")
    assert answer["facts"] == {"driver": "6.12.12", "hip uuid": "GPU-22ec6f9c5de6b"}
    assert answer["availability"] == "driver 6.12.12"
    assert answer["unnumbered"] == [0, 1]
    assert answer["by_bus"] == answer["uuid"] != answer["by_uuid"]


def test_a_lock_is_taken_read_back_and_put_back(amd) -> None:
    answer = amd("locked")
    assert (answer["cap"], answer["memory"], answer["clocks"]) == (1900, 1300, [1.9e9])
    assert (answer["after"], answer["sets"], answer["resets"], answer["left"]) == (0, 1, 1, 0)
    assert (answer["owner"], answer["codes"]) == (True, [])
    assert answer["facts"]["memory clock lock"] == "at 1300 MHz"


def test_a_refused_lock_is_an_error_with_the_librarys_own_reason(amd) -> None:
    denied, unsupported = amd("denied"), amd("unsupported")
    assert (denied["code"], denied["left"]) == ("clocks-denied", 0)
    assert "AMDSMI_STATUS_NO_PERM - Permission Denied" in denied["what"]
    assert unsupported["code"] == "clocks-unsupported"
    assert "AMDSMI_STATUS_NOT_SUPPORTED" in unsupported["what"]
    tried = amd("tried")
    assert (tried["facts"]["clocks"], tried["sets"], tried["codes"]) == ("observed", 0, [])
    assert "Permission Denied" in tried["why"]


def test_observing_never_touches_the_card(amd) -> None:
    answer = amd("observed")
    assert (answer["sets"], answer["resets"], answer["codes"], answer["clocks"]) == (0, 0, [], [2.1e9])
    assert (answer["facts"]["power"], answer["facts"]["memory clock"]) == ("640 W at most, 640 W sampled", "1300 MHz")


def test_what_happens_to_the_card_is_invalid(amd) -> None:
    assert amd("throttled")["codes"] == ["throttled"]
    assert "software thermal slowdown" in amd("throttled")["whats"][0]
    limited = amd("power_limited")
    assert (limited["codes"], 0 < limited["capped"] <= 1) == ([], True)
    assert amd("above_its_cap")["codes"] == ["clock-moved"]
    assert amd("foreign")["codes"] == ["foreign-process"]
    assert amd("own")["codes"] == []
    lost = amd("gone")
    assert lost["codes"] == ["device-lost"]
    assert "DRIVER_NOT_LOADED" in lost["whats"][0]


def test_a_card_that_counts_what_held_its_clocks_is_believed_to_the_share(amd) -> None:
    answer = amd("counted")
    assert answer["whats"] == ["the device lowered its clocks: software thermal slowdown"]
    assert (answer["power"]["codes"], answer["power"]["capped"]) == ([], 0.5)
    assert answer["little"] == []
    assert answer["reads"] == 0
    assert "throttling" not in answer["facts"]
    assert "known from readings only" in amd("observed")["facts"]["throttling"]


def test_a_clock_that_the_card_does_not_have_is_refused(amd) -> None:
    answer = amd("out_of_range")
    why = "MHz is not a clock of this card: it has 132 to 2100 MHz"
    assert answer["refused"] == [["clocks-unsupported", f"{mhz} {why}"] for mhz in (100, 2200)]
    assert (answer["cap"], answer["sets"]) == (1900, 2)


def test_a_library_that_hangs_ends_in_an_error(amd) -> None:
    assert amd("hangs") == {
        **amd("hangs"),
        "code": "driver-silent",
        "what": "amdsmi did not answer within 0.2 s, asked for sample",
    }
    assert amd("start_hangs")["what"] == "amdsmi did not answer within 0.2 s, asked for amdsmi_init"


def test_what_a_card_does_not_do_or_tell_is_said(amd) -> None:
    stays = amd("memory_stays")
    assert stays["facts"]["memory clock lock"].startswith("not available: amdsmi_set_gpu_clk_limit")
    assert (stays["codes"], stays["cap"], stays["after"]) == ([], 1900, 0)
    silent = amd("silent")
    assert silent["codes"] == []
    assert "NOT_SUPPORTED" in silent["facts"]["clocks"]
    assert "DRIVER_NOT_LOADED" in amd("no_card")["why"]


def test_a_lock_that_cannot_be_put_back_is_said_and_kept_on_file(amd) -> None:
    answer = amd("not_put_back")
    assert (answer["code"], answer["left"]) == ("clocks-not-restored", 1)


def test_without_the_library_there_is_a_reason_and_nothing_on_standard_output(amd) -> None:
    answer = amd("no_library", missing=True)
    assert (answer["usable"], answer["said"]) == (False, "")
    assert "libamd_smi.so" in answer["why"]
