from __future__ import annotations

import pytest

from pytest_perfgate.adapters.stores.sittings import (
    Known,
    Looked,
    by_run,
    metrics_text,
    moment_at,
    parse_facts,
    parse_metrics,
    sittings_of,
    words_of,
)
from pytest_perfgate.model.measurement import Sitting
from tests.histories import KEY, METRICS, sitting

KNOWN = Known({1: ("r", "2026-06-01", "c0ffee", "main")}, {1: "usual", 2: "passed", 3: ""}, {3: (("driver", "580"),)})
ROW = (1, 5.0, 3, 0.1, 1.5e9, 1, 2, 3, 3, 3)


def test_a_row_is_the_sitting_that_its_fields_would_make() -> None:
    (line,) = sittings_of([ROW], "d", KEY, KNOWN)
    assert line == Sitting(
        key=KEY, device="d", time=5.0, when="2026-06-01", commit="c0ffee", branch="main", processes=3, scatter=0.1,
        clock_hz=1.5e9, identity="usual", run="r", outcome="passed", facts=(("driver", "580"),),
    )  # fmt: skip
    assert sittings_of([], "d", KEY, KNOWN) == []
    with pytest.raises(AttributeError):
        line.time = 6.0


@pytest.mark.parametrize(
    ("at", "cell"),
    [(1, "5"), (1, float("inf")), (1, 0.0), (1, -1.0), (2, None), (3, float("nan")), (4, "x"), (0, 9), (5, 9)],
)
def test_a_cell_that_nobody_wrote_is_refused(at: int, cell: object) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        sittings_of([ROW, (*ROW[:at], cell, *ROW[at + 1 :])], "d", KEY, KNOWN)


def test_what_stands_under_a_number_is_read_once() -> None:
    asked: list[int] = []
    looked = Looked(lambda number: asked.append(number) or number * 2)
    assert [looked[2], looked[2], looked[3]] == [4, 4, 6]
    assert asked == [2, 3]


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [("2026-06-01T00:00:00+00:00", 1780272000), ("2026-06-01T00:00:00Z", 1780272000), ("2026-06-01", 1780272000),
     ("2026-06-01T02:00:00+02:00", 1780272000), ("", 0), ("yesterday", 0)],
)  # fmt: skip
def test_runs_are_put_in_order_by_their_moment(moment: str, seconds: float) -> None:
    assert moment_at(moment) == seconds


def test_figures_and_facts_come_back_as_they_were() -> None:
    assert parse_metrics(metrics_text(METRICS)) == METRICS
    facts = (("driver", "580"), ("µ", '"'))
    assert parse_facts(words_of(sitting(1.0, facts=facts))[4]) == facts
    assert parse_facts(words_of(sitting(1.0))[4]) == ()


@pytest.mark.parametrize(
    "text", ["{", "[[1]]", '[["mfu", "x", "fraction", {}]]', '[["mfu", 1, "none", {}]]', '[["t", 1, "time", {}, 2]]']
)
def test_figures_that_nobody_wrote_are_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)):
        parse_metrics(text)


@pytest.mark.parametrize("text", ["0", "[]", '"x"', "{", "null"])
def test_facts_that_nobody_wrote_are_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        parse_facts(text)
    with pytest.raises((ValueError, TypeError)):
        parse_metrics(f'[["mfu", 1, "fraction", {text}]]')


def test_sittings_stand_by_their_run() -> None:
    mixed = [sitting(1.0, run="b"), sitting(2.0, run=""), sitting(3.0, run="b")]
    assert {run: [s.time for s in some] for run, some in by_run(mixed)} == {
        "b": [1.0, 3.0], "2026-06-01T00:00:02+00:00 c0ffee": [2.0],
    }  # fmt: skip
