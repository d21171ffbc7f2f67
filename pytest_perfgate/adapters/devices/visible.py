"""Data sheets by name, including the user's own, and the devices that this machine shows."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_perfgate.model.device import Device, DeviceSpec, Peak, SmLimits
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import array_value, value

if TYPE_CHECKING:
    from pytest_perfgate.adapters.bindings.amdsmi import Amd
    from pytest_perfgate.adapters.bindings.nvml import Nvml
    from pytest_perfgate.model.ports import Call


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
    "fp64", "fp64_tc", "fp32", "fp32_tc", "tf32", "fp16", "fp16_acc16", "bf16", "fp8", "fp8_acc32", "fp6", "fp4",
    "int64", "int32", "int16", "int8", "int4", "complex64", "complex128",
)  # fmt: skip

_PLAIN = (*_TEXTS, "multiprocessors", "sm", "peaks", "achievable", "dense_tflops")

_READ = ""
"""The key of a line that is read already."""


class DeviceCatalogue:
    """The shipped data sheets, after the user's own; each is read when it is asked for."""

    def __init__(self, own: tuple[DeviceSpec, ...] = ()) -> None:
        sheets = ({"name": spec.name, "pattern": spec.pattern, _READ: spec} for spec in own)
        self._lines = (*sheets, *_shipped_entries())

    def __iter__(self) -> Iterator[DeviceSpec]:
        return map(_spec, self._lines)

    def lookup(self, name: str) -> DeviceSpec | None:
        """Return the entry with this name, or whose pattern matches it; a MIG suffix is ignored."""
        whole = name.partition(" MIG ")[0].strip()
        exact = (line for line in self._lines if line["name"].casefold() == whole.casefold())
        line = next(exact, None) or next((one for one in self._lines if re.search(one["pattern"], whole)), None)
        return _spec(line) if line else None

    def find(self, text: str) -> tuple[DeviceSpec, ...]:
        """Return every entry that a text may mean: the start of each word of a name, part of one, an architecture."""
        word, named = text.casefold(), [(s, s.name.casefold().replace("-", " ").split()) for s in self]
        starts = [part for part in word.replace("-", " ").split() if part not in {"nvidia", "amd", "intel"}]
        begun = [s for s, parts in named if starts and all(any(p.startswith(w) for p in parts) for w in starts)]
        inside = (s for s, _ in named if word in (s.arch, s.die.casefold()) or word in s.name.casefold())
        spec = self.lookup(text)
        return (spec,) if spec else tuple(begun or inside)


def lookup_spec(name: str) -> DeviceSpec | None:
    """Return the shipped data sheet of a device."""
    return DeviceCatalogue().lookup(name)


def _spec(line: Mapping[str, Any]) -> DeviceSpec:
    return line.get(_READ) or parse_spec(line, place="catalogue.json")


@functools.cache
def _shipped_entries() -> tuple[Mapping[str, Any], ...]:
    return tuple(json.loads(Path(__file__).with_name("catalogue.json").read_text(encoding="utf-8")))


def parse_own(tables: Mapping[str, Any], place: str = "pyproject.toml") -> tuple[DeviceSpec, ...]:
    """Return the user's ``[tool.perfgate.device.NAME]`` tables; NAME is the default pattern."""
    return tuple(
        parse_spec(
            {"name": name, "pattern": re.escape(name), "source": "configuration", **_mapping(table, name, place)},
            place=f"{place} [tool.perfgate.device.{name}]",
        )
        for name, table in tables.items()
    )


def parse_spec(line: Mapping[str, Any], place: str) -> DeviceSpec:
    """Return one device from its entry; every key must be known and every number positive."""
    unknown = sorted(set(line) - set(_SCALES) - set(_PLAIN))
    if unknown:
        keys = ", ".join(sorted((*_SCALES, *_PLAIN)))
        raise PerfgateError("device-entry", f"unknown key {unknown[0]!r}", fix=f"write one of {keys}", place=place)
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
    """Return shared memory (KiB an SM, KiB a block), registers, warps, blocks, allocation units and the reserve."""
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
    """Return ``peaks`` of the shipped file, or the user's ``dense_tflops`` table at the boost clock."""
    own = {_dtype(name): (rate, None, line.get("boost_mhz")) for name, rate in line.get("dense_tflops", {}).items()}
    return tuple(_peak(dtype, row, line) for dtype, row in {**line.get("peaks", {}), **own}.items())


