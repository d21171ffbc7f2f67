"""Tests of core/analysis/occupancy."""

from __future__ import annotations

import pytest

from pytest_perfgate.adapters.devices.visible import DeviceCatalogue
from pytest_perfgate.core.analysis.occupancy import LIMITS, cliff, edge, occupancy, register_cap, register_edge
from pytest_perfgate.model.device import SmLimits

KIB = 1024


def sm(smem: int, warps: int, blocks: int, *, unit: int = 128, reserved: int = 1024, block: int = 0) -> SmLimits:
    return SmLimits(
        smem_bytes=smem * KIB,
        smem_block_bytes=(block or smem - 1) * KIB,
        registers=65536,
        warps=warps,
        blocks=blocks,
        register_unit=256,
        warp_granularity=4,
        smem_unit=unit,
        smem_reserved=reserved,
    )


TURING = sm(64, 32, 16, unit=256, reserved=0, block=64)
AMPERE = sm(100, 48, 16)
HOPPER = sm(228, 64, 32)

SEEN = [
    # what real reports say: limits by registers, shared memory, warps, blocks, then warps at once
    ("GTX 1660 Ti, 64 x 16 registers", TURING, (64, 16, 0, 32 * KIB), (64, 16, 16, 16), 32),
    ("H100, 256 x 32 registers", HOPPER, (256, 32, 0, 32 * KIB), (8, 32, 8, 32), 64),
    ("A10G, 512 x 51 registers", AMPERE, (512, 51, 4096, 16 * KIB), (2, 3, 3, 16), 32),
    ("A10G, 256 x 150 registers", AMPERE, (256, 150, 8192, 16 * KIB), (1, 1, 6, 16), 8),
    ("A10G, 256 x 121 registers", AMPERE, (256, 121, 8192, 64 * KIB), (2, 7, 6, 16), 16),
    ("A10G, 128 x 228 registers", AMPERE, (128, 228, 16384, 64 * KIB), (2, 3, 12, 16), 8),
]


@pytest.mark.parametrize(("sm", "block", "limits", "warps"), [row[1:] for row in SEEN], ids=[row[0] for row in SEEN])
def test_equals_what_the_profiler_says(sm: SmLimits, block: tuple, limits: tuple, warps: int) -> None:
    threads, registers, shared, configured = block
    result = occupancy(sm, threads=threads, registers=registers, shared=shared, configured=configured)
    assert tuple(limit for _, limit in result.limits) == limits
    assert result.warps == warps
    assert result.fraction == warps / sm.warps


def test_registers_are_handed_out_by_the_warp() -> None:
    """65536 / (51 * 512) is 2.5; what counts is the rounded warp, and warps by fours."""
    assert occupancy(HOPPER, threads=96, registers=168, shared=0).blocks == 4
    assert 65536 // (168 * 96) == 4
    assert occupancy(HOPPER, threads=256, registers=65, shared=0).blocks == 3
    assert 65536 // (65 * 256) == 3
    assert occupancy(HOPPER, threads=128, registers=41, shared=0).limits[0][1] == 10
    assert 65536 // (41 * 128) == 12


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "word"),
    [(0, 32, 0, "1 to 1024"), (1025, 32, 0, "1 to 1024"), (128, 256, 0, "255"), (128, 32, 100 * KIB, "99 KiB"),
     (1024, 255, 0, "not even one")],
)  # fmt: skip
def test_a_block_that_cannot_start_says_why(threads: int, registers: int, shared: int, word: str) -> None:
    result = occupancy(AMPERE, threads=threads, registers=registers, shared=shared)
    assert result.blocks == 0
    assert word in result.why_none


def test_the_cliff_of_ga104_is_at_49_kib() -> None:
    assert edge(AMPERE) == 49 * KIB
    under = cliff(AMPERE, threads=128, registers=64, shared=48 * KIB)
    over = cliff(AMPERE, threads=128, registers=64, shared=56 * KIB)
    assert (under.blocks, under.crossed, under.next_edge) == (2, False, 49 * KIB)
    assert (over.blocks, over.crossed) == (1, True)


def test_double_buffering_may_fall() -> None:
    assert cliff(AMPERE, threads=128, registers=64, shared=30 * KIB).doubling_crosses
    assert not cliff(AMPERE, threads=128, registers=64, shared=8 * KIB).doubling_crosses


def test_the_cliff_is_moot_when_registers_allow_one_block_only() -> None:
    assert cliff(AMPERE, threads=256, registers=150, shared=8 * KIB).moot == "registers"


