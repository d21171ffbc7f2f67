"""Tests of core/analysis/kernels/sass_mix."""

from __future__ import annotations

import re

import pytest

from pytest_perfgate.core.analysis.kernels.sass_facts import kernels
from pytest_perfgate.core.analysis.kernels.sass_mix import barriers_a_stage, mix
from pytest_perfgate.model.profiles import KernelCode
from tests.kernels import ARCHES, FILES, disassembly

NO_BARRIER = 7
"""What a control word says where it waits for nothing."""

CONSTANT, PRODUCT = "R5,-RZ,RZ,1.875,0", "R5,R6,R7,R8"


def coded(*lines: tuple[str, str]) -> KernelCode:
    opcodes, operands = zip(*lines)
    return KernelCode(opcodes=opcodes, operands=operands, predicates=("",) * len(lines))


def test_a_half_precision_constant_is_counted_as_what_it_is_and_computes_nothing() -> None:
    mixture = mix(coded(("HFMA2.MMA", CONSTANT), ("HFMA2", CONSTANT), ("MOV", "R1,R2"), ("LDG.E", "R1,[R2.64]")))
    assert (mixture.counts["HFMA2"], mixture.counts["MOV"], mixture.exact["HFMA2.MMA"]) == (2, 1, 1)
    assert (mixture.constants, mixture.computing, mixture.compute) == (2, 0, "")
    assert mixture.no_ratio == "no compute"


def test_constants_do_not_outweigh_what_computes() -> None:
    mixture = mix(
        coded(("HFMA2", CONSTANT), ("HFMA2", CONSTANT), ("HFMA2", PRODUCT), ("FFMA", PRODUCT), ("FFMA", PRODUCT))
    )
    assert (mixture.counts["HFMA2"], mixture.computing, mixture.compute) == (3, 3, "FFMA")
    assert mix(coded(("HFMA2", CONSTANT), ("HFMA2", PRODUCT))).computed == "1 HFMA2"


@pytest.mark.parametrize(
    ("opcodes", "types"),
    [
        (["HMMA.16816.F16"], ("fp16_acc16",)),
        (["HMMA.16816.F16", "HMMA.16816.F32"], ("fp16", "bf16", "tf32", "fp16_acc16")),
        (["IMMA.16832.S8.S8"], ("int8", "uint8", "int4")),
        (["MOV"], ()),
    ],
)
def test_the_types_that_instructions_compute_in(opcodes: list[str], types: tuple[str, ...]) -> None:
    assert mix(coded(*((opcode, PRODUCT) for opcode in opcodes))).types == types


def test_a_bulk_copy_to_global_memory_is_no_load() -> None:
    both = mix(coded(("UBLKCP.S.G", "[UR4],[UR6],UR8"), ("UBLKCP.G.S", "[UR4],[UR6],UR8"), ("UTMALDG.2D", "[UR4]")))
    assert (both.counts["UBLKCP"], both.bulk, both.loads) == (2, 2, 2)
    stored = mix(coded(("UBLKCP.G.S", "[UR4],[UR6],UR8"), ("LDG.E", "R1,[R2.64]"), ("FFMA", PRODUCT)))
    assert (stored.loads, stored.ratio) == (1, 1.0)


REGISTER = re.compile(r"\bR(\d+)(?:\.(64))?")
SLOW = ("LDG", "LDS", "S2R", "MUFU")
FLOW = ("BRA", "EXIT", "CALL", "RET", "BSYNC", "BSSY", "JMP", "BRX", "WARPSYNC")


def test_the_example_of_sm_86() -> None:
    """ISETP before ``@P0 EXIT``: the predicate needs thirteen cycles."""
    bits = 0x000FDA0003F06270 >> 41 & 0x1FFFFF
    assert (bits & 0xF, write_barrier(bits), bits >> 8 & 7, waits(bits)) == (13, NO_BARRIER, NO_BARRIER, 0)


def write_barrier(bits: int) -> int:
    return bits >> 5 & 7


