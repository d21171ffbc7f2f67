"""What holds of every instruction that can be counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_perfgate.core.analysis.kernels.sass_opcodes import (
    MODIFIERS,
    SINCE,
    closest,
    counted,
    has_instruction,
    matches_opcode,
)

ROOTS = st.sampled_from(sorted(SINCE))
PARTS = st.lists(st.sampled_from(sorted(MODIFIERS)), max_size=5)
OPCODES = st.builds(lambda root, parts: ".".join((root, *parts)), ROOTS, PARTS)
COUNTS = st.dictionaries(OPCODES, st.integers(1, 9), max_size=12)


@given(OPCODES, st.data())
def test_an_ordered_choice_of_modifiers_matches(opcode: str, data: st.DataObject) -> None:
    root, *parts = opcode.split(".")
    chosen = [part for part in parts if data.draw(st.booleans())]
    assert matches_opcode(".".join((root, *chosen)), opcode)
    assert matches_opcode(opcode, opcode)


@given(COUNTS, OPCODES)
def test_more_modifiers_never_count_more(exact: dict[str, int], written: str) -> None:
    parts = written.split(".")
    numbers = [counted(".".join(parts[:end]), exact) for end in range(1, len(parts) + 1)]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] == sum(n for opcode, n in exact.items() if opcode.split(".")[0] == parts[0])


@given(COUNTS, OPCODES, OPCODES)
def test_matching_is_an_order(exact: dict[str, int], one: str, other: str) -> None:
    if matches_opcode(one, other):
        assert counted(one, exact) >= counted(other, exact)
        assert matches_opcode(other, one) == (one == other)


@given(OPCODES)
def test_what_there_is_is_known_and_what_is_proposed_is_known(opcode: str) -> None:
    assert has_instruction(opcode)
    for broken in (opcode + "Q", opcode[1:] + opcode[:1], opcode.lower()):
        assert all(has_instruction(name) or "." in name for name in closest(broken))


@given(st.text(max_size=20))
def test_no_text_breaks_it(text: str) -> None:
    assert isinstance(has_instruction(text), bool)
    assert isinstance(closest(text), tuple)
    assert counted(text, {text: 1}) == 1
