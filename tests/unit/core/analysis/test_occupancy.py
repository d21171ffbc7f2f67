from __future__ import annotations

import pytest

from pytest_perfgate.core.analysis.occupancy import cliff, edge, occupancy
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
    seen = occupancy(sm, threads=threads, registers=registers, shared=shared, configured=configured)
    assert tuple(limit for _, limit in seen.limits) == limits
    assert seen.warps == warps
    assert seen.fraction == warps / sm.warps


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
    [(0, 32, 0, "1 to 1024"), (1025, 32, 0, "1 to 1024"), (128, 256, 0, "255"), (128, 32, 100 * KIB, "101376"),
     (1024, 255, 0, "not even one")],
)  # fmt: skip
def test_a_block_that_cannot_start_says_why(threads: int, registers: int, shared: int, word: str) -> None:
    seen = occupancy(AMPERE, threads=threads, registers=registers, shared=shared)
    assert seen.blocks == 0
    assert word in seen.why_none


def test_the_cliff_of_ga104_is_at_49_kib() -> None:
    assert edge(AMPERE) == 49 * KIB
    under = cliff(AMPERE, threads=128, registers=64, shared=48 * KIB)
    over = cliff(AMPERE, threads=128, registers=64, shared=56 * KIB)
    assert (under.blocks, under.crossed, under.distance) == (2, False, KIB)
    assert (over.blocks, over.crossed) == (1, True)


def test_double_buffering_may_fall() -> None:
    assert cliff(AMPERE, threads=128, registers=64, shared=30 * KIB).doubling_crosses
    assert not cliff(AMPERE, threads=128, registers=64, shared=8 * KIB).doubling_crosses


def test_the_cliff_is_moot_when_registers_allow_one_block_only() -> None:
    assert cliff(AMPERE, threads=256, registers=150, shared=8 * KIB).moot == "registers"
