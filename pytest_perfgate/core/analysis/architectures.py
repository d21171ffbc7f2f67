"""What a multiprocessor of each architecture holds: published for the architecture, whatever the device."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_perfgate.model.device import SmLimits

_KIB = 1024
_REGISTERS, _REGISTER_UNIT = 65536, 256
_DRIVERS_OWN = 1024
"""Bytes of each block that the driver keeps from sm_80 on, where shared memory is handed out more finely too."""


def _before_80(shared: int, of_a_block: int, warps: int, blocks: int) -> SmLimits:
    return SmLimits(
        smem_bytes=shared * _KIB,
        smem_block_bytes=of_a_block * _KIB,
        registers=_REGISTERS,
        warps=warps,
        blocks=blocks,
        register_unit=_REGISTER_UNIT,
        warp_granularity=4,
        smem_unit=256,
        smem_reserved=0,
    )


def _from_80(shared: int, warps: int, blocks: int) -> SmLimits:
    return SmLimits(
        smem_bytes=shared * _KIB,
        smem_block_bytes=shared * _KIB - _DRIVERS_OWN,
        registers=_REGISTERS,
        warps=warps,
        blocks=blocks,
        register_unit=_REGISTER_UNIT,
        warp_granularity=4,
        smem_unit=128,
        smem_reserved=_DRIVERS_OWN,
    )


_AMPERE, _ADA, _BLACKWELL = _from_80(100, 48, 16), _from_80(100, 48, 24), _from_80(228, 64, 32)
_THOR = _from_80(228, 48, 24)
LIMITS: Mapping[str, SmLimits] = {
    "sm_50": _before_80(64, 48, 64, 32),
    "sm_52": _before_80(96, 48, 64, 32),
    "sm_61": _before_80(96, 48, 64, 32),
    "sm_70": _before_80(96, 96, 64, 32),
    "sm_72": _before_80(96, 96, 64, 32),
    "sm_75": _before_80(64, 64, 32, 16),
    "sm_80": _from_80(164, 64, 32),
    "sm_86": _AMPERE,
    "sm_87": _from_80(164, 48, 16),
    "sm_88": _AMPERE,
    "sm_89": _ADA,
    "sm_90": _from_80(228, 64, 32),
    "sm_100": _BLACKWELL,
    "sm_101": _THOR,
    "sm_103": _BLACKWELL,
    "sm_110": _THOR,
    "sm_120": _ADA,
    "sm_121": _ADA,
}
"""``sm_101`` is what CUDA 12 called ``sm_110``."""