def _dtype(name: str) -> str:
    """Return a dtype as work names it; a peak under another name would never be used."""
    if name not in _DTYPES:
        raise ValueError(f"dense_tflops: {name!r} is not one of {', '.join(_DTYPES)}")
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


VARIABLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"


@value
class Slot:
    """A card of the machine, and its MIG instances."""

    card: Device
    parts: tuple[Device, ...] = ()

    @property
    def default_devices(self) -> tuple[Device, ...]:
        """Return what CUDA shows of the card by default: for a card with instances, the first one."""
        return self.parts[:1] or (self.card,)


def visible_cards(nvml: Nvml, environ: Mapping[str, str] | None = None) -> tuple[Device, ...]:
    """Return the devices that CUDA shows in this environment, in its order; none without a driver."""
    if not nvml.availability().usable:
        return ()
    env = os.environ if environ is None else environ
    named = not any(is_number(entry.strip()) for entry in env.get(VARIABLE, "0").split(","))
    cards = nvml.every(answering=named)  # a lost card shifts numbers, but no names
    slots = tuple(Slot(card=card.described(), parts=tuple(part.described() for part in card.parts())) for card in cards)
    return parse_visible(env.get(VARIABLE), slots, sorted_by_bus=env.get(ORDER) == "PCI_BUS_ID")


def parse_visible(text: str | None, slots: Sequence[Slot], *, sorted_by_bus: bool) -> tuple[Device, ...]:
    """Return the devices of a variable's value up to the first invalid entry; none if one is named twice."""
    if text is None:
        every = [device for slot in slots for device in slot.default_devices]
        return _with_cuda_numbers([d for d in every if not d.uuid.startswith("MIG-")] or every[:1])
    entries = [entry.strip() for entry in text.split(",")]
    if not sorted_by_bus and any(is_number(entry) for entry in entries):
        _refuse_mixed_cards(slots)
    devices: list[Device] = []
    for entry in entries:
        device = _device_of_entry(entry, slots)
        if device is None:
            break
        if device in devices:
            return ()
        devices.append(device)
    return _with_cuda_numbers(devices)


def surroundings(devices: Sequence[Device]) -> dict[str, str]:
    """Return the variable that shows only these devices, independent of their numbers."""
    return {VARIABLE: ",".join(device.uuid for device in devices)}


def _with_cuda_numbers(devices: Sequence[Device]) -> tuple[Device, ...]:
    """Return the devices with CUDA's numbers; that of the management library becomes a fact."""
    return tuple(
        replace(device, index=at, facts=(*device.facts, ("nvml index", str(device.index))))
        for at, device in enumerate(devices)
    )


def _device_of_entry(entry: str, slots: Sequence[Slot]) -> Device | None:
    if is_number(entry):
        return slots[int(entry)].default_devices[0] if int(entry) < len(slots) else None
    if entry.startswith("MIG-GPU-"):
        return _instance(entry, slots)
    every = [device for slot in slots for device in (slot.card, *slot.parts)]
    devices = [device for device in every if len(entry) > len("GPU-") and device.uuid.startswith(entry)]
    return devices[0] if len(devices) == 1 else None


def is_number(entry: str) -> bool:
    """Return whether CUDA reads the entry as a number, which only has ASCII digits."""
    return entry.isascii() and entry.isdigit()


def _instance(entry: str, slots: Sequence[Slot]) -> Device | None:
    """Return the instance of the older spelling ``MIG-<card>/<instance>/<part of it>``."""
    card, _, numbers = entry.removeprefix("MIG-").partition("/")
    slot = next((slot for slot in slots if slot.card.uuid == card), None)
    wanted = numbers.split("/")
    parts = slot.parts if slot else ()
    return next((part for part in parts if [dict(part.facts).get("instance", ""), "0"] == wanted), None)


def _refuse_mixed_cards(slots: Sequence[Slot]) -> None:
    """Raise for unlike cards unless the order is set: CUDA then numbers the fastest card first, which is unknown."""
    if len({slot.card.name for slot in slots}) > 1:
        raise PerfgateError(
            "device-unmapped",
            f"{VARIABLE} counts unlike cards, and CUDA puts the fastest first",
            fix=f"export {ORDER}=PCI_BUS_ID, or name devices by UUID",
        )


ROCR, HIP, ALIAS = "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"
"""HIP reads the third if the second is not set."""

_NUMBER = "hip index"


