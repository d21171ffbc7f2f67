"""What the processor of this machine is called, and the size of its last cache: Linux and macOS."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_perfgate.adapters.system.commands import answer

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_SYSCTL = "/usr/sbin/sysctl"
_SIZE = re.compile(r"(\d+)([KMG]?)")
_TIMES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_MAKERS = {
    0x41: "ARM",
    0x46: "Fujitsu",
    0x48: "HiSilicon",
    0x4E: "NVIDIA",
    0x51: "Qualcomm",
    0x61: "Apple",
    0xC0: "Ampere",
}
_PARTS = {  # the designs that servers and boards with GPUs carry; Linux tells numbers only
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD42): "Cortex-A78AE",
    (0x41, 0xD49): "Neoverse-N2",
    (0x41, 0xD4F): "Neoverse-V2",
    (0x41, 0xD84): "Neoverse-V3",
    (0x41, 0xD8E): "Neoverse-N3",
    (0x46, 0x001): "A64FX",
    (0x48, 0xD01): "Kunpeng-920",
    (0x4E, 0x004): "Carmel",
    (0xC0, 0xAC3): "Ampere-1",
    (0xC0, 0xAC4): "Ampere-1a",
}


def probe_name() -> str:
    """The processor's model: two models of one family must not share baselines."""
    told = _sysctl("machdep.cpu.brand_string") if sys.platform == "darwin" else parse_cpuinfo(_text(_CPUINFO))
    return told or platform.processor() or platform.machine() or "unknown"


def parse_cpuinfo(text: str) -> str:
    """The model as x86, MIPS and POWER tell it; on ARM its makers' numbers, by name where that is known."""
    found = re.search(r"^(?:model name|cpu model|cpu)\s*:\s*(.+)$", text, re.MULTILINE)
    if found:
        return found.group(1).strip()
    makers = re.findall(r"^CPU implementer\s*:\s*(0x[0-9a-fA-F]+)", text, re.MULTILINE)
    parts = re.findall(r"^CPU part\s*:\s*(0x[0-9a-fA-F]+)", text, re.MULTILINE)
    if makers and len(makers) == len(parts):
        designs = dict.fromkeys((int(maker, 16), int(part, 16)) for maker, part in zip(makers, parts))
        return " + ".join(_design(*each) for each in designs)
    board = re.search(r"^(?:Hardware|uarch)\s*:\s*(.+)$", text, re.MULTILINE)
    return board.group(1).strip() if board else ""


def _design(maker: int, part: int) -> str:
    return f"{_MAKERS.get(maker, f'maker {maker:#04x}')} {_PARTS.get((maker, part), f'part {part:#05x}')}"


def probe_last_cache() -> float | None:
    """Bytes of the largest cache of the first core: the last one that data can fit in."""
    if sys.platform == "darwin":
        names = ("hw.l3cachesize", "hw.perflevel0.l2cachesize", "hw.l2cachesize")
        sizes = [_parse_size(_sysctl(name)) for name in names]
    else:
        sizes = [_parse_size(_text(path)) for path in _found(_CACHES)]
    return max(sizes, default=0.0) or None


def _found(folder: Path) -> Sequence[Path]:
    try:
        return sorted(folder.glob("index*/size"))
    except OSError:
        return ()


def _parse_size(text: str) -> float:
    found = _SIZE.match(text)
    return float(found.group(1)) * _TIMES[found.group(2)] if found else 0.0


def _sysctl(name: str) -> str:
    """What macOS tells; nothing where it does not know the name."""
    return (answer([_SYSCTL, "-n", name], 5) or "").strip()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
