"""Counts are those of the disassembler, whatever an instruction is used for."""

from __future__ import annotations

from pytest_perfgate.core.analysis.sass.mix import mix
from pytest_perfgate.model.profiles import KernelCode

CONSTANT, PRODUCT = "R5,-RZ,RZ,1.875,0", "R5,R6,R7,R8"


def coded(*lines: tuple[str, str]) -> KernelCode:
    opcodes, operands = zip(*lines)
    return KernelCode(opcodes=opcodes, operands=operands, predicates=("",) * len(lines))


def test_a_half_precision_constant_is_counted_as_what_it_is_and_computes_nothing() -> None:
    seen = mix(coded(("HFMA2.MMA", CONSTANT), ("HFMA2", CONSTANT), ("MOV", "R1,R2"), ("LDG.E", "R1,[R2.64]")))
    assert (seen.counts["HFMA2"], seen.counts["MOV"], seen.exact["HFMA2.MMA"]) == (2, 1, 1)
    assert (seen.constants, seen.computing, seen.compute) == (2, 0, "")
    assert seen.no_ratio == "no compute"


def test_constants_do_not_outweigh_what_computes() -> None:
    seen = mix(
        coded(("HFMA2", CONSTANT), ("HFMA2", CONSTANT), ("HFMA2", PRODUCT), ("FFMA", PRODUCT), ("FFMA", PRODUCT))
    )
    assert (seen.counts["HFMA2"], seen.computing, seen.compute) == (3, 3, "FFMA")
    assert mix(coded(("HFMA2", CONSTANT), ("HFMA2", PRODUCT))).computed == "1 HFMA2"


def test_a_bulk_copy_to_global_memory_is_no_load() -> None:
    both = mix(coded(("UBLKCP.S.G", "[UR4],[UR6],UR8"), ("UBLKCP.G.S", "[UR4],[UR6],UR8"), ("UTMALDG.2D", "[UR4]")))
    assert (both.counts["UBLKCP"], both.bulk, both.loads) == (2, 2, 2)
    stored = mix(coded(("UBLKCP.G.S", "[UR4],[UR6],UR8"), ("LDG.E", "R1,[R2.64]"), ("FFMA", PRODUCT)))
    assert (stored.loads, stored.ratio) == (1, 1.0)
