"""The composition root of the doctor: everything that it looks at."""

from __future__ import annotations

from typing import Any

from pytest_perfgate.model.capabilities import SupportsOwnQueue
from pytest_perfgate.wiring import clocks as clocks_page
from pytest_perfgate.wiring import devices as devices_page


def ward(instruments: Any, profilers: Any) -> Any:
    """What the doctor looks at, from the instruments of the command line."""
    from pytest_perfgate.adapters.devices import permissions
    from pytest_perfgate.adapters.devices.locks import read_locks
    from pytest_perfgate.app.diagnosis import Ward, timed_here

    devices, libraries = devices_page.machine(instruments.runtimes)
    for runtime in instruments.runtimes:
        if runtime.availability().usable and isinstance(runtime, SupportsOwnQueue):
            runtime.own_queue()
    management = clocks_page.management()
    library = management.availability()
    shown, runtimes = permissions.visible_devices(), [r for r in instruments.runtimes if r.availability().usable]
    return Ward(
        devices=devices,
        libraries=libraries,
        runtimes=runtimes,
        timers=instruments.timers,
        management=library,
        profilers=[timed_here(profiler.availability(), runtimes) for profiler in profilers],
        gpu_permissions=permissions.probe_gpu_permissions(driven=library.usable),
        host_permissions=permissions.probe_host_permissions(),
        locks=read_locks(),
        visible=shown or "nothing restricts them",
        restricted=bool(shown),
        resolution=devices_page.finest,
        driven=[card.described().name for card in management.every()] if library.usable else [],
    )
