"""The catalogue of devices: data sheets by name, and the user's own from the configuration."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from math import inf
from typing import Any

from pytest_perfgate.model.device import DeviceSpec, Peak, SmLimits
from pytest_perfgate.model.errors import PerfgateError

MEGA, GIGA, TERA = 1e6, 1e9, 1e12

MIB, GIB = 2.0**20, 2.0**30

_SCALES: Mapping[str, tuple[str, float]] = {
    "base_mhz": ("base_hz", MEGA),
    "boost_mhz": ("boost_hz", MEGA),
    "lock_mhz": ("lock_hz", MEGA),
    "memory_gib": ("memory_bytes", GIB),
    "bandwidth_gbps": ("bandwidth", GIGA),
    "l2_mib": ("l2_bytes", MIB),
    "cache_mib": ("cache_bytes", MIB),
    "tdp_w": ("tdp_watts", 1.0),
}

_TEXTS = ("name", "pattern", "die", "arch", "source", "confidence", "note")

_DTYPES = (
    "fp64", "fp64_tc", "fp32", "tf32", "fp16", "fp16_acc16", "bf16", "fp8", "fp8_acc32", "fp6", "fp4",
    "int64", "int32", "int16", "int8", "int4", "complex64", "complex128",
)  # fmt: skip

_PLAIN = (*_TEXTS, "multiprocessors", "sm", "peaks", "achievable", "dense_tflops")


class DeviceCatalogue:
    """The shipped data sheets with the user's own in front of them."""

    def __init__(self, own: tuple[DeviceSpec, ...] = ()) -> None:
        self._specs = (*own, *read_specs())

    def __iter__(self) -> Iterator[DeviceSpec]:
        return iter(self._specs)

    def lookup(self, name: str) -> DeviceSpec | None:
        """The line whose name is this one, or whose pattern is found in it; a MIG suffix is no part of a name."""
        whole = name.partition(" MIG ")[0].strip()
        exact = (s for s in self._specs if s.name.casefold() == whole.casefold())
        return next(exact, None) or next((s for s in self._specs if re.search(s.pattern, whole)), None)

    def find(self, text: str) -> tuple[DeviceSpec, ...]:
        """Every line that a person may mean by a word: part of a name, an architecture, a die."""
        spec = self.lookup(text)
        word = text.casefold()
        return (spec,) if spec else tuple(
            s for s in self._specs if word in s.name.casefold() or word in (s.arch.casefold(), s.die.casefold())
        )  # fmt: skip


@functools.cache
def shipped() -> DeviceCatalogue:
    """The catalogue of the package alone, read once."""
    return DeviceCatalogue()


def lookup_spec(name: str) -> DeviceSpec | None:
    """The shipped data sheet of a device."""
    return shipped().lookup(name)


def read_specs() -> tuple[DeviceSpec, ...]:
    """The data file of the package."""
    text = files("pytest_perfgate.adapters.devices").joinpath("catalogue.json").read_text(encoding="utf-8")
    return tuple(parse_spec(line, place="catalogue.json") for line in json.loads(text))


def parse_own(tables: Mapping[str, Any], place: str = "pyproject.toml") -> tuple[DeviceSpec, ...]:
    """The user's ``[tool.perfgate.device.NAME]`` tables; NAME is the pattern where none is given."""
    return tuple(
        parse_spec(
            {"name": name, "pattern": re.escape(name), "source": "configuration", **_mapping(table, name, place)},
            place=f"{place} [tool.perfgate.device.{name}]",
        )
        for name, table in tables.items()
    )


def parse_spec(line: Mapping[str, Any], place: str) -> DeviceSpec:
    """One device from its line; every key is known and every number is positive."""
    unknown = sorted(set(line) - set(_SCALES) - set(_PLAIN))
    if unknown:
        known = ", ".join(sorted((*_SCALES, *_PLAIN)))
        raise PerfgateError("device-entry", f"unknown key {unknown[0]!r}", mend=f"write one of {known}", place=place)
    try:
        re.compile(str(line["pattern"]))
        scaled: dict[str, Any] = {
            field: _positive(line[key], key) * by for key, (field, by) in _SCALES.items() if key in line
        }
        texts: dict[str, Any] = {key: str(line[key]) for key in _TEXTS if key in line}
        return DeviceSpec(
            **{"arch": "", **texts},
            **scaled,
            multiprocessors=int(_positive(line.get("multiprocessors", 1), "multiprocessors")),
            sm=_limits(line.get("sm")),
            peaks=_peaks(line),
            achievable=_achievable(line.get("achievable", {})),
        )
    except (TypeError, ValueError, KeyError, re.error) as error:
        raise PerfgateError("device-entry", f"{line.get('name', '?')}: {error}", place=place) from error


def _positive(number: Any, key: str) -> float:
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 < number < inf:
        raise ValueError(f"{key} must be a positive number, not {number!r}")
    return float(number)


def _mapping(table: Any, name: str, place: str) -> Mapping[str, Any]:
    if not isinstance(table, Mapping):
        raise PerfgateError("device-entry", f"[tool.perfgate.device.{name}] is not a table", place=place)
    return table


def _limits(row: Any) -> SmLimits | None:
    """Shared memory (KiB an SM, KiB a block), registers, warps, blocks, the units, the reserve."""
    if row is None:
        return None
    smem, block, *rest = (int(n) for n in row)
    registers, warps, blocks, unit, granularity, smem_unit, reserved = rest
    return SmLimits(
        smem_bytes=smem * 1024,
        smem_block_bytes=block * 1024,
        registers=registers,
        warps=warps,
        blocks=blocks,
        register_unit=unit,
        warp_granularity=granularity,
        smem_unit=smem_unit,
        smem_reserved=reserved,
    )


def _peaks(line: Mapping[str, Any]) -> tuple[Peak, ...]:
    """``peaks`` of the shipped file, or the user's ``dense_tflops`` table at the boost clock."""
    own = {_dtype(name): (rate, None, line.get("boost_mhz")) for name, rate in line.get("dense_tflops", {}).items()}
    return tuple(_peak(dtype, row, line) for dtype, row in {**line.get("peaks", {}), **own}.items())


def _dtype(name: str) -> str:
    """As work names it; a peak under any other name would never be looked up."""
    if name not in _DTYPES:
        raise ValueError(f"dense_tflops: {name!r} is none of {', '.join(_DTYPES)}")
    return name


def _peak(dtype: str, row: Sequence[Any], line: Mapping[str, Any]) -> Peak:
    tflops, per_clock, mhz = row
    rate = None if tflops is None else _positive(tflops, dtype) * TERA
    hertz = None if mhz is None else _positive(mhz, "clock") * MEGA
    if per_clock is None and rate and hertz and "multiprocessors" in line:
        per_clock = rate / hertz / line["multiprocessors"]
    return Peak(dtype=dtype, datasheet=rate, per_clock_per_sm=per_clock and float(per_clock), implied_hz=hertz)


def _achievable(table: Mapping[str, Any]) -> tuple[Peak, ...]:
    return tuple(
        Peak(dtype=dtype, datasheet=_positive(row[0], dtype) * TERA, per_clock_per_sm=None, implied_hz=None)
        for dtype, row in table.items()
    )
