"""Access to runtimes, timers, devices and clocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_perfgate.model.device import SupportsWait

if TYPE_CHECKING:
    from pytest_perfgate.adapters.bindings.amdsmi import Amd
    from pytest_perfgate.adapters.bindings.nvml import Nvml
    from pytest_perfgate.adapters.devices.clocks import MachineClocks
    from pytest_perfgate.adapters.devices.leases import DeviceLeases
    from pytest_perfgate.adapters.devices.visible import DeviceCatalogue
    from pytest_perfgate.adapters.runtimes.arrays import ArrayContents
    from pytest_perfgate.adapters.runtimes.host import HostRuntime
    from pytest_perfgate.adapters.stores.stored_forms import CeilingStore
    from pytest_perfgate.adapters.timers.auto import AutoTimer, GraphTimer
    from pytest_perfgate.adapters.timers.bench import Rules
    from pytest_perfgate.adapters.timers.cupti import CuptiTimer
    from pytest_perfgate.adapters.timers.events import BlockingTimer, EventsTimer
    from pytest_perfgate.adapters.timers.host import HostTimer
    from pytest_perfgate.app.spread import RunDevices
    from pytest_perfgate.model.device import Availability, Device
    from pytest_perfgate.model.ports import Call, Runtime
    from pytest_perfgate.model.project import Config


DEVICE_NS = 0.5e9
"""The least device time of a measurement on a GPU."""


def host_runtime() -> HostRuntime:
    from pytest_perfgate.adapters.devices.host import probe_host
    from pytest_perfgate.adapters.runtimes.host import HostRuntime

    return HostRuntime(probe_host)


def host_timer() -> HostTimer:
    """Return the host's timer with the rules of core."""
    from pytest_perfgate.adapters.timers.host import HostTimer
    from pytest_perfgate.core.stats.summary import Stopping, WarmUp

    return HostTimer(Stopping(), WarmUp())


def rules() -> Rules:
    """Return the rules of core for a device's timer."""
    from pytest_perfgate.adapters.timers.bench import Rules
    from pytest_perfgate.core.stats.summary import Stopping, WarmUp

    return Rules(stop=Stopping(least_ns=DEVICE_NS), warm=WarmUp())


def events_timer() -> EventsTimer:
    """Return the timer with events around each call."""
    from pytest_perfgate.adapters.timers.events import EventsTimer

    return EventsTimer(rules())


def blocking_timer() -> BlockingTimer:
    """Return the timer with events in a blocked queue."""
    from pytest_perfgate.adapters.timers.events import BlockingTimer

    return BlockingTimer(rules())


def graph_timer() -> GraphTimer:
    """Return the timer with a graph of many calls."""
    from pytest_perfgate.adapters.timers.auto import GraphTimer

    return GraphTimer(rules())


def cupti_timer() -> CuptiTimer:
    """Return the timer by kernel records; its check for lost records runs in another process, as it may crash."""
    from pytest_perfgate.adapters.bindings.cupti import CuptiRecorder
    from pytest_perfgate.adapters.timers.cupti import CuptiTimer

    return CuptiTimer(rules(), CuptiRecorder(), cupti_unproved)


def cupti_unproved() -> str:
    """Return why CUPTI's counter of lost records is not trusted here; checked once for a machine and its driver."""
    from pytest_perfgate.adapters.bindings.cupti import proof_failure
    from pytest_perfgate.adapters.devices.clock_locks import lock_folder

    return proof_failure(lock_folder())


def auto_timer() -> AutoTimer:
    """Return the timer that chooses among those of devices; a host has its own."""
    from pytest_perfgate.adapters.timers.auto import AutoTimer

    return AutoTimer(rules(), [events_timer(), cupti_timer(), blocking_timer(), graph_timer()])


def energy_meter(device: Device) -> Callable[[], float | None] | None:
    """Return a function that reads a card's energy counter, or None if its maker's library has none."""
    from pytest_perfgate.adapters.bindings.nvml import Nvml
    from pytest_perfgate.model.errors import PerfgateError

    nvml = Nvml()
    if device.kind != "gpu" or not nvml.availability().usable:
        return None
    try:
        return nvml.device(device).energy
    except PerfgateError:
        return None


def clocks(tell: Callable[[str], None] | None = None) -> MachineClocks:
    """Return what watches or locks a device's clocks; ``tell`` is called when a hot device is waited for."""
    from pytest_perfgate.adapters.devices.clocks import MachineClocks

    machine_clocks = MachineClocks()
    machine_clocks.tell_waits(tell)
    return machine_clocks


def fleet(tell: Callable[[str], None] | None = None) -> RunDevices:
    """Return the devices that this run may use: those that CUDA shows, else those of HIP."""
    from pytest_perfgate.adapters.bindings.amdsmi import Amd
    from pytest_perfgate.adapters.bindings.border import why_disabled
    from pytest_perfgate.adapters.bindings.nvml import Nvml
    from pytest_perfgate.adapters.devices.visible import surroundings, surroundings_amd, visible_amd, visible_cards
    from pytest_perfgate.app.spread import RunDevices

    hold, nvml = leases(tell).hold_all, Nvml()
    if nvml.availability().usable or why_disabled(nvml.maker):
        return RunDevices(devices=visible_cards(nvml), surroundings=surroundings, hold=hold, near_cores=near_to)
    return RunDevices(devices=visible_amd(Amd()), surroundings=surroundings_amd, hold=hold, near_cores=near_to)


