"""Tests of core/limits/scope."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.limits import scope
from pytest_perfgate.core.limits.scope import references_in, render_scope
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import Better
from tests.unit.core.judge.bench import KINDS, limit


def test_the_bare_word_stands_first_and_names_in_their_order() -> None:
    have = (("kernel", "k"), ("opcode", "HMMA"), ("case", "z"))
    assert render_scope(have, KINDS["count"]) == "(HMMA, case=z, kernel=k)"
    assert render_scope((("b", "1"), ("a", "2"))) == "(a=2, b=1)"


def test_a_word_without_a_scope_is_offered_four_of_them() -> None:
    with pytest.raises(PerfgateError) as caught:
        limit("tflops(bwd) >= 5 TFLOPS")
    assert caught.value.fix.count("tflops(") == 4


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("speedup(over=eager) >= 1.2x", [("", "eager")]),
        ("speedup(eager) >= 1.2x", [("", "eager")]),
        ("speedup(case=ours*, over='file:a (1).json') >= 1.2x", [("ours*", "file:a (1).json")]),
        ("geomean(speedup(over=eager)) >= 1.2x", [("", "eager")]),
        ("time <= 5 ms", []),
    ],
)
def test_the_references_that_a_limit_names(text: str, pairs: list[tuple[str, str]]) -> None:
    assert list(references_in(text, KINDS["speedup"])) == pairs


@pytest.mark.parametrize("text", ["worst >= 1", "worst(nothing) >= 1", "worst(geomean) >= 1", "worst(slowdown) <= 3%"])
def test_the_worst_of_nothing_is_refused(text: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        limit(text)
    assert caught.value.code.name == "limit-scope"


@pytest.mark.parametrize("text", ["speedup >= 1.2x", "speedup(case=ours) >= 1.2x", "geomean(speedup) >= 1.2x"])
def test_a_speed_up_over_nothing_is_refused(text: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        limit(text)
    assert (caught.value.code.name, "over=" in caught.value.fix) == ("limit-scope", True)


@pytest.mark.parametrize(
    ("better", "sign", "proposed"),
    [
        (Better.HIGHER, "<=", "change(x) >= -5"),
        (Better.HIGHER, ">=", "change(x) >= 5"),
        (Better.LOWER, ">", "change(x) < 5"),
        (Better.LOWER, "<", "change(x) < 5"),
        (Better.NEITHER, "<=", "change(x) <= 5"),
        (Better.NEITHER, ">=", "change(x) >= 5"),
    ],
)
def test_a_proposed_change_limits_what_gets_worse(better: Better, sign: str, proposed: str) -> None:
    assert scope._worsening(f"change(x) {sign}", 5.0, better) == proposed
