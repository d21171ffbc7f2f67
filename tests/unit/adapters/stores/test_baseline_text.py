"""Lines as we write them: whatever a line can say is read by itself, and none needs the slow reader."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from pytest_perfgate.adapters.stores.baseline_line import parse_fields, render_line
from pytest_perfgate.adapters.stores.baseline_text import own_nodes, parse_entries
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline, Identity
from pytest_perfgate.model.metric import Figure
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import Dimension, rounded

PLAIN = Baseline(key=CaseKey(nodeid="tests/test_k.py::test_gemm"), device="NVIDIA-H200", time=1e6)
FIGURES = (
    Figure(name="cliff_distance", value=-1024, dimension=Dimension.BYTES),
    Figure(name="occupancy_limit", value=0.29, dimension=Dimension.FRACTION),
    Figure(
        name="overlap", value=0.83123, dimension=Dimension.FRACTION, labels=(("rank", "0"), ("stage", "stage2")),
        scatter=0.0021, runs=3,
    ),
    Figure(name="peak_memory", value=81312345.0, dimension=Dimension.BYTES, scatter=0.004, runs=2),
    Figure(name="registers", value=128, dimension=Dimension.COUNT),
    Figure(name="smem", value=98304, dimension=Dimension.BYTES, labels=(("kernel", 'void add<int, 4>(int*) "it\'s"'),)),
    Figure(name="timer", value=7.25, dimension=Dimension.COUNT),
)  # fmt: skip
ELSEWHERE = {"key", "device", "local", "place", "surroundings"}
"""What the place of a line tells, and the file of its surroundings."""


def fields_of(line: str) -> dict[str, Any]:
    return parse_fields(own_nodes(line)[1], "place", PLAIN.device)


@pytest.mark.parametrize("space", ["", " "], ids=["as we write it", "as YAML"])
def test_a_line_of_the_former_spelling_is_read(space: str) -> None:
    text = f"perfgate: 1\nbaselines:\n  't': {{{{{space}time: 1us, {{}}: 3, {{}}: 20%}}}}\n"
    former, today = (
        parse_entries(text.format(*names), place="a", device="h")["t"].fields
        for names in (("sittings", "blind"), ("runs", "detects"))
    )
    assert former == today
    assert (today["runs"], today["detects"]) == (3, 0.2)
    assert (own_nodes(text.format("sittings", "blind").splitlines()[2]) is None) is bool(space)


@pytest.mark.parametrize("name", ["rounds", "detections"])
def test_a_figure_of_an_older_line_is_no_typo_of_a_field_that_was_renamed_later(name: str) -> None:
    entry = parse_entries(f"perfgate: 1\nbaselines:\n  't': {{{name}: 12, blind: 20%}}\n", place="a", device="h")["t"]
    assert [figure.title for figure in entry.fields["figures"]] == [name]
    assert entry.fields["detects"] == 0.2


def test_a_line_with_all_that_it_can_say_is_read_by_itself() -> None:
    parts = {field.name: "a word" for field in dataclasses.fields(Identity) if field.name not in {"notes", "calls"}}
    whole = dataclasses.replace(
        PLAIN, time=2e6, figures=FIGURES, scatter=0.01, runs=3, detects=0.2, processes=1, anchor=1.5e6, anchored="2026-01-31", commit="a1b2c3d+dirty", who="A. F.",
        when="2026-05-02", why="TMA loads", expires="2027-01-31", environment="3f2a91c0d4",
        counted="2026-06-01T10:00:00", limited=True, identity=Identity(**parts, calls="10"),
    )  # fmt: skip
    unstated = {field.name for field in dataclasses.fields(Baseline)} - ELSEWHERE
    assert {name for name in unstated if getattr(whole, name) == getattr(PLAIN, name)} == set(), "all is said"
    line = render_line("it's", whole)
    assert own_nodes(line)[0] == "it's"
    assert dataclasses.replace(PLAIN, **fields_of(line)) == whole
    assert own_nodes(render_line("test_gemm", PLAIN)) == ("test_gemm", {"time": "1.0000ms"})


@pytest.mark.parametrize(
    "line",
    [
        "  'a': {time: 1us, registers: 128, registers: 130}",
        "  'a': {time: 1us, }",
        "  'a': {time: 1us, why: two words # and a comment}",
        "  'a': {time: 1us, why: 'text'}",
        "  'a': {time: 1us, identity: {clocks: off, clocks: on}}",
        "  'a': {time: &x 1us}",
        "  'a': {time: 1us",
        "  a: {time:1us}",
    ],
)
def test_a_line_of_another_form_is_none_of_ours(line: str) -> None:
    assert own_nodes(line) is None


@pytest.mark.parametrize("why", ['say "now"', "a\\b", "two\nlines", "{a: b}, [c]", "näh # no comment", "it's \u2028"])
def test_any_reason_is_read_by_itself(why: str) -> None:
    identity = Identity(device="h", notes=((why, why),))
    line = dataclasses.replace(PLAIN, why=why, identity=identity)
    assert fields_of(render_line(why, line)) == {"time": 1e6, "why": why, "identity": identity}
    assert own_nodes(render_line(why, line))[0] == why


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [(999_999, "1.0000ms"), (999_994, "999.99us"), (999.996, "1.0000us"), (0.5, "0.50000ns"), (1e9, "1.0000s")],
)
def test_a_time_that_is_read_and_written_again_stays(nanoseconds: float, text: str) -> None:
    line = render_line("test_gemm", dataclasses.replace(PLAIN, time=nanoseconds))
    assert text in line
    again = fields_of(line)["time"]
    assert render_line("test_gemm", dataclasses.replace(PLAIN, time=again)) == line


def test_figures_stand_sorted_behind_the_time_and_read_back() -> None:
    line = render_line("test_gemm", dataclasses.replace(PLAIN, time=412.31e3, figures=FIGURES[::-1], commit="a1b2c3d"))
    head = "{time: 412.31us, cliff_distance: -1KiB, occupancy_limit: 29%, 'overlap(rank=0, stage=stage2)': 83.123% +- "
    assert head in line
    assert "timer(): 7.25" in line, "a name that is nearly one of ours is told from it"
    assert fields_of(line)["figures"] == FIGURES


@pytest.mark.parametrize("time", [0.0, 1e6])
def test_both_readers_see_the_same_figures(time: float) -> None:
    line = render_line("test_gemm", dataclasses.replace(PLAIN, time=time, figures=FIGURES))
    fields = fields_of(line)
    by_hand = f"perfgate: 1\nbaselines:\n{line.replace('{', '{ ', 1)}\n"
    entry = parse_entries(by_hand, place="x", device=PLAIN.device)["test_gemm"]
    assert entry.fields == fields


@pytest.mark.parametrize(
    ("text", "code"),
    [("{who: me}", "baseline-value"), ("{registers: 1, 'registers()': 2}", "baseline-duplicate")],
)
def test_a_line_that_accepts_nothing_or_twice_is_refused(text: str, code: str) -> None:
    with pytest.raises(PerfgateError) as error:
        parse_entries(f"perfgate: 1\nbaselines:\n  'a': {text}\n", place="x", device="d")
    assert error.value.code.name == code


@pytest.mark.parametrize("dimension", [d for d in Dimension if d is not Dimension.TEXT])
@pytest.mark.parametrize("number", [0.0, 1.0, 0.5, 123456.789, 98304.0, 1.23456789e12, 3.3e-7])
def test_a_rounded_figure_reads_back_as_it_was_written(number: float, dimension: Dimension) -> None:
    value = rounded(number, dimension)
    read = Dimension.COUNT if dimension is Dimension.PLAIN else dimension
    line = render_line("a", dataclasses.replace(PLAIN, figures=(Figure(name="x", value=value, dimension=dimension),)))
    assert fields_of(line)["figures"] == (Figure(name="x", value=value, dimension=read),)
    assert value == pytest.approx(number, rel=1e-4)


def test_a_case_may_have_its_fields_below_its_name() -> None:
    text = "perfgate: 1\nbaselines:\n  'a':\n    time: 1us\n    why: >\n      two\n      lines\n  'b': {time: 2us}\n"
    fields = {name: entry.fields for name, entry in parse_entries(text, place="p", device="d").items()}
    assert fields == {"a": {"time": 1000.0, "why": "two lines\n"}, "b": {"time": 2000.0}}


@pytest.mark.parametrize("number", ["1e999", "9" * 400])
@pytest.mark.parametrize("field", ["scatter", "detects"])
def test_a_share_is_finite(field: str, number: str) -> None:
    with pytest.raises(PerfgateError) as error:
        parse_entries(f"perfgate: 1\nbaselines:\n  'a': {{time: 1us, {field}: {number}%}}\n", place="p", device="d")
    assert error.value.code.name == "baseline-value"
