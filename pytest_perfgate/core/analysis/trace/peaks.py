"""Roofs for a trace: what the user gave, else the catalogue's line for the device it names."""

from __future__ import annotations

import math
import re

from pytest_perfgate.core.analysis.ops.dtypes import dtype_name
from pytest_perfgate.model.device import Basis, DeviceSpec, Roof
from pytest_perfgate.model.errors import PerfgateError

_NUMBER = r"^([0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?)\s*([TGPM]?)"
_FLOPS = re.compile(_NUMBER + r"(?:FLOPS|FLOP/s|OPS)$", re.IGNORECASE)
_BYTES = re.compile(_NUMBER + r"B/s$", re.IGNORECASE)
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
            compute.append((dtype_name(dtype), parse_peak(rate)))
        except ValueError as odd:
            raise PerfgateError("trace-option", f"peak {part!r}: {odd}", mend="write bf16=708TFLOPS") from odd
    return Roof(
        basis=Basis.DATASHEET,
        compute=tuple(compute),
        bandwidth=parse_bandwidth(bandwidth) if bandwidth else None,
        note=GIVEN,
    )


def parse_peak(text: str) -> float:
    """``708TFLOPS`` per second."""
    return _rate(text, _FLOPS, "708TFLOPS")


def parse_bandwidth(text: str) -> float:
    """``5.3TB/s`` per second."""
    return _rate(text, _BYTES, "5.3TB/s")


def _rate(text: str, form: re.Pattern[str], example: str) -> float:
    """A rate with its unit: a bare number could be any multiple of it."""
    found = form.match(text.strip())
    rate = float(found.group(1)) * _SCALE[found.group(2).upper()] if found else 0.0
    if not 0 < rate < math.inf:
        raise PerfgateError("trace-option", f"{text!r} is no rate", mend=f"write it with its unit: {example}")
    return rate


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
