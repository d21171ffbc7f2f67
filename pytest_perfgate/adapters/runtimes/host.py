"""The host, and what GPU runtimes share."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_perfgate.adapters.bindings.amdsmi import Amd
from pytest_perfgate.adapters.bindings.border import faults, sentence
from pytest_perfgate.adapters.bindings.cuda_driver import DriverInUse, ptxas_version
from pytest_perfgate.adapters.bindings.nvml import Nvml
from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.device import Availability, Device, DeviceSpec
from pytest_perfgate.model.errors import PerfgateError

if TYPE_CHECKING:
    from pytest_perfgate.model.ports import Call

_FLUSH_BYTES = 64 << 20


def wait_for_all() -> Call | None:
    """Return a wait for the work that this process gave to CUDA and to JAX; None if it uses neither."""
    waits = [wait for wait in (DriverInUse().wait(), _wait_for_jax()) if wait is not None]
    return (lambda: [wait() for wait in waits]) if waits else None


def _wait_for_jax() -> Call | None:
    """Return a wait for the arrays of JAX, also those that a call hides or stores; JAX is not started for it.

    Arrays that have failed by now are left out: the traceback of a failed test keeps them, and no other test must fail.
    """
    jax: Any = sys.modules.get("jax")
    started = getattr(sys.modules.get("jax._src.xla_bridge"), "backends_are_initialized", None)
    if started is None or not started() or not hasattr(jax, "live_arrays"):
        return None
    try:
        jax.block_until_ready(jax.live_arrays())
    except Exception:  # noqa: BLE001 - any error of the work that an earlier test left behind
        failed = [array for array in jax.live_arrays() if not _becomes_ready(array)]
        return lambda: jax.block_until_ready([a for a in jax.live_arrays() if not any(a is lost for lost in failed)])
    return lambda: jax.block_until_ready(jax.live_arrays())


def _becomes_ready(array: Any) -> bool:
    with suppress(Exception):  # its computation failed
        array.block_until_ready()
        return True
    return False


class HostEvent:
    """A point in the host's time."""

    def __init__(self) -> None:
        self._stamp = 0

    def record(self) -> None:
        self._stamp = HOST_CLOCK.wall()

    def since(self, earlier: Any) -> float:
        return float(self._stamp - earlier._stamp)  # noqa: SLF001 - its own class


class HostRuntime:
    """Plain Python on the processor."""

    name = "host"

    def __init__(self, probe: Callable[[], Device]) -> None:
        self._probe = probe
        self._device: Device | None = None
        self._evictor: bytearray | None = None
        self._wait: Call | None = None
        """Waits for libraries that no other runtime knows; looked for at each ``device``, as that takes 80 us."""

    def availability(self) -> Availability:
        return Availability(name=self.name, usable=True)

    def recognises(self, module_names: frozenset[str]) -> bool:
        """Return False: the host is used when no other runtime is recognised."""
        del module_names
        return False

    def device(self, index: int = 0) -> Device:
        del index
        self._wait = wait_for_all()
        if self._device is None:
            self._device = self._probe()
        return self._device

    def synchronize(self) -> None:
        """Wait for the work of libraries that no other runtime knows, if there is any."""
        if self._wait is not None:
            self._wait()

    def event(self) -> HostEvent:
        return HostEvent()

    def capture(self, call: Call) -> Call:
        raise PerfgateError("graph-unsupported", f"the host has no graphs to capture {call!r} in")

    def flush(self) -> None:
        """Write twice the size of the last cache."""
        if self._evictor is None:
            size = int(2 * (self.device().cache_bytes or _FLUSH_BYTES / 2))
            self._evictor = bytearray(size)
        line = b"\x01" * 4096
        for start in range(0, len(self._evictor) - 4096, 4096):
            self._evictor[start : start + 4096] = line


Lookup = Callable[[str], "DeviceSpec | None"]

EVICT = 2
"""How much a flush writes, as a multiple of the last cache."""


def no_lookup(name: str) -> DeviceSpec | None:
    """Return None, as the default without a catalogue."""
    del name
    return None


