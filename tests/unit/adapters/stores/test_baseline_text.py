"""Lines as we write them: whatever a line can say is read by the pattern, and none falls to the slow reader."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_perfgate.adapters.stores.baseline_line import render_line
from pytest_perfgate.adapters.stores.baseline_text import own_fields
from pytest_perfgate.model.measurement import Baseline, Identity
from pytest_perfgate.model.plan import CaseKey

PLAIN = Baseline(key=CaseKey(nodeid="tests/test_k.py::test_gemm"), device="NVIDIA-H200", time=1e6)
ELSEWHERE = {"key", "device", "local", "place", "surroundings"}
"""What the place of a line tells, and the file of its surroundings."""


def test_a_line_with_all_that_it_can_say_is_read_by_the_pattern() -> None:
    parts = {field.name: "a word" for field in dataclasses.fields(Identity) if field.name not in {"notes", "calls"}}
    whole = dataclasses.replace(
        PLAIN, time=2e6, scatter=0.01, sittings=3, blind=0.2, processes=1, anchor=1.5e6, anchored="2026-01-31", commit="a1b2c3d+dirty", who="A. F.",
        when="2026-05-02", why="TMA loads", expires="2027-01-31", environment="3f2a91c0d4",
        counted="2026-06-01T10:00:00", limited=True, identity=Identity(**parts, calls="10"),
    )  # fmt: skip
    unsaid = {field.name for field in dataclasses.fields(Baseline)} - ELSEWHERE
    assert {name for name in unsaid if getattr(whole, name) == getattr(PLAIN, name)} == set(), "all is said"
    found = own_fields(render_line("it's", whole), PLAIN.device)
    assert found is not None
    assert (found[0], dataclasses.replace(PLAIN, **found[1])) == ("it's", whole)
    assert own_fields(render_line("test_gemm", PLAIN), PLAIN.device) == ("test_gemm", {"time": 1e6})


@pytest.mark.parametrize(
    "line",
    [
        "  'a': {time: 1us, later: 1}",
        "  'a': {time: 0ns}",
        "  'a': {time: 1us, identity: {colour: red}}",
        "  'a': {time: 1us, identity: {clocks: off, clocks: on}}",
        "  'a': {who: \"me\", time: 1us}",
    ],
)
def test_a_line_of_another_form_is_none_of_ours(line: str) -> None:
    assert own_fields(line, PLAIN.device) is None


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [(999_999, "1.0000ms"), (999_994, "999.99us"), (999.996, "1.0000us"), (0.5, "0.50000ns"), (1e9, "1.0000s")],
)
def test_a_time_that_is_read_and_written_again_stays(nanoseconds: float, text: str) -> None:
    line = render_line("test_gemm", dataclasses.replace(PLAIN, time=nanoseconds))
    assert text in line
    again = own_fields(line, PLAIN.device)[1]["time"]
    assert render_line("test_gemm", dataclasses.replace(PLAIN, time=again)) == line
