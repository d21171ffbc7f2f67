from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_perfgate.adapters.stores import baseline_text
from pytest_perfgate.adapters.stores.baseline_text import _yaml_entries, edited, parse_entries
from pytest_perfgate.model.measurement import Baseline, Identity
from pytest_perfgate.model.plan import CaseKey

anything = st.text(max_size=12)
names = st.text(min_size=1, max_size=12)
words = st.text(alphabet="0123456789abcdef", max_size=8)
dates = st.sampled_from(["", "2026-05-02", "2027-01-01"])
times = st.floats(min_value=1e-2, max_value=1e13)


@st.composite
def baselines(draw: st.DrawFn) -> Baseline:
    identity = Identity(
        device="d",
        clocks=draw(anything),
        notes=tuple(draw(st.dictionaries(names, anything, max_size=2)).items()),
        calls=draw(st.sampled_from(["1", "2", "10"])),
    )
    return Baseline(
        key=CaseKey(nodeid="t.py::x"),
        device="d",
        time=draw(times),
        scatter=draw(st.sampled_from([0.0, 0.0123])),
        runs=draw(st.integers(1, 50)),
        detects=draw(st.sampled_from([0.0, 0.123, 3.07])),
        processes=draw(st.sampled_from([0, 1, 12])),
        commit=draw(words),
        who=draw(anything),
        when=draw(dates),
        why=draw(anything),
        expires=draw(dates),
        identity=draw(st.sampled_from([None, identity])),
        environment=draw(st.sampled_from(["", "3f2a91c0d4", "0123456789", "12e4567890"])),
    )


@given(st.dictionaries(names, baselines(), min_size=1, max_size=5))
def test_what_is_written_is_what_is_read_by_both_ways(put: dict[str, Baseline]) -> None:
    text = edited("", put, place="f", device="d")
    quick = parse_entries(text, place="f", device="d")
    whole = _yaml_entries(text, "f", "d")
    assert quick == whole
    assert set(quick) == set(put)
    for name, baseline in put.items():
        fields = quick[name].fields
        assert abs(fields["time"] / baseline.time - 1) < 6e-5 or baseline.time < 1e-1
        assert abs(fields.get("detects", 0.0) - baseline.detects) < 1e-9
        for field in ("commit", "who", "when", "why", "expires", "environment"):
            assert fields.get(field, "") == getattr(baseline, field)
        assert fields.get("identity") == baseline.identity


@given(st.text(alphabet="ab: {}'\"\n#,-&*!|>1us", max_size=60))
def test_the_quick_way_never_disagrees(body: str) -> None:
    text = f"perfgate: 1\nbaselines:\n  'a': {{time: 1us}}\n{body}\n  'z': {{time: 2us}}\n"
    quick = baseline_text.own_entries(text.split("\n"), "f", "d") if _fine(text) else None
    if quick is not None:
        assert quick == _yaml_entries(text, "f", "d")


def _fine(text: str) -> bool:
    try:
        baseline_text.own_entries(text.split("\n"), "f", "d")
    except Exception:
        return False
    return True
