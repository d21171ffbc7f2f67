"""The processor of this machine as a device."""

from __future__ import annotations

import os
import platform
import re

from pytest_perfgate.adapters.devices.processor import probe_last_cache, probe_name
from pytest_perfgate.model.device import Device


def probe_host() -> Device:
    """Name, cores, last cache and memory, as the operating system tells them."""
    name, cores = probe_name(), os.cpu_count() or 1
    return Device(
        key=host_key(name, cores),
        name=name,
        kind="host",
        arch=platform.machine(),
        memory_bytes=_memory_bytes(),
        cache_bytes=probe_last_cache(),
        multiprocessors=cores,
        facts=(("cores", str(cores)), ("kernel", platform.release())),
    )


def host_key(name: str, cores: int) -> str:
    """``host-epyc-7763-2``: lower case, the words that only decorate left out."""
    plain = re.sub(r"\((?:r|tm)\)|@.*$|\bcpu\b|\bprocessor\b|\d+-core\b", " ", name.lower())
    return f"host-{re.sub(r'[^a-z0-9.]+', '-', plain).strip('-.') or 'unknown'}-{cores}"


def _memory_bytes() -> float | None:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None
