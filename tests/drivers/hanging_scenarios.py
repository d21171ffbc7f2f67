"""A driver that never returns, each in a process of its own; run by test_hanging.py on drivers of our own making."""

from __future__ import annotations

import contextlib
import io
import os
import threading
import time
from pathlib import Path

from clock_scenarios import LOCK, OBSERVE, TRY, Library, card, region, scenario

from pytest_perfgate.adapters.bindings import border as patience
from pytest_perfgate.adapters.bindings import nvml
from pytest_perfgate.adapters.bindings.nvml import Nvml
from pytest_perfgate.adapters.devices.clock_locks import read_locks, this_run, write_lock
from pytest_perfgate.adapters.devices.clocks import NvmlClocks
from pytest_perfgate.model.errors import PerfgateError
from tests.drivers.patient import patient_until


def hasty() -> None:
    """Patience of a fifth of a second, counted from when the driver hangs."""
    nvml.START_S = patience.PATIENCE_S = 0.2
    patient_until(lambda: Library().hung)


def outcome(ask) -> list[str]:
    try:
        ask()
    except PerfgateError as error:
        return [error.code.name, error.what]
    return []


@scenario
def the_start_hangs() -> dict:
    """In a measurement, in the controller's look for devices, in `clocks show` and `clocks lock`."""
    from pytest_perfgate.adapters.runtimes.host import managed
    from pytest_perfgate.cli import main
    from pytest_perfgate.wiring.devices import fleet

    device = card()
    hasty()
    Library().hang = 1
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        codes = [main(["clocks", action]) for action in ("show", "lock")]
    return {
        "held": outcome(lambda: NvmlClocks().hold(device, OBSERVE).__enter__()),
        "tried": outcome(lambda: NvmlClocks().settled(device, TRY)),
        "why": Nvml().availability().why, "facts": managed(device.uuid, device.pci), "fleet": [device.name for device in fleet().devices],
        "codes": codes, "said": output.getvalue(),
    }  # fmt: skip


@scenario
def finding_a_device_hangs() -> dict:
    device = card()
    hasty()
    Library().hang = 2
    return {"held": [outcome(lambda: NvmlClocks().hold(device, OBSERVE).__enter__()) for _ in range(2)]}


@scenario
def the_first_reading_hangs() -> dict:
    """Where the clocks are observed, and where they are locked: they are put back."""
    device, library = card(), Library()
    hasty()
    observed, locked = NvmlClocks(), NvmlClocks()
    assert observed.availability().usable
    assert locked.availability().usable
    library.hang = 3
    result = outcome(lambda: observed.hold(device, OBSERVE).__enter__())
    return {"held": result, "again": outcome(lambda: locked.hold(device, LOCK).__enter__()), "locked": library.locked}


@scenario
def putting_back_hangs() -> dict:
    hasty()
    library = Library()
    return {
        "held": outcome(lambda: region(LOCK, during=lambda: setattr(library, "hang", 4))),
        "left": len(read_locks()),
    }


@scenario
def locking_takes_longer_than_anybody_waits() -> dict:
    """The driver locks the card after all."""
    import pynvml

    plain, device, done = pynvml.nvmlDeviceSetGpuLockedClocks, card(), threading.Event()
    hasty()

    def late(*arguments: object) -> None:
        Library().hung = 1
        while not patience.why_disabled("NVML"):
            time.sleep(0.01)
        plain(*arguments)
        done.set()

    pynvml.nvmlDeviceSetGpuLockedClocks = late
    result = outcome(lambda: NvmlClocks().hold(device, LOCK).__enter__())
    done.wait(60)
    return {"held": result, "locked": Library().locked, "owners": [lock.pid == os.getpid() for lock in read_locks()]}


@scenario
def denied_where_a_lock_was_left() -> dict:
    """By a process that is gone: who has no permission must not strike out its name."""
    path = Path(write_lock(card().uuid, 1.4e9, memory=True).path)
    path.write_text(path.read_text().replace(str(os.getpid()), str(2**22 + 1)))
    before, Library().permission = path.read_text(), 4
    result = outcome(lambda: NvmlClocks().hold(card(), LOCK).__enter__())
    return {"held": result, "same": path.read_text() == before, "stale": [lock.stale for lock in read_locks()]}


@scenario
def locks_that_dead_children_left() -> dict:
    """Those of this run are put back; that of another run is named and left."""
    from pytest_perfgate.wiring.devices import release_stale_locks

    library, ours, dead = Library(), card().uuid, str(2**22 + 1)
    other = ours.replace("GPU-1", "GPU-2")
    for device in (ours, other):
        path = Path(write_lock(device, 1.5e9).path)
        text = path.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {dead}')
        path.write_text(text if device == ours else text.replace(this_run(), "1 5"))
    library.locked = 1500
    messages = release_stale_locks()
    return {
        "said": messages,
        "locked": library.locked,
        "left": [lock.device == other for lock in read_locks()],
        "again": release_stale_locks(),
    }
