from __future__ import annotations

from pytest_perfgate.model.values import LazySequence as Later


def test_members_are_made_when_asked_for_and_once() -> None:
    made = []
    later = Later(lambda: made.append("made") or ["a", "b"])
    assert made == []
    assert (list(later), later[0], later[-1], len(later), "b" in later) == (["a", "b"], "a", "b", 2, True)
    assert made == ["made"]