BLOCKS = {
    # threads, registers, shared memory of a block, blocks at once
    "sm_50": ((1014, 115, 17408, 0), (260, 124, 0, 1), (96, 66, 49152, 1), (716, 21, 2048, 2), (32, 18, 0, 32)),
    "sm_52": ((480, 247, 32652, 0), (229, 132, 33792, 1), (18, 87, 35030, 2), (39, 46, 22735, 4), (667, 18, 0, 3)),
    "sm_61": ((998, 80, 43008, 0), (722, 57, 0, 1), (32, 117, 12804, 7), (800, 17, 0, 2), (160, 16, 0, 12)),
    "sm_70": ((841, 110, 54272, 0), (160, 87, 0, 4), (352, 23, 61872, 1), (640, 24, 13034, 3), (32, 21, 0, 32)),
    "sm_72": ((598, 122, 33895, 0), (704, 48, 0, 1), (768, 35, 85656, 1), (615, 18, 0, 3), (480, 18, 0, 4)),
    "sm_75": ((544, 199, 43482, 0), (38, 188, 0, 4), (39, 43, 32768, 2), (863, 22, 0, 1), (32, 45, 0, 16)),
    "sm_80": ((768, 232, 144262, 0), (440, 36, 15360, 3), (318, 33, 104489, 1), (896, 22, 0, 2), (416, 18, 9415, 4)),
    "sm_86": ((794, 221, 6144, 0), (384, 57, 0, 2), (96, 114, 57501, 1), (104, 23, 0, 12), (32, 73, 1272, 16)),
    "sm_87": ((320, 236, 75364, 0), (375, 133, 78148, 1), (128, 60, 40824, 4), (864, 32, 39429, 1), (288, 27, 0, 5)),
    "sm_89": ((352, 133, 14255, 1), (477, 125, 29696, 1), (576, 51, 87040, 1), (809, 27, 0, 1), (352, 28, 14461, 4)),
    "sm_90": ((343, 174, 133120, 0), (203, 152, 0, 1), (73, 232, 186648, 1), (800, 20, 22364, 2), (190, 18, 0, 10)),
    "sm_100": ((445, 131, 149504, 0), (410, 77, 64825, 1), (64, 180, 65037, 3), (448, 20, 0, 4), (313, 19, 0, 6)),
    "sm_101": ((866, 169, 77824, 0), (291, 143, 2421, 1), (384, 71, 225754, 1), (772, 17, 0, 1), (20, 33, 0, 24)),
    "sm_103": ((524, 185, 176128, 0), (649, 75, 28672, 1), (53, 121, 64844, 3), (832, 20, 0, 2), (580, 19, 0, 3)),
    "sm_110": ((960, 129, 88064, 0), (576, 88, 0, 1), (191, 39, 31636, 7), (960, 24, 41592, 1), (342, 25, 28733, 4)),
    "sm_120": ((442, 172, 94719, 0), (224, 185, 0, 1), (329, 79, 70656, 1), (960, 19, 47713, 1), (32, 70, 0, 24)),
    "sm_121": ((960, 70, 91156, 0), (264, 104, 18432, 1), (182, 114, 68608, 1), (544, 28, 10209, 2), (256, 16, 0, 6)),
}


@pytest.mark.parametrize("arch", BLOCKS)
def test_as_many_blocks_fit_as_nvidia_says(arch: str) -> None:
    for threads, registers, shared, blocks in BLOCKS[arch]:
        result = occupancy(LIMITS[arch], threads=threads, registers=registers, shared=shared)
        assert result.blocks == blocks, (threads, registers, shared, result.limits)


def test_the_catalogue_says_of_a_multiprocessor_what_its_architecture_does() -> None:
    by_arch = {spec.arch: spec.sm for spec in DeviceCatalogue() if spec.sm is not None}
    assert by_arch == {arch: LIMITS[arch] for arch in by_arch}


@pytest.mark.parametrize(
    ("threads", "most", "blocks"), [(128, None, 7), (128, 128, 7), (256, 128, 0), (256, 256, 3), (64, 128, 14)]
)
def test_code_compiled_for_fewer_threads_cannot_start(threads, most, blocks) -> None:
    result = occupancy(AMPERE, threads=threads, registers=66, shared=4 * KIB, most=most)
    assert result.blocks == blocks
    assert ("__launch_bounds__" in result.why_none) is (blocks == 0)


@pytest.mark.parametrize(
    ("registers", "shared", "edge_at"), [(66, 0, 72), (72, 0, 72), (73, 0, 80), (32, 48 * KIB, 255)]
)
def test_the_most_registers_of_which_as_many_blocks_fit(registers, shared, edge_at) -> None:
    most = register_edge(AMPERE, threads=128, registers=registers, shared=shared)
    assert (most or 255) == edge_at
    if most is not None:
        now, then = (occupancy(AMPERE, threads=128, registers=n, shared=shared).blocks for n in (most, most + 1))
        assert then < now


@pytest.mark.parametrize(
    ("threads", "registers", "shared"),
    [(128, 123, 0), (256, 123, 8192), (64, 255, 0), (1024, 40, 0), (128, 24, 0), (32, 16, 0)],
)
def test_a_cap_on_registers_is_the_most_with_which_a_block_more_fits(threads: int, registers: int, shared: int) -> None:
    def blocks(n: int) -> int:
        return occupancy(AMPERE, threads=threads, registers=n, shared=shared).blocks

    cap = register_cap(AMPERE, threads=threads, registers=registers, shared=shared)
    more = [n for n in range(24, registers) if blocks(n) > blocks(registers)]
    assert cap == max(more, default=None)
