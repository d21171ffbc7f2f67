"""Which of AMD's cards libraries see: ``ROCR_VISIBLE_DEVICES`` first, ``HIP_VISIBLE_DEVICES`` in what it leaves."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_perfgate.adapters.bindings.amdsmi import Amd
from pytest_perfgate.model.device import Device

ROCR, HIP, ALIAS = "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"
"""The third is read by HIP where the second is not set."""
_NUMBER = "hip index"


def visible_amd(amd: Amd, environ: Mapping[str, str] | None = None) -> tuple[Device, ...]:
    """The devices that HIP shows to a process with this environment, in its order; none without a driver."""
    if not amd.availability().usable:
        return ()
    env = os.environ if environ is None else environ
    every = sorted((card.described() for card in amd.every()), key=lambda device: device.index)
    left = [
        replace(device, facts=(*device.facts, (_NUMBER, str(at))))
        for at, device in enumerate(chosen(every, env.get(ROCR)))
    ]
    shown = chosen(left, env.get(HIP, env.get(ALIAS)))
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
    found: list[Device] = []
    for entry in (entry.strip() for entry in text.split(",")):
        device = _named(entry, devices)
        if device is None or device in found:
            break
        found.append(device)
    return found


def _named(entry: str, devices: Sequence[Device]) -> Device | None:
    if entry.isascii() and entry.isdigit():
        return devices[int(entry)] if int(entry) < len(devices) else None
    names = ({device.uuid, dict(device.facts).get("hip uuid", "")} - {""} for device in devices)
    return next((device for device, known in zip(devices, names) if entry in known), None)
