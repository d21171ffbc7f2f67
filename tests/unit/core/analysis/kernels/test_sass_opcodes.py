"""Which instructions a name means, and which names mean none."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.analysis.kernels.sass_opcodes import SINCE, closest, counted, known, matches_opcode, since
from tests.kernels import FILES, disassembly, kernels

WIDE = "LDG.E.128.CONSTANT"


@pytest.mark.parametrize("written", ["LDG", "LDG.E", "LDG.128", "LDG.E.128", "LDG.CONSTANT", "LDG.E.CONSTANT", WIDE])
def test_modifiers_match_in_their_order_and_may_be_left_out(written: str) -> None:
    assert matches_opcode(written, WIDE)


@pytest.mark.parametrize("written", ["LD", "LDGSTS", "LDG.128.E", "LDG.64", "LDG.E.E", "LDG.12", "ldg"])
def test_another_opcode_order_or_width_does_not_match(written: str) -> None:
    assert not matches_opcode(written, WIDE)


def test_every_instruction_of_our_kernels_is_known_and_none_is_newer_than_its_architecture() -> None:
    for name in FILES:
        for kernel in kernels(disassembly(name)):
            number = int(kernel.arch.removeprefix("sm_").rstrip("a"))
            for opcode in set(kernel.code.opcodes):
                assert known(opcode), opcode
                assert since(opcode) <= number, (opcode, kernel.arch)


@pytest.mark.parametrize(
    ("written", "near"),
    [
        ("IF2", "I2F"), ("hmma", "HMMA"), ("FMA", "FFMA"), ("LDG.E.182", "LDG.E.128"), ("LDG.CONSTENT", "LDG.CONSTANT"),
        ("HGMA", "HGMMA"), ("UTMALGD", "UTMALDG"), ("MAM", "MMA"),
    ],
)  # fmt: skip
def test_a_name_that_is_none_has_one_near_it(written: str, near: str) -> None:
    assert not known(written)
    assert closest(written)[0] == near


def test_what_a_file_shows_is_known() -> None:
    assert known("NEWOP.FAST", ["NEWOP.FAST.E"])
    assert not known("NEWOP.FAST")
    assert closest("NEWOP.FSAT", ["NEWOP.FAST"]) == ("NEWOP.FAST",)
    assert closest("QQQQQQQ") == closest("LDG") == ()
    assert known("MMA")
    assert not known("MMA.16816")
    assert known("HGMMA.64x24x16.F32.BF16"), "shapes are told by their form"
    assert len(SINCE) > 250
    assert counted("LDG", {WIDE: 2, "LDG.E": 3, "STG": 7}) == 5
