"""What the runtimes of GPU libraries share: a device from its properties, an evictor of twice its cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pytest_perfgate.adapters.bindings.border import faults, sentence
from pytest_perfgate.model.device import Device, DeviceSpec
from pytest_perfgate.model.errors import PerfgateError

Lookup = Callable[[str], "DeviceSpec | None"]
EVICT = 2
"""Times the last cache."""


def no_lookup(name: str) -> DeviceSpec | None:
    """Stands for a catalogue where none was given."""
    del name
    return None


def described(device: Device, lookup: Lookup) -> Device:
    """The device with its data sheet; a last cache behind the L2 is known only from there."""
    spec = lookup(device.name)
    sizes = [size for size in (device.cache_bytes, spec.cache_bytes if spec else None) if size]
    return replace(device, spec=spec, cache_bytes=max(sizes, default=None))


def eviction_bytes(device: Device) -> int:
    """How much to write so that nothing of what was there before remains."""
    if not device.cache_bytes:
        raise PerfgateError("cache-size-unknown", f"{device.name} does not tell the size of its cache")
    return int(EVICT * device.cache_bytes)


def cache_note(device: Device, persisting: str) -> tuple[tuple[str, str], ...]:
    """What a flush did, for the record."""
    size = eviction_bytes(device)
    return (("flush", f"{size} bytes, {EVICT} x the last cache; persisting lines {persisting or 'not touched'}"),)


@contextmanager
def answering(name: str, also: Any = ()) -> Iterator[None]:
    """A device that fails while it is waited for is lost for this measurement."""
    try:
        yield
    except faults(also) as error:
        raise PerfgateError("device-lost", f"{name}: {sentence(error)}") from error
