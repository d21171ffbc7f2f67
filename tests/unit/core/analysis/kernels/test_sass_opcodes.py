"""Which instructions a name means, and which names mean none."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.analysis.kernels.sass_opcodes import (
    SINCE,
    closest,
    counted,
    has_instruction,
    matches_opcode,
    parse_log,
    since,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import Resources
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
                assert has_instruction(opcode), opcode
                assert since(opcode) <= number, (opcode, kernel.arch)


@pytest.mark.parametrize(
    ("written", "near"),
    [
        ("IF2", "I2F"), ("hmma", "HMMA"), ("FMA", "FFMA"), ("LDG.E.182", "LDG.E.128"), ("LDG.CONSTENT", "LDG.CONSTANT"),
        ("HGMA", "HGMMA"), ("UTMALGD", "UTMALDG"), ("MAM", "MMA"),
    ],
)  # fmt: skip
def test_a_name_that_is_none_has_one_near_it(written: str, near: str) -> None:
    assert not has_instruction(written)
    assert closest(written)[0] == near


def test_what_a_file_shows_is_known() -> None:
    assert has_instruction("NEWOP.FAST", ["NEWOP.FAST.E"])
    assert not has_instruction("NEWOP.FAST")
    assert closest("NEWOP.FSAT", ["NEWOP.FAST"]) == ("NEWOP.FAST",)
    assert closest("QQQQQQQ") == closest("LDG") == ()
    assert has_instruction("MMA")
    assert not has_instruction("MMA.16816")
    assert has_instruction("HGMMA.64x24x16.F32.BF16"), "shapes are told by their form"
    assert len(SINCE) > 250
    assert counted("LDG", {WIDE: 2, "LDG.E": 3, "STG": 7}) == 5


LOG = """[ 50%] Building k.o
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z2k1Pfi' for 'sm_90'
ptxas info    : Function properties for _Z2k1Pfi
    256 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for _Z6helperfi
    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 38 registers, used 1 barriers, 1024+16 bytes smem, 364 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Compile time = 3.514 ms
"""


def test_a_log_says_what_a_kernel_takes_and_not_what_it_calls() -> None:
    taken = Resources(registers=38, shared=1024, stack=256, source="ptxas")
    assert parse_log(LOG * 2, "build.log") == (("_Z2k1Pfi", "sm_90", taken),)
    assert [arch for _, arch, _ in parse_log(LOG + LOG.replace("sm_90", "sm_90a"), "")] == ["sm_90", "sm_90a"]


@pytest.mark.parametrize("without", ["Used", "stack frame"])
def test_a_log_of_two_compilers_at_once_or_cut_short_is_refused(without: str) -> None:
    lines = [line for line in LOG.splitlines(keepends=True) if without not in line]
    for log in ("".join(lines), "".join(lines) * 2):
        with pytest.raises(PerfgateError) as error:
            parse_log(log, "build.log")
        assert error.value.code.name == "kernel-broken"
