"""cupti-python itself on a CUPTI of our own making: every call that we make of it, and each way in which it fails."""

from __future__ import annotations

import functools
from importlib import metadata

import pytest

for module in ("cupti", "cuda.core"):
    pytest.importorskip(module, reason=f"{module} is not installed", exc_type=ImportError)


@pytest.fixture
def cupti(scenarios):
    return functools.partial(scenarios, "cupti_scenarios.py")


def test_records_are_those_of_the_calls_that_were_pushed_around_them(cupti) -> None:
    answer = cupti("records")
    call = [["kernel", "softmax", 7, 0, 5_000], ["set", "", 8, 0, 300], ["copy", "", 8, 0, 200]]
    outside = [None, "kernel", "softmax", 7, 0, 50]
    assert answer["seen"] == [*([1, *one] for one in call), *([2, *one] for one in call), outside]
    assert answer["lost"] == 0
    assert (answer["during"], answer["after"]) == ([1] * 6, [0] * 6)


def test_it_works_and_says_its_version(cupti) -> None:
    assert cupti("records")["usable"] is True
    assert cupti("records")["version"] == metadata.version("cupti-python")


def test_three_percent_of_a_short_kernel_are_caught_and_none_is_not(cupti) -> None:
    answer = cupti("slowdown_and_none")
    assert answer["took"] == [2_000, 2_000, 2_060]
    assert answer["notes"]["dropped records"].startswith("none; counter proved")


def test_busy_and_span_of_two_streams(cupti) -> None:
    answer = cupti("streams_that_overlap")
    assert (answer["busy"], answer["span"]) == (80_000, 80_000)
    assert answer["notes"]["kernels"] == "2 a call on 2 streams"
    assert answer["notes"]["overlap of streams"] == "0.333"


def test_larger_buffers_are_tried(cupti) -> None:
    answer = cupti("larger_buffers_hold_what_smaller_dropped")
    assert "records dropped (256 KiB buffers)" in answer["discarded"][0]
    assert answer["n"] == 64


def test_the_counter_is_proved_though_a_buffer_of_the_old_size_is_at_hand(cupti) -> None:
    assert cupti("a_buffer_asked_for_beforehand")["n"] == 64


def test_a_proof_of_the_gpu_check_that_fails_says_what_became_of_records(cupti) -> None:
    answer = cupti("a_check_whose_proof_fails")
    assert answer["why"] == "a record without room was lost, and it was not counted"
    assert answer["tried"][0] == "65536 B: 0 of 200 came, 0 counted as lost"
    assert [line.split()[0] for line in answer["tried"]] == ["65536", "4096", "512", "64", "8"]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("dropped_to_the_end", "cupti-dropped"),
        ("a_counter_that_does_not_count", "cupti-unproved"),
        ("a_second_subscriber", "cupti-busy"),
        ("one_kind_refused", "cupti-busy"),
    ],
)
def test_what_cannot_be_trusted_is_an_error(cupti, name, code) -> None:
    answer = cupti(name)
    assert answer["code"] == code
    assert answer.get("on", [0] * 6) == [0] * 6
    if code == "cupti-busy":
        assert "MULTIPLE_SUBSCRIBERS" in answer["text"]
        assert "MULTIPLE_SUBSCRIBERS" in answer.get("found", answer["text"])


def test_a_missing_driver_is_a_reason(scenarios) -> None:
    answer = scenarios("cupti_scenarios.py", "missing", missing=True)
    assert answer["usable"] is False
    assert answer["why"]
    assert "cupti-python" in answer["fix"]
