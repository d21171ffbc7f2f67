from __future__ import annotations

import pytest

from pytest_perfgate.core.limits.merge import applies_on, limits_for, merge_limits, replaced_on, unmatched_cases
from pytest_perfgate.model.plan import CaseKey
from tests.unit.core.gate.bench import GPU, HOST, KEY, limit


def texts(limits) -> list[str]:
    return [f"{found.text}@{found.source}" for found in limits]


def test_the_closest_layer_wins_per_metric_and_scope() -> None:
    far = [limit("mfu >= 40%", source="default"), limit("time <= 1ms", source="default")]
    near = [limit("mfu >= 55%"), limit("mfu(case=bwd) >= 30%")]
    assert texts(merge_limits(far, near)) == [
        "time <= 1ms@default",
        "mfu >= 55%@marker",
        "mfu(case=bwd) >= 30%@marker",
    ]


def test_the_command_line_replaces_its_key_and_is_shown_as_such() -> None:
    merged = merge_limits([limit("slowdown <= 3%")], [limit("slowdown <= 10%", source="command line")])
    assert texts(merged) == ["slowdown <= 10%@command line"]


def test_a_band_of_one_layer_holds_as_a_whole() -> None:
    band = [limit("count(HMMA) >= 1"), limit("count(HMMA) <= 9")]
    assert merge_limits([limit("count(HMMA) == 5")], band) == tuple(band)


def test_a_device_s_limit_takes_the_place_of_another_on_that_device_only() -> None:
    everywhere, hopper = limit("mfu >= 40%"), limit("mfu >= 55%", on=("H200*",))
    wide, narrow = merge_limits([everywhere], [hopper])
    assert replaced_on(wide, GPU)
    assert not applies_on(wide, GPU)
    assert applies_on(narrow, GPU)
    assert applies_on(wide, HOST)
    assert not replaced_on(wide, HOST)
    assert not applies_on(narrow, HOST)
    assert not replaced_on(hopper, GPU)


def test_a_closer_limit_without_devices_replaces_those_with() -> None:
    assert texts(merge_limits([limit("mfu >= 55%", on=("H200*",))], [limit("mfu >= 20%")])) == ["mfu >= 20%@marker"]


def test_the_same_devices_are_replaced_altogether() -> None:
    far, near = limit("mfu >= 50%", on=("H200*",)), limit("mfu >= 55%", on=("A100*", "H200*"))
    assert merge_limits([far], [near]) == (near,)
    assert len(merge_limits([near], [far])) == 2


def test_no_layers_are_no_limits() -> None:
    assert merge_limits() == ()
    assert merge_limits([], []) == ()


@pytest.mark.parametrize(
    "pattern", ["H200*", "h200", "NVIDIA*", "NVIDIA-H200-lock", "sm_90", "gpu", "nvidia h200", "*lock"]
)
def test_a_device_answers_to_what_people_call_it(pattern: str) -> None:
    assert applies_on(limit("mfu >= 5%", on=(pattern,)), GPU)
    assert not applies_on(limit("mfu >= 5%", on=(pattern,)), HOST)


@pytest.mark.parametrize("pattern", ["H100*", "200", "sm_80", ""])
def test_and_to_nothing_else(pattern: str) -> None:
    assert not applies_on(limit("mfu >= 5%", on=(pattern,)), GPU)


def test_one_of_several_devices_is_enough() -> None:
    assert applies_on(limit("mfu >= 5%", on=("A100*", "H200*")), GPU)


def test_a_call_answers_to_its_own_limits_and_to_those_of_all() -> None:
    limits = [limit("mfu >= 55%"), limit("mfu(case=bwd) >= 30%"), limit("time(case=f*) <= 1ms"), limit("time <= 2ms")]
    bwd = CaseKey(nodeid=KEY.nodeid, name="bwd")
    assert texts(limits_for(limits, bwd)) == ["mfu(case=bwd) >= 30%@marker", "time <= 2ms@marker"]
    assert texts(limits_for(limits, KEY)) == ["mfu >= 55%@marker", "time <= 2ms@marker"]
    fwd = CaseKey(nodeid=KEY.nodeid, name="fwd")
    assert texts(limits_for(limits, fwd)) == ["mfu >= 55%@marker", "time(case=f*) <= 1ms@marker"]
    assert texts(unmatched_cases(limits, [bwd])) == ["time(case=f*) <= 1ms@marker"]
    assert unmatched_cases(limits, [bwd, fwd]) == ()