def described(device: Device, lookup: Lookup) -> Device:
    """Return the device with its data sheet, which alone knows a last cache behind the L2.

    A device that only has a bus address gets the UUID of its maker's library, so that each card has one name.
    """
    if device.pci and not device.uuid and device.kind == "gpu":
        device = replace(device, uuid=managed_uuid(device.pci, device.arch))
    spec = lookup(device.name)
    sizes = [size for size in (device.cache_bytes, spec.cache_bytes if spec else None) if size]
    present = dict(device.facts)
    facts = (*device.facts, *(fact for fact in _found_out(device) if fact[0] not in present))
    whole = replace(device, spec=spec, cache_bytes=max(sizes, default=None), facts=facts)
    return replace(whole, key=device_key(whole))


def _found_out(device: Device) -> tuple[tuple[str, str], ...]:
    """Return facts from outside of the library: the driver's limits, the assembler of its kernels."""
    ptxas = ptxas_version(device.arch) if device.arch.startswith("sm_") else ""
    return (*managed(device.uuid, device.pci, device.arch), *((("ptxas", ptxas),) if ptxas else ()))


def device_key(device: Device) -> str:
    """Return name, memory, and the power limit if it differs from the card's own: ``NVIDIA-H200-140GiB``."""
    facts = dict(device.facts)
    limit, usual = facts.get("power limit", ""), facts.get("default power limit", "")
    parts = [
        device.name,
        f"{device.memory_bytes / 2**30:.0f}GiB" if device.memory_bytes and device.kind == "gpu" else "",
    ]
    parts.append(limit.replace(" ", "") if limit != usual else "")
    return re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(part for part in parts if part)).strip("-.")


@functools.cache
def managed(uuid: str, pci: str, arch: str = "") -> tuple[tuple[str, str], ...]:
    """Return the facts of the maker's management library; empty if it is missing or does not answer."""
    try:
        card = _card(uuid, pci, arch)
        return tuple(card.facts()) if card else ()
    except PerfgateError:
        return ()


@functools.cache
def managed_uuid(pci: str, arch: str = "") -> str:
    """Return the UUID of the card on a bus; "" if unknown."""
    try:
        card = _card("", pci, arch)
        return str(card.uuid()) if card else ""
    except PerfgateError:
        return ""


def _card(uuid: str, pci: str, arch: str) -> Any:
    """Return the device in its maker's management library; None without such a library."""
    library: Any = Amd() if arch.startswith("gfx") else Nvml()
    if not (uuid or pci) or not library.availability().usable:
        return None
    return library.device(Device(key="", name="", kind="gpu", uuid=uuid, pci=pci))


def eviction_bytes(device: Device) -> int:
    """Return how many bytes to write so that nothing of the earlier content remains in the cache."""
    if not device.cache_bytes:
        raise PerfgateError("cache-size-unknown", f"{device.name} does not report the size of its cache")
    return int(EVICT * device.cache_bytes)


def cache_note(device: Device, persisting: str) -> tuple[tuple[str, str], ...]:
    """Return a note on what a flush did."""
    size = eviction_bytes(device)
    return (("flush", f"{size} bytes, {EVICT} x the last cache; persisting lines {persisting or 'not touched'}"),)


def others_than(current: int, numbers: set[int], choose: str) -> tuple[int, ...]:
    """Return the GPUs of a call besides the current one; raise if the call is on others alone."""
    if current not in numbers:
        names = ", ".join(f"cuda:{number}" for number in sorted(numbers))
        raise PerfgateError(
            "timer-unsuited",
            f"the data of the call is on {names}, and the current device is cuda:{current}",
            why="events are those of the current device, so that the work would not be timed",
            fix=f"{choose}({min(numbers)}) at the start of the test",
        )
    return tuple(sorted(numbers - {current}))


@contextmanager
def answering(name: str, also: Any = ()) -> Iterator[None]:
    """Turn a failure of a device during a wait into the error that it is lost for this measurement."""
    try:
        yield
    except faults(also) as error:
        raise PerfgateError("device-lost", f"{name}: {sentence(error)}") from error