def near_to(devices: Iterable[Device]) -> Mapping[str, str]:
    """Return the variables that put a child on the cores near these devices."""
    from pytest_perfgate.adapters.devices.host import near_cores

    return near_cores(device.pci for device in devices)


def untouched() -> bool:
    """Return whether this process has not used a device yet."""
    from pytest_perfgate.adapters.system.processes import drivers

    names = drivers()
    if "libcuda.so" not in names:
        return not names
    from pytest_perfgate.adapters.bindings.cuda_driver import CudaDriver

    return names == {"libcuda.so"} and CudaDriver().untouched()


def wait_for_all() -> Call | None:
    """Return a wait for the work that this process gave to devices; None if it uses no device."""
    from pytest_perfgate.adapters.runtimes.host import wait_for_all

    return wait_for_all()


def unforkable() -> str:
    """Return why this process must not be forked; "" if it has one thread and no initialised driver."""
    from pytest_perfgate.adapters.bindings.cuda_driver import CudaDriver
    from pytest_perfgate.adapters.system.processes import drivers, threads

    if (count := threads()) != 1:
        return f"{count or 'an unknown number of'} threads run once all is imported"
    if others := sorted(drivers() - {"libcuda.so"}):
        return f"{others[0]} is loaded, and cannot tell whether it was initialised"
    return "importing or collecting initialised CUDA" if drivers() and CudaDriver().initialised() else ""


def settle_near() -> None:
    """Move this child near its devices if the run says so, after imports that count cores."""
    from pytest_perfgate.adapters.devices import host

    host.settle_near()


def keys_here() -> tuple[str, ...]:
    """Return patterns of the keys of this machine's devices."""
    from pytest_perfgate.app.instrument import key_patterns

    return key_patterns(host_runtime().device(), fleet().devices)


def device_here() -> str:
    """Return the name of the cards that a run here measures on, or the host's key without any."""
    cards = fleet().of_same_kind
    return cards[0].name if cards else host_runtime().device().key


def pick_device(options: Any) -> None:
    """Make only the device of ``--perfgate-device`` visible to this process and its children.

    If devices cannot be distinguished in advance, the measured device is compared with the requested one.
    """
    import os

    from pytest_perfgate.app.instrument import named_device

    devices = fleet() if options.perfgate_device else None
    if devices is None or not devices.devices:
        return
    device = named_device(devices.devices, options.perfgate_device)
    os.environ.update(devices.surroundings([device]))
    options.perfgate_device = device.uuid


def lead_run() -> None:
    """Make this process the head of the run, so that processes it starts are not foreign to a measurement."""
    import os

    os.environ.setdefault("PERFGATE_ROOT_PID", str(os.getpid()))


def leases(tell: Callable[[str], None] | None = None) -> DeviceLeases:
    """Return leases for one measurement at a time on a device; ``tell`` is called when one is waited for."""
    from pytest_perfgate.adapters.devices.leases import DeviceLeases

    return DeviceLeases(tell=tell)


def contents() -> ArrayContents:
    from pytest_perfgate.adapters.runtimes.arrays import ArrayContents

    return ArrayContents()


def ceiling_store(baselines: Any) -> CeilingStore:
    """Return the store of measured ceilings, in the folder of a device's baselines."""
    from pytest_perfgate.adapters.stores.stored_forms import CeilingStore

    return CeilingStore(lambda device: baselines.path(device, "ceilings").parent)


def with_measured_ceilings(baselines: Any) -> Callable[[Device], Device]:
    """Return a function that adds the measured ceilings to a device."""
    from functools import partial

    from pytest_perfgate.app.instrument import ceiled

    return partial(ceiled, ceiling_store(baselines).read)


def catalogue(project: Config) -> DeviceCatalogue:
    """Return the data sheets, those of the project first."""
    from pytest_perfgate.adapters.devices.visible import DeviceCatalogue, parse_own

    return DeviceCatalogue(parse_own(dict(project.device), place=project.source or "pyproject.toml"))


def project_catalogue() -> DeviceCatalogue:
    from pathlib import Path

    from pytest_perfgate.adapters.stores.configuration import read_config

    return catalogue(read_config(Path.cwd()))


