from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.limits.scope import scopes_of
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Limit, Operator
from pytest_perfgate.model.values import Dimension
from tests.unit.core.judge.bench import KINDS
from tests.unit.core.limits.spelled import explicit_selection

AWKWARD = st.sampled_from("aZ90_ ,\"'\\()<>[]{}=*?.:%|é漢\n\t")
TEXTS = st.text(AWKWARD, min_size=1, max_size=16).filter(lambda text: text.strip())
NUMBERS = st.floats(min_value=0, max_value=1e15, allow_nan=False) | st.integers(0, 10**6).map(float)

TAILS = {
    "q": st.integers(1, 9999).map(lambda share: f"{share / 100:g}%"),
    "stat": st.just("min"),
}


@st.composite
def limits(draw: st.DrawFn) -> Limit:
    kind = draw(
        st.sampled_from([k for k in dict.fromkeys(KINDS.values()) if k.name not in {"geomean", "worst", "metric"}])
    )
    names = draw(st.sets(st.sampled_from(scopes_of(kind)), max_size=3))
    names |= {"over"} if kind.name == "speedup" else set()
    names -= {"q", "stat"} if kind.name == "time" and {"q", "stat"} <= names else set()
    labels = tuple(sorted((name, draw(TAILS.get(name, TEXTS))) for name in names))
    dimension = kind.dimension
    exact = dimension in {Dimension.COUNT, Dimension.BYTES, Dimension.PLAIN}
    operators = [op for op in Operator if exact or op is not Operator.EQUAL]
    if kind.name == "slowdown":
        operators = [Operator.AT_MOST, Operator.LESS]
    bound = draw(st.floats(0, 1) if dimension is Dimension.FRACTION else NUMBERS) or 0.5
    return Limit(
        metric=kind.name,
        labels=labels,
        operator=draw(st.sampled_from(operators)),
        bound=bound,
        dimension=dimension,
        text="",
    )


@given(limits())
def test_what_is_rendered_reads_back_as_the_same_limit(limit: Limit) -> None:
    for kinds in (KINDS, None):
        read = parse_limit(explicit_selection(limit, kinds), kinds=KINDS)
        assert (read.metric, read.operator, read.dimension) == (limit.metric, limit.operator, limit.dimension)
        assert read.labels == limit.labels
        assert read.bound == limit.bound


@given(st.text(AWKWARD, max_size=40) | st.builds("{}({}) {} {}{}".format, st.sampled_from(sorted(KINDS)), st.text(AWKWARD, max_size=8),
       st.sampled_from(["<=", ">=", "==", "=<"]), st.text("0123456789.,e-+", max_size=6), st.text("%unmsxKiB/ <=,", max_size=4)))  # fmt: skip
def test_any_text_is_a_limit_or_one_clear_error(text: str) -> None:
    try:
        read = parse_limit(text, kinds=KINDS)
    except PerfgateError as refused:
        error = refused
    else:
        again = parse_limit(explicit_selection(read, KINDS), kinds=KINDS, own=bool)
        assert (again.key, again.bound, again.operator) == (read.key, read.bound, read.operator)
        return
    assert error.code.name.startswith("limit-")
    assert "^" in error.what
