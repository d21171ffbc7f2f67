from __future__ import annotations

import re

import pytest

from pytest_perfgate.model.metric import Absent, Column, Interval, Metric, MetricSet, labels
from pytest_perfgate.model.values import Dimension


def overlap(number: float, **scope: object) -> Metric:
    return Metric(name="overlap", value=number, dimension=Dimension.FRACTION, labels=labels(**scope))


PARTS = MetricSet(
    metrics=(
        overlap(0.9, stage="stage2_f", rank=0),
        overlap(0.5, stage="stage2_f", rank=1),
        overlap(0.7, stage="stage2_f"),
        overlap(0.2, stage="stage4", rank=0),
        overlap(0.6),
    )
)


def test_an_aggregate_wins_over_its_parts() -> None:
    assert [m.value for m in PARTS.find("overlap", labels(stage="stage2_f"))] == [0.7]
    assert [m.value for m in PARTS.find("overlap")] == [0.6]


def test_without_an_aggregate_every_part_counts() -> None:
    assert [m.value for m in PARTS.find("overlap", labels(stage="stage4"))] == [0.2]
    assert [m.value for m in PARTS.find("overlap", labels(stage="stage2_f", rank="*"))] == [0.9, 0.5]


def test_a_bare_stage_matches_its_phases_and_globs_match() -> None:
    assert [m.value for m in PARTS.find("overlap", labels(stage="stage2"))] == [0.7]
    assert [m.value for m in PARTS.find("overlap", labels(stage="stage*", rank=0))] == [0.9, 0.2]


def test_a_scope_that_matches_nothing_finds_nothing() -> None:
    assert PARTS.find("overlap", labels(stage="stage9")) == ()
    assert PARTS.find("idle") == ()


def test_sets_join_and_remember_what_is_absent() -> None:
    more = MetricSet(absent=(Absent(name="idle", why="no GPU in this trace"),))
    joined = PARTS | more
    assert joined.names() == ("overlap",)
    assert joined.missing("idle").why == "no GPU in this trace"
    assert joined.missing("overlap") is None


def test_what_nothing_has_is_absent_once_for_each_reason() -> None:
    rows = [Absent(name=name, labels=labels(kernel=f"k{n}"), why=why) for n in range(3) for name, why in PAIRS]
    have = Metric(name="dram", value=0.5, dimension=Dimension.FRACTION, labels=labels(kernel="k9"))
    absent = MetricSet(metrics=(have,), absent=tuple(rows)).absent_once()
    assert [(one.name, one.why, one.labels) for one in absent if one.name == "sm"] == [("sm", "a", ()), ("sm", "b", ())]
    assert [one.labels for one in absent if one.name == "dram"] == [labels(kernel=f"k{n}") for n in range(3)]


PAIRS = (("sm", "a"), ("sm", "b"), ("dram", "a"))


def test_bounds_fall_back_to_the_value() -> None:
    assert (overlap(0.5).low, overlap(0.5).high) == (0.5, 0.5)
    sure = Metric(name="time", value=5.0, dimension=Dimension.TIME, interval=Interval(low=4.0, high=7.0))
    assert (sure.low, sure.high) == (4.0, 7.0)
    assert sure.interval.holds(4.0)
    assert not sure.interval.holds(8.0)


def test_a_header_names_columns_their_dimensions_and_digits() -> None:
    kernel, share = Column.header("kernel, demangled | time / roof: fraction 3", absent="-")
    assert kernel == Column(name="kernel, demangled", absent="-")
    assert share == Column(name="time / roof", dimension=Dimension.FRACTION, digits=3, absent="-")
    assert Column.header("calls: count") == (Column(name="calls", dimension=Dimension.COUNT),)


@pytest.mark.parametrize("part", ["b: cuont", "b: time ms", "b:time", "b|c", " b", "b: count 2 3"])
def test_a_slip_in_a_header_is_an_error_that_shows_it(part: str) -> None:
    """A lost blank gave a table one column less, and its last cells were left out."""
    with pytest.raises(ValueError, match=re.escape(f"'{part}' in a header is no NAME")):
        Column.header(f"a | {part} | d")