def visible_amd(amd: Amd, environ: Mapping[str, str] | None = None) -> tuple[Device, ...]:
    """Return the devices that HIP shows in this environment, in its order; none without a driver."""
    if not amd.availability().usable:
        return ()
    env = os.environ if environ is None else environ
    every = sorted((card.described() for card in amd.every()), key=lambda device: device.index)
    devices = [
        replace(device, facts=(*device.facts, (_NUMBER, str(at))))
        for at, device in enumerate(chosen(every, env.get(ROCR)))
    ]
    shown = chosen(devices, env.get(HIP, env.get(ALIAS)))
    return tuple(replace(device, index=at) for at, device in enumerate(shown))


def surroundings_amd(devices: Sequence[Device], environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables that show only these devices; HIP numbers what the first variable left."""
    env = os.environ if environ is None else environ
    numbers = ",".join(dict(device.facts)[_NUMBER] for device in devices)
    return {name: numbers for name in (HIP, ALIAS) if name == HIP or name in env}


def chosen(devices: Sequence[Device], text: str | None) -> list[Device]:
    """Return the devices of a variable's value up to the first invalid entry."""
    if text is None:
        return list(devices)
    picked: list[Device] = []
    for entry in (entry.strip() for entry in text.split(",")):
        device = _amd_named(entry, devices)
        if device is None or device in picked:
            break
        picked.append(device)
    return picked


def _amd_named(entry: str, devices: Sequence[Device]) -> Device | None:
    if is_number(entry):
        return devices[int(entry)] if int(entry) < len(devices) else None
    names = ({device.uuid, dict(device.facts).get("hip uuid", "")} - {""} for device in devices)
    return next((device for device, identifiers in zip(devices, names) if entry in identifiers), None)


SIZES = (256, 512, 1536)
"""Rows and columns: the large ones reach a library's best rate, the small ones end before a busy neighbour's turn."""

COPY, MOST_BYTES, DEFAULT_CACHE = 4, 512 << 20, 32 << 20
"""The size of a copy, as a multiple of the last cache; the largest copy; the cache where none is known."""


@array_value
class Load:
    """Work of a known size."""

    name: str
    call: Call
    dtype: str = ""
    flops: float = 0.0
    bytes: float = 0.0


def host_loads(device: Device) -> Iterator[Load]:
    """Yield products of each size in single and in double precision, and a copy larger than the last cache."""
    import numpy as np

    generator = np.random.default_rng(0)
    for dtype, kind, n in ((*one, n) for one in (("fp32", np.float32), ("fp64", np.float64)) for n in SIZES):
        a, b = (generator.standard_normal((n, n)).astype(kind) for _ in range(2))
        yield Load(name=f"product {dtype} {n}", dtype=dtype, flops=2.0 * n**3, call=_product(a, b, np.empty_like(a)))
    size = int(min(MOST_BYTES, COPY * (device.cache_bytes or DEFAULT_CACHE)))
    source = generator.integers(0, 256, size, dtype=np.uint8)
    yield Load(name="copy", bytes=2.0 * size, call=_copy(source, np.empty_like(source)))


def _product(a: Any, b: Any, out: Any) -> Call:
    import numpy as np

    return lambda: np.matmul(a, b, out=out)


def _copy(source: Any, target: Any) -> Call:
    import numpy as np

    return lambda: np.copyto(target, source)


TORCH_SIZE = 8192

DTYPES = (("bf16", "bfloat16"), ("fp16", "float16"), ("tf32", "float32"), ("fp32", "float32"), ("fp64", "float64"))


def torch_loads(device: Device) -> Iterator[Load]:
    """Yield a product of each dtype, and a copy larger than the last cache."""
    import torch

    for dtype, kind in DTYPES:
        matrices = [torch.randn(TORCH_SIZE, TORCH_SIZE, device="cuda", dtype=torch.float32) for _ in range(2)]
        a, b = (matrix.to(getattr(torch, kind)) for matrix in matrices)
        call = _torch_product(torch, a, b, tf32=dtype == "tf32")
        yield Load(name=f"product {dtype}", dtype=dtype, flops=2.0 * TORCH_SIZE**3, call=call)
    count = int(COPY * (device.cache_bytes or DEFAULT_CACHE))
    source = torch.randint(0, 256, (count,), device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)
    yield Load(name="copy", bytes=2.0 * count, call=lambda: target.copy_(source))


def _torch_product(torch: Any, a: Any, b: Any, *, tf32: bool) -> Call:
    """Return a product after setting the process's precision of float32 products, before each call."""
    out = torch.empty_like(a)

    def call() -> None:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.mm(a, b, out=out)

    return call
