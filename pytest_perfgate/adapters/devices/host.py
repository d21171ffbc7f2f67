"""The processor of this machine as a device."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from pytest_perfgate.model.device import Device

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_SIZE = re.compile(r"(\d+)([KMG]?)")


def probe_host() -> Device:
    """Name, cores, last cache and memory, as the operating system tells them."""
    name, cores = probe_name(), os.cpu_count() or 1
    return Device(
        key=host_key(name, cores),
        name=name,
        kind="host",
        arch=platform.machine(),
        memory_bytes=_memory_bytes(),
        cache_bytes=_last_cache_bytes(),
        multiprocessors=cores,
        facts=(("cores", str(cores)), ("kernel", platform.release())),
    )


def host_key(name: str, cores: int) -> str:
    """``host-epyc-7763-2``: lower case, the words that only decorate left out."""
    plain = re.sub(r"\((?:r|tm)\)|@.*$|\bcpu\b|\bprocessor\b|\d+-core\b", " ", name.lower())
    return f"host-{re.sub(r'[^a-z0-9.]+', '-', plain).strip('-.') or 'unknown'}-{cores}"


def probe_name() -> str:
    """The processor's model name."""
    try:
        text = _CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.search(r"^(?:model name|Hardware|cpu model)\s*:\s*(.+)$", text, re.MULTILINE)
    return (found.group(1).strip() if found else "") or platform.processor() or platform.machine() or "unknown"


def _last_cache_bytes() -> float | None:
    """The largest cache of the first core: the last one that data can fit in."""
    try:
        sizes = [_parse_size(path.read_text(encoding="ascii").strip()) for path in _CACHES.glob("index*/size")]
    except OSError:
        return None
    return max(sizes, default=None)


def _parse_size(text: str) -> float:
    found = _SIZE.match(text)
    return float(found.group(1)) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[found.group(2)] if found else 0.0


def _memory_bytes() -> float | None:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None
