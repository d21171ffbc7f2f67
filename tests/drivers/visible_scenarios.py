"""Which cards libraries see, each in a process of its own; run by test_visible.py on a library of our own making."""

from __future__ import annotations

import ctypes
import os
from dataclasses import replace
from types import SimpleNamespace

from pytest_perfgate.adapters.bindings.nvml import Nvml
from pytest_perfgate.adapters.devices.visible import visible_cards
from pytest_perfgate.app.instrument import named_device
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.plugin.measuring import require_devices
from pytest_perfgate.wiring.devices import fleet, pick_device

CARD = "GPU-{}1111111-2222-3333-4444-555555555555"
PART = "MIG-a{}111111-2222-3333-4444-555555555555"
VALUES = (
    "2,0", "1,9,0", "1,-1,0", "0,0", "3", "NoDevFiles", "GPU-2,GPU-4", "²", "GPU-", f"{CARD.format(3)}, {PART.format(2)}",
    f"MIG-{CARD.format(4)}/8/0", f"MIG-{CARD.format(4)}/9/0", "MIG-a",
)  # fmt: skip


def scenario(function):
    function.__scenario__ = True
    return function


def switch(name: str) -> None:
    ctypes.c_int.in_dll(ctypes.CDLL("libnvidia-ml.so.1"), f"fake_{name}").value = 1


@scenario
def visible() -> dict:
    """What each value of the variable shows, as numbers of the management library."""
    switch("mig")

    def shown(text, **more) -> list[str]:
        env = {} if text is None else {"CUDA_VISIBLE_DEVICES": text}
        devices = visible_cards(Nvml(), {**env, **more})
        assert [device.index for device in devices] == list(range(len(devices)))
        return [f"{dict(d.facts)['nvml index']} {d.pci} {d.name}" for d in devices]

    listings = {text or "unset": shown(text) for text in (None, *VALUES)}
    switch("unlike")
    try:
        shown("0,2")
    except PerfgateError as error:
        listings["unlike"] = error.code.name
    return {**listings, "sorted": shown("0,2", CUDA_DEVICE_ORDER="PCI_BUS_ID"), "none": shown("")}


@scenario
def seen_through_two_libraries() -> dict:
    """A card by its UUID with and without the mark, by its bus, and an instance by its own: always the right clocks."""
    switch("mig")
    nvml = Nvml()
    plain = replace(nvml.every()[0].described(), pci="")
    devices = [
        replace(plain, uuid=CARD.format(3)), replace(plain, uuid=CARD.format(3)[4:]),
        replace(plain, uuid="", pci="00000000:5B:00.0"), replace(plain, uuid=PART.format(1)),
    ]  # fmt: skip
    return {
        "uuids": [nvml.device(device).uuid() for device in devices],
        "part": dict(nvml.every()[3].parts()[1].described().facts),
    }


@scenario
def picked_device() -> dict:
    os.environ["CUDA_VISIBLE_DEVICES"] = "3,1"
    machine = fleet()
    picks = {name: named_device(machine.devices, name).pci for name in ("0", "1", CARD.format(2), CARD.format(2)[4:])}
    for wrong in ("2", CARD.format(1)):
        try:
            named_device(machine.devices, wrong)
        except PerfgateError as error:
            picks[f"not {wrong}"] = error.code.name
    picks["few"] = [fleet().few(2), fleet().few(3)]
    options = SimpleNamespace(perfgate_device="1")
    pick_device(options)
    pick_device(options)
    try:
        require_devices(2)
    except PerfgateError as error:
        picks["insisted"] = error.code.name
    return {**picks, "sees": os.environ["CUDA_VISIBLE_DEVICES"], "option": options.perfgate_device}