def ceiling_bench(project: Config, runtime: str, policy: str, tell: Callable[[str], None] | None = None) -> Any:
    """Return the device, the library and the loads for measuring ceilings, and a function that takes samples."""
    import time
    from types import SimpleNamespace

    from pytest_perfgate.app.devices import HOST_PLAN, PLAN, TURNS
    from pytest_perfgate.app.instrument import keyed, lease_name, watched
    from pytest_perfgate.model.plan import ClockPolicy

    if runtime == "host":
        from pytest_perfgate.adapters.devices.visible import host_loads

        host, timer = host_runtime(), host_timer()
        device = host.device()
        take = lambda call: timer.measure(call, HOST_PLAN, host)  # noqa: E731 - like the other one
        return SimpleNamespace(device=device, library="host", take=take, loads=[*host_loads(device)] * TURNS)
    from pytest_perfgate.adapters.devices.visible import torch_loads
    from pytest_perfgate.adapters.runtimes.torch import TorchRuntime
    from pytest_perfgate.model.errors import PerfgateError

    torch = TorchRuntime(catalogue(project).lookup)
    availability = torch.availability()
    if not availability.usable:
        raise PerfgateError("runtime-unavailable", f"torch: {availability.why}", fix=availability.fix)
    plan = replace(PLAN, clocks=ClockPolicy(policy))
    device, card, events, lease = keyed(torch.device(), plan), clocks(tell), events_timer(), leases(tell)

    def measure_leased(call: Any) -> Any:
        with lease.hold(lease_name(device)):
            return watched(lambda p: events.measure(call, p, torch), device, plan, card, time.perf_counter_ns)

    return SimpleNamespace(device=device, library="torch", take=measure_leased, loads=torch_loads(device))


def machine(runtimes: Iterable[Runtime]) -> tuple[list[Device], list[Availability]]:
    """Return the devices that libraries see here, and which libraries work: one may fail only at its first device."""
    devices, libraries = [], []
    for runtime in runtimes:
        library = runtime.availability()
        try:
            devices += [runtime.device()] if library.usable else []
        except Exception as fault:  # noqa: BLE001 - a library's own, of any class, at its first context
            library = replace(library, usable=False, why=f"{type(fault).__name__}: {fault}".splitlines()[0])
        libraries.append(library)
    return devices, libraries


def finest(runtime: Runtime, timer: str = "events") -> tuple[float | None, float | None]:
    """Return overhead and resolution of a timer: by an empty pair of events, the host's clock, or CUPTI's times."""
    import time

    if timer not in {"host", "cupti", "events", "blocking", "graph"}:  # auto is one of these; a plugin's is not known
        return None, None
    from pytest_perfgate.adapters.timers.bench import queue_of

    if timer == "host":
        from pytest_perfgate.adapters.timers.bench import waiting
        from pytest_perfgate.adapters.timers.host import probe_clock

        resolution, overhead = probe_clock(time.perf_counter_ns)
        if isinstance(runtime, SupportsWait):
            overhead = waiting(queue_of(runtime, timer), time.perf_counter_ns)
        return overhead, resolution
    if timer == "cupti":
        from pytest_perfgate.model.errors import PerfgateError

        if why := cupti_unproved():
            raise PerfgateError("cupti-unproved", why)
        return 0.0, 1.0
    from pytest_perfgate.adapters.timers.event_pairs import empty_pair

    empty = empty_pair(queue_of(runtime, timer))
    return empty.overhead, empty.resolution


def reference_call() -> Call:
    """Return a fixed piece of work for the host."""
    import numpy as np

    a = np.random.default_rng(0).standard_normal((256, 256))
    out = np.empty_like(a)
    return lambda: np.matmul(a, a, out=out)


def sheet_lock(project: Config, card: Any) -> float | None:
    """Return the clock that a card holds under any load, by the catalogue."""
    spec = catalogue(project).lookup(card.described().name)
    return spec.lock_hz if spec else None


def management() -> Nvml | Amd:
    """Return the management library of this machine's devices, NVIDIA's or AMD's; raise if it hangs."""
    from pytest_perfgate.adapters.bindings.amdsmi import Amd
    from pytest_perfgate.adapters.bindings.border import why_disabled
    from pytest_perfgate.adapters.bindings.nvml import Nvml

    nvml, amd = Nvml(), Amd()
    chosen = nvml.availability().usable or why_disabled(nvml.maker)
    return nvml if chosen or not amd.availability().usable else amd


def clock_locks() -> Any:
    """Return the locks on clocks: the recorded ones, and functions that take and lift one."""
    from pytest_perfgate.adapters.devices import clock_locks as locks

    return locks


def release_stale_locks() -> tuple[str, ...]:
    """Reset clocks that dead children of this run left locked, and report it; other locks stay."""
    from pytest_perfgate.adapters.devices.clock_locks import put_back, read_locks, this_run
    from pytest_perfgate.model.errors import PerfgateError

    locks = {lock.device: lock for lock in read_locks() if lock.stale and lock.run == this_run()}
    if not locks:
        return ()
    try:
        cards = {card.uuid(): card for card in management().every()}
        for device in locks:
            put_back(cards[device])
    except (PerfgateError, KeyError) as error:
        return (f"clocks left locked by a child that died could not be put back: {error}",)
    return tuple(
        f"put back the clocks of {device}, left locked by process {lock.pid}" for device, lock in locks.items()
    )