def waits(bits: int) -> int:
    """The barriers 0 to 5 that are waited for, one bit each."""
    return bits >> 11 & 0x3F


def root(code: KernelCode, row: int) -> str:
    return code.opcodes[row].partition(".")[0]


def written(code: KernelCode, row: int) -> set[int]:
    first = code.operands[row].partition(",")[0]
    match = REGISTER.fullmatch(first)
    if not match:
        return set()
    width = next((int(part) // 32 for part in code.opcodes[row].split(".") if part in {"64", "128"}), 1)
    return set(range(int(match[1]), int(match[1]) + width))


def read(code: KernelCode, row: int) -> set[int]:
    rest = code.operands[row].partition(",")[2]
    return {int(n) + extra for n, wide in REGISTER.findall(rest) for extra in ((0, 1) if wide else (0,))}


def signal(code: KernelCode, row: int) -> tuple[int, int]:
    """(row, barrier) that tells of a result; loads of one kind come back in order, so the last of a group may tell."""
    alike = (r for r in (row, *straight(code, row)) if root(code, r) == root(code, row))
    signals = ((r, write_barrier(code.controls[r])) for r in alike)
    return next((pair for pair in signals if pair[1] != NO_BARRIER), (row, NO_BARRIER))


def straight(code: KernelCode, row: int):
    """The rows after one until control flow may come or go."""
    for after in range(row + 1, len(code)):
        yield after
        if root(code, after) in FLOW:
            return


@pytest.mark.no_cover
@pytest.mark.parametrize("arch", ARCHES)
def test_a_dependent_multiply_add_comes_four_cycles_later_at_the_least(arch: str) -> None:
    nearest = []
    for name in (file for file in FILES if f".{arch}." in file):
        for facts in kernels(disassembly(name)):
            code = facts.code
            for row in (r for r in range(len(code)) if root(code, r) == "FFMA"):
                cycles, target = code.controls[row] & 0xF, written(code, row)
                for after in straight(code, row):
                    if root(code, after) == "FFMA" and target & read(code, after):
                        nearest.append(cycles)
                    if target & (read(code, after) | written(code, after)):
                        break
                    cycles += max(1, code.controls[after] & 0xF)
    assert len(nearest) > 20
    assert min(nearest) == 4


@pytest.mark.parametrize("name", FILES)
def test_every_slow_result_is_waited_for_before_its_first_use(name: str) -> None:
    checked = 0
    for facts in kernels(disassembly(name)):
        code = facts.code
        for row in (r for r in range(len(code)) if root(code, r) in SLOW):
            (signalled, barrier), target = signal(code, row), written(code, row)
            if not target:
                continue
            assert barrier != NO_BARRIER, f"{code.opcodes[row]} in row {row} signals nothing"
            for after in straight(code, row):
                if after > signalled and waits(code.controls[after]) >> barrier & 1:
                    checked += 1
                    break
                used = read(code, after) | written(code, after)
                assert not target & used, f"row {after} uses row {row} without waiting"
    assert checked


@pytest.mark.parametrize("name", FILES)
def test_every_instruction_has_its_control_word(name: str) -> None:
    for facts in kernels(disassembly(name)):
        assert len(facts.code.controls) == len(facts.code)
        assert facts.code.opcodes[-1] != "NOP"


@pytest.mark.parametrize(
    ("loop", "each"),
    [
        ("LDG STS BAR LDS FFMA BAR", 2),
        ("LDG STS BAR LDS FFMA BAR " * 4, 2),
        ("STS LDS FFMA BAR " * 3, 1),
        ("STS BAR BAR LDS BAR FFMA BAR", 4),
        ("LDS FFMA BAR LDS BAR STS", 2),
        ("FFMA BAR BAR BAR", 3),
        ("FFMA", 0),
    ],
)
def test_barriers_are_held_against_the_times_that_shared_memory_is_filled(loop: str, each: float) -> None:
    code = coded(*((name.replace("BAR", "BAR.SYNC.DEFER_BLOCKING"), "") for name in loop.split()))
    assert barriers_a_stage(code, range(len(code))) == each
