"""Tests of core/analysis/kernels/sass_facts."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from pytest_perfgate.core.analysis.kernels.sass_facts import (
    Loop,
    changes,
    identity,
    labels_of,
    loops,
    main_loop,
    same_code,
    short_name,
    spilled,
    static_shared,
)
from pytest_perfgate.core.analysis.kernels.sass_mix import Mix, mix
from pytest_perfgate.model.profiles import KernelCode, KernelFacts, Resources
from tests.kernels import ARCHES, kernel

Line = tuple[str, str, str]
"""Guard, opcode, operands; a number alone is a row to branch to."""


def coded(*lines: Line, words: bool = False) -> KernelCode:
    guards, opcodes, operands = zip(*lines)
    parsed = [_operands(text) for text in operands]
    raw = b"".join(struct.pack("<QQ", (0 if guard else 7) << 12, 0) for guard in guards)
    return KernelCode(
        opcodes=opcodes,
        operands=tuple(parsed),
        predicates=("",) * len(lines) if words else guards,
        words=raw if words else b"",
    )


def _operands(text: str) -> str:
    head, _, last = text.rpartition(",")
    return f"{head}{',' if head else ''}0x{16 * int(last):x}" if last.isdigit() else text


LOOP = (("", "MOV", "R1"), ("", "LDG.E", "R2"), ("", "FFMA", "R3"), ("@P0", "BRA", "1"), ("", "EXIT", ""))
MOVED = (
    ("", "LDG.E", "R1"), ("", "BRA.DIV", "UR4,5"), ("", "FFMA", "R3"), ("", "STG.E", "R3"), ("", "EXIT", ""),
    ("", "WARPSYNC.COLLECTIVE", "R3"), ("", "SHFL.DOWN", "R4"), ("", "BRA", "2"),
)  # fmt: skip
"""What runs where lanes have parted stands behind the end, and branches back."""
INSIDE = (
    ("", "MOV", "R1"), ("", "LDG.E", "R2"), ("", "BRA.DIV", "UR4,7"), ("", "FFMA", "R3"), ("", "FFMA", "R3"),
    ("@!P1", "BRA", "1"), ("", "EXIT", ""), ("", "SHFL.DOWN", "R4"), ("", "BRA", "3"),
)  # fmt: skip
NESTED = (
    ("", "MOV", "R1"), ("", "LDG.E", "R2"), ("", "FFMA", "R3"), ("", "BRA", "P6,2"), ("@P1", "BRA", "1"), ("", "EXIT", ""),
)  # fmt: skip
UNREACHED = (("", "EXIT", ""), ("", "FFMA", "R1"), ("", "BRA", "1"))
BY_TABLE = (("", "BRX", "R4 -0x40"), ("", "FFMA", "R1"), ("@P0", "BRA", "1"), ("", "EXIT", ""))


@pytest.mark.parametrize("words", [False, True], ids=["by its guard", "by its word"])
@pytest.mark.parametrize(
    ("lines", "spans"),
    [
        (LOOP, [(1, 3)]),
        (MOVED, []),
        (INSIDE, [(1, 5)]),
        (NESTED, [(1, 4), (2, 3)]),
        (UNREACHED, []),
        (BY_TABLE, [(1, 2)]),
        ((("", "EXIT", ""),), []),
    ],
    ids=["a loop", "moved behind", "moved out of a loop", "nested", "never reached", "by a table", "none"],
)
def test_loops_are_what_repeats(lines: tuple[Line, ...], spans: list[tuple[int, int]], *, words: bool) -> None:
    repeated = loops(coded(*lines, words=words))
    assert [(loop.first, loop.last) for loop in repeated] == spans
    assert [loop.innermost for loop in repeated] == [
        not any(one != other and one.first <= other.first and other.last <= one.last for other in repeated)
        for one in repeated
    ]


def test_what_was_moved_out_of_the_main_loop_does_not_stretch_it() -> None:
    code = coded(*INSIDE)
    assert main_loop(code) == Loop(first=1, last=5)
    assert mix(code, main_loop(code).rows).counts["SHFL"] == 0


every_arch = pytest.mark.parametrize("arch", ARCHES)


def inner(name: str, arch: str) -> Mix:
    code = kernel(name, arch).code
    return mix(code, main_loop(code).rows)


@every_arch
def test_the_spill(arch: str) -> None:
    facts = kernel("spilling", arch)
    assert spilled(facts) > 300
    assert mix(facts.code).counts["STL"] > 0
    assert mix(facts.code).counts["LDL"] > 0
    assert inner("spilling", arch).counts["LDL"] > 0
    for name in ("gemm_tiled", "gemm_naive", "reduction", "copy_wide", "attention_tile", "above_cliff"):
        assert spilled(kernel(name, arch)) == 0


@pytest.mark.parametrize(("stack", "size"), [(800, 800), (0, 0)])
def test_a_stack_that_is_reached_by_generic_addresses_counts(stack: int, size: int) -> None:
    """Code of -G keeps its arrays there, without an LDL or STL."""
    code = KernelCode(opcodes=("LD.E", "ST.E", "EXIT"), operands=("",) * 3, predicates=("",) * 3)
    resources = Resources(registers=21, stack=stack, source="cubin")
    assert spilled(KernelFacts(name="k", arch="sm_90", code=code, resources=resources)) == size


@every_arch
def test_the_loads_that_a_cast_forgot(arch: str) -> None:
    assert inner("copy_wide", arch).widths == ((16, 1),)
    assert inner("copy_narrow", arch).widths == ((4, 1),)
    assert inner("gemm_tiled", arch).wide == 1.0
    assert inner("gemm_naive", arch).wide == 0.0


@every_arch
def test_the_tensor_cores(arch: str) -> None:
    counts = mix(kernel("attention_tile", arch).code).counts
    assert counts["HMMA"] == 64
    """Two products of 4 x 4 tiles, each 16 x 16 x 16 in two instructions."""
    assert counts["MMA"] == 64
    assert inner("attention_tile", arch).counts["HMMA"] == 64
    for name in ("gemm_tiled", "gemm_naive", "reduction", "copy_wide"):
        assert mix(kernel(name, arch).code).counts["MMA"] == 0


@pytest.mark.parametrize(
    ("name", "arch", "opcode"), [("gemm_wgmma", "sm_90a", "HGMMA"), ("gemm_tcgen05", "sm_100a", "UTCHMMA")]
)
def test_the_tensor_cores_of_one_architecture(name: str, arch: str, opcode: str) -> None:
    """Four products of depth sixteen a stage, each one instruction for the whole tile."""
    facts = kernel(name, arch)
    assert facts.arch == arch.removesuffix("a")
    assert facts.most_threads == facts.launch.threads == 128
    assert inner(name, arch).counts[opcode] == 4
    assert inner(name, arch).counts["MMA"] == mix(facts.code).counts["MMA"] == 4
    assert inner(name, arch).wide == 1.0
    assert spilled(facts) == 0


@every_arch
def test_the_launch_bounds_of_the_source(arch: str) -> None:
    bounds = {name: kernel(name, arch).most_threads for name in ("gemm_tiled", "attention_tile", "copy_wide")}
    assert bounds == {"gemm_tiled": 256, "attention_tile": 32, "copy_wide": None}


@every_arch
def test_the_ratio_of_compute_to_loads(arch: str) -> None:
    assert inner("gemm_naive", arch).ratio == 0.5
    assert inner("gemm_tiled", arch).ratio == 256.0
    assert inner("reduction", arch).ratio == 1.0
    assert inner("copy_wide", arch).ratio is None


@every_arch
def test_the_shared_memory_of_the_source_without_what_the_driver_keeps(arch: str) -> None:
    assert static_shared(kernel("gemm_tiled", arch)) == 4 * 8 * (132 + 128)
    assert static_shared(kernel("reduction", arch)) == 32
    assert static_shared(kernel("above_cliff", arch)) == 0
    assert kernel("above_cliff", arch).launch.shared_dynamic == 56 * 1024


@every_arch
def test_loops_nest(arch: str) -> None:
    repeated = loops(kernel("attention_tile", arch).code)
    assert [loop.innermost for loop in repeated] == [False, True]
    assert main_loop(kernel("attention_tile", arch).code) == repeated[0]


@every_arch
def test_barriers_and_shuffles_are_counted(arch: str) -> None:
    counts = mix(kernel("reduction", arch).code).counts
    assert counts["BAR.SYNC"] == 1
    assert counts["SHFL"] == 5
    assert inner("gemm_tiled", arch).counts["BAR.SYNC"] == 2


def test_the_identity_is_of_the_code_and_not_of_its_name() -> None:
    one, other = kernel("copy_wide", "sm_86"), kernel("copy_narrow", "sm_86")
    assert identity(one.code) == identity(kernel("copy_wide", "sm_86").code)
    assert identity(one.code) != identity(other.code)
    assert same_code(one, one)
    assert not same_code(one, other)


def test_the_difference_of_two_builds_names_what_changed() -> None:
    differences = {
        c.what: (c.before, c.after) for c in changes(kernel("copy_narrow", "sm_86"), kernel("copy_wide", "sm_86"))
    }
    assert differences["registers"] == (10, 12)
    assert differences["loop: 4-byte loads"] == (1, 0)
    assert differences["loop: 16-byte loads"] == (0, 1)
    assert changes(kernel("copy_wide", "sm_86"), kernel("copy_wide", "sm_86")) == ()


def test_an_instruction_that_does_not_occur_is_zero_where_the_code_is_known() -> None:
    gemm = kernel("gemm_naive", "sm_86")
    pairs = (gemm, kernel("copy_wide", "sm_86")), (gemm, replace(gemm, code=None))
    decoded, bare = ({c.what: (c.before, c.after) for c in changes(*pair)} for pair in pairs)
    assert (decoded["FFMA"], bare["FFMA"]) == ((29, 0), (29, None))


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("_Z1kILi79EEvPKfS1_Pfi", "k"),
        ("_ZN2at6native18elementwise_kernelILi128EEEviT_", "elementwise_kernel"),
        ("gemm_tiled", "gemm_tiled"),
        ("void at::native::(anonymous namespace)::softmax<float>(float*)", "softmax"),
        ("void addition_kernel<float>(float*, float const*)", "addition_kernel"),
        ("_ZL5scalePf", "scale"),
        ("_ZN5llamaL5scaleEPf", "scale"),
        ("_Zwhatever", "_Zwhatever"),
    ],
)
def test_names_are_shortened_to_what_people_call_them(name: str, short: str) -> None:
    assert short_name(name) == short


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (("_Z1kILi79EEvPKf", "other"), ("k", "other")),
        (("_Z1kILi79EEvPKf", "_Z1kILi8EEvPKf"), ("k<79>", "k<8>")),
        (("_Z1kI6__halfLb1ELin3EEvPKf", "_Z1kIfLb0ELi3EEvPKf"), ("k<__half, true, -3>", "k<float, false, 3>")),
        (("_Z1kILi79EEvPKf", "_Z1kILi79EEvPKd"), ("_Z1kILi79EEvPKf", "_Z1kILi79EEvPKd")),
        (("_Z1kIN3cub6PolicyEEvPKf", "_Z1kILi8EEvPKf"), ("_Z1kIN3cub6PolicyEEvPKf", "k<8>")),
        (("_Z1kILi", "_Z1kILi7"), ("_Z1kILi", "_Z1kILi7")),
    ],
)
def test_instances_of_a_template_are_named_by_their_arguments(names: tuple[str, ...], labels: tuple[str, ...]) -> None:
    facts = [KernelFacts(name=name, arch="sm_90") for name in names]
    assert tuple(labels_of(facts)[id(one)] for one in facts) == labels
