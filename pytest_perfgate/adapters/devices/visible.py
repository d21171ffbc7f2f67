"""Which cards libraries see."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import array_value, value

if TYPE_CHECKING:
    from pytest_perfgate.adapters.bindings.amdsmi import Amd
    from pytest_perfgate.adapters.bindings.nvml import Nvml
    from pytest_perfgate.model.device import Device
    from pytest_perfgate.model.ports import Call

VARIABLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"


@value
class Slot:
    """A card of the machine, and the instances that MIG cuts it into."""

    card: Device
    parts: tuple[Device, ...] = ()

    @property
    def whole(self) -> tuple[Device, ...]:
        """What CUDA shows of it where nobody asks: of a card cut into instances, the first."""
        return self.parts[:1] or (self.card,)


def visible_cards(nvml: Nvml, environ: Mapping[str, str] | None = None) -> tuple[Device, ...]:
    """The devices that CUDA shows to a process with this environment, in its order; none without a driver."""
    if not nvml.availability().usable:
        return ()
    env = os.environ if environ is None else environ
    slots = tuple(
        Slot(card=card.described(), parts=tuple(part.described() for part in card.parts())) for card in nvml.every()
    )
    return parse_visible(env.get(VARIABLE), slots, sorted_by_bus=env.get(ORDER) == "PCI_BUS_ID")


def parse_visible(text: str | None, slots: Sequence[Slot], *, sorted_by_bus: bool = False) -> tuple[Device, ...]:
    """What a value of the variable shows, up to an entry that names nothing; nothing where one is named twice."""
    if text is None:
        every = [device for slot in slots for device in slot.whole]
        return _numbered([d for d in every if not d.uuid.startswith("MIG-")] or every[:1])
    entries = [entry.strip() for entry in text.split(",")]
    if not sorted_by_bus and any(is_number(entry) for entry in entries):
        _same_order(slots)
    devices: list[Device] = []
    for entry in entries:
        device = _named(entry, slots)
        if device is None:
            break
        if device in devices:
            return ()
        devices.append(device)
    return _numbered(devices)


def surroundings(devices: Sequence[Device]) -> dict[str, str]:
    """The variable that shows these devices and no others, whatever their numbers are."""
    return {VARIABLE: ",".join(device.uuid for device in devices)}


def _numbered(devices: Sequence[Device]) -> tuple[Device, ...]:
    """With the number that CUDA gives; that of the management library is a fact."""
    return tuple(
        replace(device, index=at, facts=(*device.facts, ("nvml index", str(device.index))))
        for at, device in enumerate(devices)
    )


def _named(entry: str, slots: Sequence[Slot]) -> Device | None:
    if is_number(entry):
        return slots[int(entry)].whole[0] if int(entry) < len(slots) else None
    if entry.startswith("MIG-GPU-"):
        return _instance(entry, slots)
    every = [device for slot in slots for device in (slot.card, *slot.parts)]
    devices = [device for device in every if len(entry) > len("GPU-") and device.uuid.startswith(entry)]
    return devices[0] if len(devices) == 1 else None


def is_number(entry: str) -> bool:
    """Digits as CUDA reads them: other alphabets have some that are none to it."""
    return entry.isascii() and entry.isdigit()


def _instance(entry: str, slots: Sequence[Slot]) -> Device | None:
    """The older spelling of an instance: ``MIG-<card>/<instance>/<part of it>``."""
    card, _, numbers = entry.removeprefix("MIG-").partition("/")
    slot = next((slot for slot in slots if slot.card.uuid == card), None)
    wanted = numbers.split("/")
    parts = slot.parts if slot else ()
    return next((part for part in parts if [dict(part.facts).get("instance", ""), "0"] == wanted), None)


def _same_order(slots: Sequence[Slot]) -> None:
    """Numbers mean the fastest card first unless told otherwise: of unlike cards nobody can tell which that is."""
    if len({slot.card.name for slot in slots}) > 1:
        raise PerfgateError(
            "device-unmapped",
            f"{VARIABLE} counts unlike cards, and CUDA puts the fastest first",
            mend=f"export {ORDER}=PCI_BUS_ID, or name devices by UUID",
        )


ROCR, HIP, ALIAS = "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"
"""The third is read by HIP where the second is not set."""

_NUMBER = "hip index"


def visible_amd(amd: Amd, environ: Mapping[str, str] | None = None) -> tuple[Device, ...]:
    """The devices that HIP shows to a process with this environment, in its order; none without a driver."""
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
    """The variables that show these devices and no others; HIP has numbers, counted after what the other left."""
    env = os.environ if environ is None else environ
    numbers = ",".join(dict(device.facts)[_NUMBER] for device in devices)
    return {name: numbers for name in (HIP, ALIAS) if name == HIP or name in env}


def chosen(devices: Sequence[Device], text: str | None) -> list[Device]:
    """What a value of a variable shows, up to an entry that names nothing."""
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
    if entry.isascii() and entry.isdigit():
        return devices[int(entry)] if int(entry) < len(devices) else None
    names = ({device.uuid, dict(device.facts).get("hip uuid", "")} - {""} for device in devices)
    return next((device for device, known in zip(devices, names) if entry in known), None)


SIZE = 1536
"""Rows and columns: large enough for a library to reach its best, small enough to take a moment."""

COPY = 4
"""Times the last cache."""

MOST_BYTES = 512 << 20

DEFAULT_CACHE = 32 << 20


@array_value
class Load:
    """Work of a known size."""

    name: str
    call: Call
    dtype: str = ""
    flops: float = 0.0
    bytes: float = 0.0


def host_loads(device: Device) -> Iterator[Load]:
    """A product in single and in double precision, and a copy larger than the last cache."""
    import numpy as np

    generator = np.random.default_rng(0)
    for dtype, kind in (("fp32", np.float32), ("fp64", np.float64)):
        a, b = (generator.standard_normal((SIZE, SIZE)).astype(kind) for _ in range(2))
        yield Load(name=f"product {dtype}", dtype=dtype, flops=2.0 * SIZE**3, call=_product(a, b, np.empty_like(a)))
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


def torch_loads(device: Device, where: str = "cuda", size: int = TORCH_SIZE) -> Iterator[Load]:
    """A product of each dtype, and a copy larger than the last cache."""
    import torch

    for dtype, kind in DTYPES:
        a, b = (torch.randn(size, size, device=where, dtype=torch.float32).to(getattr(torch, kind)) for _ in range(2))
        tf32 = dtype == "tf32"
        yield Load(name=f"product {dtype}", dtype=dtype, flops=2.0 * size**3, call=_torch_product(torch, a, b, tf32))
    count = int(COPY * (device.cache_bytes or DEFAULT_CACHE))
    source = torch.randint(0, 256, (count,), device=where, dtype=torch.uint8)
    target = torch.empty_like(source)
    yield Load(name="copy", bytes=2.0 * count, call=lambda: target.copy_(source))


def _torch_product(torch: Any, a: Any, b: Any, tf32: bool) -> Call:
    """The precision of float32 products is a switch of the process: set just before, each time."""
    out = torch.empty_like(a)

    def call() -> None:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.mm(a, b, out=out)

    return call
