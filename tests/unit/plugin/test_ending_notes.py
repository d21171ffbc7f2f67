"""What a note on the suite says of many names."""

from __future__ import annotations

from pytest_perfgate.model.plan import Effect
from pytest_perfgate.model.verdict import SuiteNote
from pytest_perfgate.plugin.ending import text_of


def test_a_note_names_twenty_and_counts_the_rest() -> None:
    few, many = (
        SuiteNote(kind="dropped", effect=Effect.WARN, text="gone", names=tuple(map(str, range(count))))
        for count in (20, 60)
    )
    said = SuiteNote(kind="geomean", effect=Effect.WARN, text="undecided: t.py::test_a: +3 %", names=("t.py::test_a",))
    assert text_of(said) == said.text, "a name once"
    assert text_of(few).splitlines() == ["gone", *(f"  {at}" for at in range(20))]
    assert text_of(many).splitlines() == [*text_of(few).splitlines(), "  ... and 40 more"]
