from __future__ import annotations

import math

import pytest

from pytest_perfgate.core.analysis.decisions import advice_items, recommendations, sentence


def titles(**situation: object) -> list[str]:
    return [finding.title for finding in recommendations(situation)]


@pytest.mark.parametrize(
    ("situation", "title"),
    [
        ({"class": "memory", "ratio": 2.0, "cliff_distance": 10.0, "async_copies": 0}, "Software pipelining with cp.async"),
        ({"class": "memory", "ratio": 64.0, "warps": 8.0}, "Change the algorithm"),
        ({"class": "compute", "mix": "FFMA", "ffma_stall": 4.0}, "Tighten stalls on independent FFMA"),
        ({"class": "compute", "mix": "HMMA"}, "More reuse for the tensor cores"),
        ({"class": "compute", "mix": "IMMA", "imma_stall": 4.0}, "Tighten stalls on IMMA"),
        ({"class": "latency", "theoretical_warps": 4.0}, "More warps a multiprocessor"),
        ({"cliff_distance": -7168.0}, "Step back from the shared-memory cliff"),
        ({"class": "memory", "ratio": 10.0}, "Measure cp.async both ways"),
        ({"class": "latency", "inside": 0.9}, "Fewer trips through L1 and shared memory"),
        ({"class": "launch"}, "Fewer, longer launches"),
        ({"class": "communication"}, "Overlap communication"),
        ({"class": "synchronisation"}, "Remove blocking synchronisations"),
        ({"class": "memory", "l2_hit": 0.5}, "Better locality in L2"),
        ({"class": "latency", "small_problem": "yes"}, "Measure larger problems"),
        ({"local_instructions": 3.0}, "Avoid local memory"),
        ({"waves": 0.4}, "Fill the device"),
        ({"load_heavy": "yes", "wide_loads": 0.0, "narrow_loads_in_loop": 4.0}, "Sixteen-byte loads"),
        ({"class": "latency", "barriers_a_stage": 3.0}, "Fewer barriers"),
        ({"class": "latency", "cause": "not collected"}, "Collect the leading stall"),
        ({}, "Micro-benchmark"),
    ],
)  # fmt: skip
def test_each_row_is_reached_and_alone(situation: dict, title: str) -> None:
    assert titles(**situation) == [title]


def test_every_recommendation_names_its_trigger_and_value() -> None:
    (finding,) = recommendations({"class": "memory", "ratio": 2.5, "cliff_distance": 0.0, "async_copies": 0})
    assert "ratio=2.5" in finding.trigger
    assert "class=memory" in finding.trigger
    assert finding.conflicts


def test_unknown_facts_and_nan_trigger_nothing() -> None:
    assert titles(**{"class": "memory", "ratio": math.nan}) == ["Micro-benchmark"]


def test_gains_are_capped_by_the_room_under_the_roof_and_ranked() -> None:
    findings = recommendations(
        {"class": "memory", "ratio": 2.0, "cliff_distance": 1.0, "async_copies": 0, "room": 0.10, "waves": 0.5}
    )
    assert [f.title for f in findings] == ["Software pipelining with cp.async", "Fill the device"]
    assert findings[0].gain is not None
    assert findings[0].gain.high == 0.10


def test_a_doubtful_gain_is_printed_with_its_doubt() -> None:
    (text,) = advice_items(recommendations({"class": "compute", "mix": "IMMA", "imma_stall": 4.0, "room": 0.5}))
    assert "estimated 0-20 % gain" in text
    assert "Doubt: 15-20 % has been claimed; one careful measurement found 1.6 %" in text


@pytest.mark.parametrize("room", [{}, {"room": 0.5}])
def test_what_a_change_cost_elsewhere_is_printed_with_the_advice_against_it(room: dict) -> None:
    (text,) = advice_items(recommendations({"class": "memory", "ratio": 64.0, "warps": 8.0, **room}))
    assert "cp.async cost 5 %" in text


TWICE = {"class": "memory", "ratio": 2.0, "cliff_distance": 10.0, "async_copies": 0}
REUSE = {"class": "compute", "mix": "HMMA"}
WARPS = {"class": "latency", "theoretical_warps": 4.0}


@pytest.mark.parametrize(
    ("situation", "conflict"),
    [
        (TWICE, "it may cross the cliff"),
        ({**TWICE, "blocks": 7, "doubled_blocks": 5}, "would leave 5 of 7 blocks"),
        ({**TWICE, "blocks": 2, "doubled_blocks": 0}, "would not fit"),
        ({**TWICE, "blocks": 5, "doubled_blocks": 5}, None),
        (REUSE, "occupancy may fall, or registers spill"),
        ({**REUSE, "registers": 66, "register_edge": 72, "blocks": 7}, "over 72 a thread (66 now) at most 6 blocks fit"),
        ({**REUSE, "registers": 66, "register_edge": 128, "blocks": 1}, "no block fits"),
        ({**REUSE, "registers": 66, "register_edge": 255, "blocks": 1}, "they spill (66 now)"),
        ({**WARPS, "spills": 0.0}, "may spill"),
        ({**WARPS, "spills": 624.0}, "624 bytes a thread are spilled already"),
    ],
)  # fmt: skip
def test_conflicts_are_those_of_the_kernel_at_hand(situation: dict, conflict: str | None) -> None:
    (finding,) = recommendations(situation)
    if conflict is None:
        assert finding.conflicts == ()
    else:
        assert any(conflict in text for text in finding.conflicts)


def test_a_trigger_is_written_without_exponents() -> None:
    situation = {"class": "memory", "ratio": 2.5, "cliff_distance": 41984.0, "async_copies": 0}
    (finding,) = recommendations(situation)
    assert finding.trigger == "class=memory, ratio=2.5, cliff_distance=41984, async_copies=0"
    assert recommendations({"class": "memory", "ratio": 10.0})[0].trigger == "ratio=10, class=memory"


@pytest.mark.parametrize(
    ("text", "start"),
    [("idle time", "I"), ("aten::mm waits", "a"), ("matmul_kernel waits", "m"), ("cudaEventQuery 62 times", "c")],
)
def test_a_sentence_begins_with_a_capital_and_a_name_of_code_as_it_is(text: str, start: str) -> None:
    assert sentence(text) == f"{start}{text[1:]}."
