"""Roofs for a trace: what the user gave, else the catalogue's line for the device it names."""

from __future__ import annotations

import re

from pytest_perfgate.core.analysis.ops.dtypes import dtype_name
from pytest_perfgate.model.device import Basis, DeviceSpec, Roof
from pytest_perfgate.model.errors import PerfgateError

_RATE = re.compile(r"^([0-9.]+(?:e[+-]?\d+)?)\s*([TGPM]?)(?:FLOPS|FLOP/s|B/s|OPS)?(?:/s)?$", re.IGNORECASE)
GIVEN = "peaks as given"
"""The note of a roof that the user gave."""
_SCALE = {"": 1.0, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


def given_roof(peak: str = "", bandwidth: str = "") -> Roof | None:
    """A roof from ``bf16=708TFLOPS,fp32=163TFLOPS`` and ``5.3TB/s``."""
    if not peak and not bandwidth:
        return None
    compute = []
    for part in filter(None, (p.strip() for p in peak.split(","))):
        dtype, _, rate = part.partition("=")
        try:
            compute.append((dtype_name(dtype), parse_rate(rate)))
        except ValueError as odd:
            raise PerfgateError("trace-option", f"peak {part!r}: {odd}", mend="write bf16=708TFLOPS") from odd
    return Roof(
        basis=Basis.DATASHEET,
        compute=tuple(compute),
        bandwidth=parse_rate(bandwidth) if bandwidth else None,
        note=GIVEN,
    )


def parse_rate(text: str) -> float:
    """``5.3TB/s`` and ``708TFLOPS`` per second."""
    found = _RATE.match(text.strip())
    if not found:
        raise PerfgateError("trace-option", f"{text!r} is no rate", mend="write 708TFLOPS or 5.3TB/s")
    return float(found.group(1)) * _SCALE[found.group(2).upper()]


def sheet_roof(spec: DeviceSpec, column: str = "datasheet") -> Roof:
    """The data sheet's roof, or its achievable rates, which are a column of their own."""
    peaks = spec.achievable if column == "achievable" else spec.peaks
    return Roof(
        basis=Basis.DATASHEET,
        compute=tuple((p.dtype, p.datasheet) for p in peaks if p.datasheet),
        bandwidth=spec.bandwidth,
        cache_bytes=None,
        note=f"{spec.name}, {column} rates",
    )
