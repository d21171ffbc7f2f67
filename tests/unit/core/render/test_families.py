"""Tests of core/render/families."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.render.families import Pivot, family_lines, family_sections, parse_pivot
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Reference
from pytest_perfgate.model.metric import Picture, Section, Table
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.verdict import CaseReport
from tests.unit.core.judge.bench import CONTEXT, limit, measured


def case(name: str, time: float, *, over: float = 0.0, bound: str = "1.2x", **params: object) -> CaseReport:
    """One call of ``test_gemm``; ``over`` is what the reference ``eager`` took beside it."""
    values = tuple((key, str(text)) for key, text in params.items())
    nodeid = f"tests/b.py::test_gemm[{'-'.join(text for _, text in values)}]"
    references = (Reference(over="eager", ours=(time,) * 3, theirs=(over,) * 3),) if over else ()
    key = CaseKey(nodeid=nodeid, name=name)
    measurement = measured(time, key=key, references=references, params=values)
    limits = (limit(f"speedup(over=eager) >= {bound}"),) if over else (limit("time <= 1s"),)
    return judge(measurement, limits, baseline=None, context=CONTEXT)


SIZES = [
    one
    for n, ratio in ((1000, 1.35), (64, 1.25))
    for one in (case("ours", n * 1e3, over=n * ratio * 1e3, n=n), case("eager", n * ratio * 1e3, n=n))
]

GRID = [
    case("ours", n * size * 1e3, over=n * size * ratio * 1e3, n=n, dtype=dtype)
    for dtype, size, ratio in (("f4", 1, 1.3), ("f8", 2, 1.1))
    for n in (64, 128)
]


def tables(cases: list[CaseReport], *pivots: str) -> list[Table]:
    sections = [one for one in family_sections(cases, pivots) if isinstance(one, Section)]
    return [block for section in sections for block in section.blocks if isinstance(block, Table)]


def test_sizes_by_implementations_the_smallest_first() -> None:
    (table,) = tables(SIZES)
    assert [column.name for column in table.columns] == ["n", "ours", "eager"]
    assert table.rows == (("64", "64 µs, 1.25x", "80 µs"), ("1000", "1 ms, 1.35x", "1.35 ms"))
    assert table.note == "ours over eager: geomean 1.3x, worst 1.25x at n=64"


def test_what_misses_its_limit_is_marked() -> None:
    (table,) = tables([case("ours", 1e6, over=1.1e6, n=1), case("eager", 1.1e6, n=1)])
    assert table.rows == (("1", "1 ms, 1.1x, BROKEN", "1.1 ms"),)


def test_a_picture_has_a_line_an_implementation() -> None:
    (section,) = family_sections(SIZES)
    assert isinstance(section, Section)
    (picture,) = [block for block in section.blocks if isinstance(block, Picture)]
    assert (picture.svg.count("<polyline"), picture.svg.count("<circle")) == (2, 4)
    (bare,) = family_sections(SIZES, drawn=False)
    assert isinstance(bare, Section)
    assert len(bare.blocks) == 1


def test_names_are_places_where_they_are_no_sizes() -> None:
    (section,) = family_sections(GRID)
    assert isinstance(section, Section)
    svg = next(block.svg for block in section.blocks if isinstance(block, Picture))
    assert "64, f4" in svg
    assert "128, f8" in svg


@pytest.mark.parametrize("bound", [float("inf"), float("nan")])
def test_a_size_without_end_is_a_name(bound: float) -> None:
    (section,) = family_sections([case("ours", 1e3, over=2e3, n=n) for n in (1.0, bound)])
    assert isinstance(section, Section)
    (picture,) = [block for block in section.blocks if isinstance(block, Picture)]
    assert str(bound) in picture.svg


def test_two_parameters_against_each_other() -> None:
    table = tables(GRID, "n x dtype")[1]
    assert [column.name for column in table.columns] == ["n", "dtype=f4", "dtype=f8"]
    assert table.rows == (("64", "1.3x", "1.1x, BROKEN"), ("128", "1.3x", "1.1x, BROKEN"))
    assert table.note.startswith("geomean 1.2x, worst 1.1x at n=64, dtype=f8")
    times = tables(GRID, "dtype x n of time")[1]
    assert times.rows == (("f4", "64 µs", "128 µs"), ("f8", "128 µs, BROKEN", "256 µs, BROKEN"))
    assert times.note.endswith("worst 256 µs at n=128, dtype=f8")


def test_calls_are_a_parameter_too() -> None:
    table = tables(SIZES, "n x call of time")[1]
    assert table.rows == (("64", "64 µs", "80 µs"), ("1000", "1 ms", "1.35 ms"))
    assert table.note == ""


def test_one_table_for_each_value_of_the_others() -> None:
    cases = [case("ours", 1e6 * m * n, m=m, n=n, k=k) for m in (1, 2) for n in (1, 2) for k in (1, 2)]
    listed = tables(cases, "m x n")
    assert [table.title for table in listed] == ["k=1, call=ours", "k=2, call=ours"]
    assert [len(table.rows) for table in listed] == [2, 2]


def test_a_hole_is_a_hole() -> None:
    (table,) = tables(GRID[:3], "n x dtype of time")[1:]
    assert table.rows == (("64", "64 µs", "128 µs, BROKEN"), ("128", "128 µs", None))


def test_families_without_these_parameters_or_references_are_left_out() -> None:
    assert tables([case("", 1e6, n=1), case("", 2e6, n=2)], "m x n") == []
    assert family_sections([]) == ()
    lost = replace(SIZES[0], measurement=None)
    assert family_sections([lost]) == ()


def test_lines_for_a_terminal_hold_no_picture() -> None:
    lines = family_lines(SIZES, ())
    assert lines[0] == "tests/b.py::test_gemm"
    assert not any("svg" in text for text in lines)
    assert lines[-1].strip() == "ours over eager: geomean 1.3x, worst 1.25x at n=64"


@pytest.mark.parametrize(
    ("text", "pivot"),
    [
        ("n x dtype", Pivot(rows="n", columns="dtype")),
        ("n,dtype", Pivot(rows="n", columns="dtype")),
        (" n × call of mfu ", Pivot(rows="n", columns="call", metric="mfu")),
        ("x x xs", Pivot(rows="x", columns="xs")),
    ],
)
def test_pairs_read(text: str, pivot: Pivot) -> None:
    assert parse_pivot(text) == pivot


@pytest.mark.parametrize("text", ["", "n", "n x n", "n x dtype x m", "n x dtype of", "n dtype"])
def test_pairs_that_do_not_read_are_refused(text: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        parse_pivot(text)
    assert caught.value.code.name == "option-wrong"


def test_a_pair_with_a_parameter_that_no_test_has_is_told() -> None:
    lines = family_lines(GRID, ("n x dtyp", "n x call"))
    assert [line for line in lines if "no test here" in line] == [
        "no table 'n x dtyp': no test here has a parameter 'dtyp'; did you mean 'dtype'?"
    ]
    assert not [line for line in family_lines([case("ours", 1e3)], ("n x dtype",)) if "no test" in line]
