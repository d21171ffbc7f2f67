"""Which cards of the machine the libraries see, and under which number: ``CUDA_VISIBLE_DEVICES``, read as CUDA does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_perfgate.adapters.bindings.nvml import Nvml
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import value

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
    found: list[Device] = []
    for entry in entries:
        device = _named(entry, slots)
        if device is None:
            break
        if device in found:
            return ()
        found.append(device)
    return _numbered(found)


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
    found = [device for device in every if len(entry) > len("GPU-") and device.uuid.startswith(entry)]
    return found[0] if len(found) == 1 else None


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
