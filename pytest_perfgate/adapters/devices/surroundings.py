"""What surrounds a measurement and moves numbers: processor, clock policy, drivers, libraries."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from importlib import metadata
from pathlib import Path

from pytest_perfgate.adapters.devices.processor import probe_name

_PACKAGES = ("numpy", "scipy", "torch", "triton", "cupy", "numba", "jax", "jaxlib", "tensorflow", "mkl", "pytest")
_FAMILIES = ("nvidia-", "cupy-", "cuda-", "intel-", "rocm-", "pytest-perfgate")
"""Beginnings of names: libraries that come as many packages."""
_CPU = Path("/sys/devices/system/cpu")
_SWITCHES = {
    "turbo": ((_CPU / "intel_pstate/no_turbo", "0"), (_CPU / "cpufreq/boost", "1")),
    "hyper-threading": ((_CPU / "smt/active", "1"),),
}
_NVIDIA, _AMD = Path("/proc/driver/nvidia/version"), Path("/sys/module/amdgpu/version")


def probe_packages(declared: Collection[str] = ()) -> tuple[tuple[str, str], ...]:
    """(name, version) of installed packages that move numbers, those that the project declares among them, sorted."""
    found: dict[str, str] = {}
    for package in metadata.distributions():
        name = (package.metadata["Name"] or "").lower()
        if name in _PACKAGES or name.startswith(_FAMILIES) or (declared and re.sub(r"[-_.]+", "-", name) in declared):
            found.setdefault(name, package.version)
    return tuple(sorted(found.items()))


def probe_facts() -> tuple[tuple[str, str], ...]:
    """(name, text) of all that this machine tells."""
    facts = (
        ("processor", f"{probe_name()}, {os.cpu_count() or 1} cores"),
        ("microcode", _microcode()),
        ("memory", _memory()),
        ("governor", _text(_CPU / "cpu0/cpufreq/scaling_governor")),
        *_switches(),
        ("nvidia driver", parse_nvidia(_text(_NVIDIA))),
        ("amdgpu driver", _text(_AMD)),
    )
    return tuple((name, text) for name, text in facts if text)


def parse_nvidia(text: str) -> str:
    """The version in ``NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  …``."""
    found = re.search(r"\s(\d{3,}\.\d+(?:\.\d+)?)\s", f"{text} ")
    return found.group(1) if found else ""


def _switches() -> Iterator[tuple[str, str]]:
    """Switches of the processor, of which the first that is there counts."""
    for name, places in _SWITCHES.items():
        said = next(((text, on) for path, on in places if (text := _text(path))), None)
        if said is not None:
            yield name, "on" if said[0] == said[1] else "off"


def _microcode() -> str:
    found = re.search(r"^microcode\s*:\s*(\S+)", _text(Path("/proc/cpuinfo")), re.MULTILINE)
    return found.group(1) if found else ""


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (AttributeError, ValueError, OSError):
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
