"""This machine's processor, threads and environment."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_perfgate.adapters.bindings.border import reachable_objects
from pytest_perfgate.adapters.system.processes import answer
from pytest_perfgate.model.device import Availability, Device
from pytest_perfgate.model.measurement import Environment
from pytest_perfgate.model.project import FACT, REQUEST, ci_run, targets


def probe_host() -> Device:
    """Return name, cores, last cache and memory, as the operating system reports them."""
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
    """Return ``host-epyc-7763-2``, in lower case and without words of marketing."""
    plain = re.sub(r"\((?:r|tm)\)|@.*$|\bcpu\b|\bprocessor\b|\d+-core\b", " ", name.lower())
    return f"host-{re.sub(r'[^a-z0-9.]+', '-', plain).strip('-.') or 'unknown'}-{cores}"


def _memory_bytes() -> float | None:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None


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

_PARTS = {  # designs of servers and of boards with GPUs; Linux reports only their numbers
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
    """Return the processor's model, since two models of one family must not share baselines."""
    name = _sysctl("machdep.cpu.brand_string") if sys.platform == "darwin" else parse_cpuinfo(_text(_CPUINFO))
    return name or platform.processor() or platform.machine() or "unknown"


def parse_cpuinfo(text: str) -> str:
    """Return the model, as x86, MIPS and POWER report it; on ARM by the maker's numbers, as far as they are known."""
    match = re.search(r"^(?:model name|cpu model|cpu)\s*:\s*(.+)$", text, re.MULTILINE)
    if match:
        return match.group(1).strip()
    makers = re.findall(r"^CPU implementer\s*:\s*(0x[0-9a-fA-F]+)", text, re.MULTILINE)
    parts = re.findall(r"^CPU part\s*:\s*(0x[0-9a-fA-F]+)", text, re.MULTILINE)
    if makers and len(makers) == len(parts):
        designs = dict.fromkeys((int(maker, 16), int(part, 16)) for maker, part in zip(makers, parts))
        return " + ".join(_design(*design) for design in designs)
    board = re.search(r"^(?:Hardware|uarch)\s*:\s*(.+)$", text, re.MULTILINE)
    return board.group(1).strip() if board else ""


def _design(maker: int, part: int) -> str:
    return f"{_MAKERS.get(maker, f'maker {maker:#04x}')} {_PARTS.get((maker, part), f'part {part:#05x}')}"


def probe_last_cache() -> float | None:
    """Return the bytes of the first core's largest cache, the last one that data can fit in."""
    if sys.platform == "darwin":
        names = ("hw.l3cachesize", "hw.perflevel0.l2cachesize", "hw.l2cachesize")
        sizes = [_parse_size(_sysctl(name)) for name in names]
    else:
        sizes = [_parse_size(_text(path)) for path in _cache_files(_CACHES)]
    return max(sizes, default=0.0) or None


def _cache_files(folder: Path) -> Sequence[Path]:
    try:
        return sorted(folder.glob("index*/size"))
    except OSError:
        return ()


def _parse_size(text: str) -> float:
    match = _SIZE.match(text)
    return float(match.group(1)) * _TIMES[match.group(2)] if match else 0.0


def _sysctl(name: str) -> str:
    """Return a value that macOS reports; None for an unknown name."""
    return (answer([_SYSCTL, "-n", name], 5) or "").strip()


def _text(path: Path) -> str:
    return _file_text(path) or ""


_THREADS = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
    *("POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"),
)


def probe_affinity() -> str:
    """Return the cores that this process may use: ``all``, or ranges such as ``0-3,8``."""
    if not hasattr(os, "sched_getaffinity"):
        return "all"
    allowed = sorted(os.sched_getaffinity(0))
    near, _, whole = os.environ.get(NEAR, "").partition(" of ")
    if near and ranges(allowed) == near:
        return whole  # the run placed this child near its card, so it is not restricted
    return "all" if len(allowed) == os.cpu_count() else ranges(allowed)


NEAR = "PERFGATE_CORES"
"""``0-15 of all``: the cores of a child, and those of the run."""

_BUSES = Path("/sys/bus/pci/devices")


def near_cores(addresses: Iterable[str], buses: Path = _BUSES) -> dict[str, str]:
    """Return the variable that puts a child on the cores near these cards; empty if they are unknown.

    It is also empty if all cores are near: then there is only one node.
    """
    if not hasattr(os, "sched_getaffinity"):
        return {}
    allowed, near = os.sched_getaffinity(0), set[int]()
    for address in addresses:
        domain, _, rest = address.lower().partition(":")
        local = numbers(_text(buses / f"{domain[-4:]}:{rest}" / "local_cpulist"))
        if not local:
            return {}
        near |= local
    near &= allowed
    return {NEAR: f"{ranges(sorted(near))} of {probe_affinity()}"} if near and near != allowed else {}


def numbers(text: str) -> set[int]:
    """Return the numbers of ``0-3,8``; none for another text."""
    edges = [part.strip().partition("-") for part in text.strip().split(",")]
    if not all(low.isdigit() and (high.isdigit() or not dash) for low, dash, high in edges):
        return set()
    return {number for low, _, high in edges for number in range(int(low), int(high or low) + 1)}


def settle_near() -> None:
    """Move this process to the cores that the run assigned."""
    near = numbers(os.environ.get(NEAR, "").partition(" of ")[0])
    if near and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, near)


def ranges(numbers: Iterable[int]) -> str:
    """Return ``0-3,8`` for sorted whole numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def probe_threads() -> str:
    """Return the variables that set the size of thread pools."""
    return " ".join(f"{name}={os.environ[name]}" for name in _THREADS if os.environ.get(name))


def probe_pools(call: object) -> str:
    """Return torch's own thread settings if the call can reach torch, which another test may have loaded."""
    torch: Any = sys.modules.get("torch")
    if not hasattr(torch, "get_num_threads"):
        return ""
    objects = reachable_objects(call, (torch.Tensor, torch.nn.Module, ModuleType))
    own = any(not isinstance(thing, ModuleType) or thing.__name__.split(".")[0] == "torch" for thing in objects)
    return f"torch={torch.get_num_threads()}" if own else ""


def probe_environment(declared: Callable[[], Collection[str]] = tuple) -> Environment:
    """Return Python, platform, and other things that affect timings, such as declared dependencies."""
    load = (("load", f"{os.getloadavg()[0]:.2f}"),) if hasattr(os, "getloadavg") else ()
    run = ((FACT, name),) if (name := ci_run(os.environ)) else ()
    request = tuple((REQUEST, target) for target in targets(os.environ)[:1])
    return Environment(
        python=probe_python(),
        platform=platform.platform(),
        packages=probe_packages(declared()),
        facts=(*probe_facts(), *load, *run, *request),
    )


def probe_python() -> str:
    """Return the version and what else makes Python faster or slower: ``3.14.2t`` has no GIL, ``, JIT`` compiles."""
    maker, free = platform.python_implementation(), "t" in sys.abiflags
    text = f"{'' if maker == 'CPython' else f'{maker} '}{platform.python_version()}{'t' if free else ''}"
    switches = {"GIL on": ("_is_gil_enabled", free), "JIT": ("_jit.is_enabled", hasattr(sys, "_jit"))}
    return ", ".join((text, *(name for name, (read, here) in switches.items() if here and attrgetter(read)(sys)())))


_PACKAGES = ("numpy", "scipy", "torch", "triton", "cupy", "numba", "jax", "jaxlib", "tensorflow", "mkl", "pytest")

_FAMILIES = ("nvidia-", "cupy-", "cuda-", "intel-", "rocm-", "pytest-perfgate")
"""Prefixes of libraries that consist of many packages."""

_NAME_AND_VERSION = re.compile(r"^(Name|Version): *(\S+)", re.MULTILINE)

_CPU = Path("/sys/devices/system/cpu")

_SWITCHES = {
    "turbo": ((_CPU / "intel_pstate/no_turbo", "0"), (_CPU / "cpufreq/boost", "1")),
    "hyper-threading": ((_CPU / "smt/active", "1"),),
}

_NVIDIA, _AMD = Path("/proc/driver/nvidia/version"), Path("/sys/module/amdgpu/version")


def probe_packages(declared: Collection[str] = ()) -> tuple[tuple[str, str], ...]:
    """Return (name, version) of installed packages that affect timings, and of declared dependencies, sorted."""
    versions: dict[str, str] = {}
    for package in metadata.distributions():
        head = (package.read_text("METADATA") or package.read_text("PKG-INFO") or "").partition("\n\n")[0]
        fields = dict(_NAME_AND_VERSION.findall(head))  # a parser of mail would read all of it, a millisecond each
        name = fields.get("Name", "").lower()
        if name in _PACKAGES or name.startswith(_FAMILIES) or (declared and re.sub(r"[-_.]+", "-", name) in declared):
            versions.setdefault(name, fields.get("Version", ""))
    return tuple(sorted(versions.items()))


def probe_facts() -> tuple[tuple[str, str], ...]:
    """Return (name, text) of all facts that this machine reports."""
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
    """Return the version in ``NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.10  …``."""
    match = re.search(r"\s(\d{3,}\.\d+(?:\.\d+)?)\s", f"{text} ")
    return match.group(1) if match else ""


def _switches() -> Iterator[tuple[str, str]]:
    """Yield switches of the processor; the first existing one of each counts."""
    for name, places in _SWITCHES.items():
        switch = next(((text, on) for path, on in places if (text := _text(path))), None)
        if switch is not None:
            yield name, "on" if switch[0] == switch[1] else "off"


def _microcode() -> str:
    match = re.search(r"^microcode\s*:\s*(\S+)", _text(Path("/proc/cpuinfo")), re.MULTILINE)
    return match.group(1) if match else ""


def _memory() -> str:
    size = _memory_bytes()
    return f"{size / 2**30:.0f} GiB" if size is not None else ""


_NVIDIA_PARAMETERS = Path("/proc/driver/nvidia/params")

_AMD_NODES = Path("/sys/module/amdgpu")

_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")

_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")

_TURBO = Path("/sys/devices/system/cpu/intel_pstate/no_turbo")

_HIDDEN = "the kernel hides it (a virtual machine?)"


def probe_gpu_permissions(*, driven: bool) -> tuple[Availability, ...]:
    """Return whether clocks can be locked and counters read; in a container a driver may work without its files."""
    return (_clock_lock(driven=driven), _gpu_counters(driven=driven))


def probe_host_permissions() -> tuple[Availability, ...]:
    """Return the processor's counters, governor and turbo."""
    return (_processor_counters(), _governor(), _turbo())


def visible_devices(environ: Mapping[str, str] | None = None) -> str:
    """Return what restricts the devices that libraries see, in words; "" if nothing does."""
    env = os.environ if environ is None else environ
    names = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
    return ", ".join(f"{name}={env[name]}" for name in names if name in env)


def _clock_lock(*, driven: bool) -> Availability:
    """Return whether this user may lock the clocks of a GPU, which drivers allow only to administrators."""
    name = "lock GPU clocks"
    if not driven and _file_text(_NVIDIA_PARAMETERS) is None and not _AMD_NODES.exists():
        return Availability(name=name, usable=False, why="no driver of a GPU is loaded")
    usable = os.geteuid() == 0
    why = "" if usable else "for administrators only"
    return Availability(name=name, usable=usable, why=why, fix="once for everybody: sudo perfgate clocks lock")


def _gpu_counters(*, driven: bool) -> Availability:
    text = _file_text(_NVIDIA_PARAMETERS)
    if text is None:
        why = "the driver hides it here (often a container)" if driven else "NVIDIA's kernel module is not loaded"
        return Availability(name="GPU counters", usable=False, why=why)
    closed = re.search(r"RmProfilingAdminOnly:\s*1", text) is not None and os.geteuid() != 0
    line = "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, then reload the driver"
    return Availability(
        name="GPU counters", usable=not closed, why="for administrators only" if closed else "", fix=line
    )


def _processor_counters() -> Availability:
    text = _file_text(_PARANOID)
    if text is None:
        return Availability(name="processor counters", usable=False, why="this kernel has no perf events")
    level = int(text)
    usable = level <= 1 or os.geteuid() == 0
    why = "" if usable else f"perf_event_paranoid is {level}"
    return Availability(name="processor counters", usable=usable, why=why, fix="sysctl kernel.perf_event_paranoid=1")


def _governor() -> Availability:
    text = _file_text(_GOVERNOR)
    if text is None:
        return Availability(name="governor 'performance'", usable=False, why=_HIDDEN)
    fix = "cpupower frequency-set -g performance"
    return Availability(name="governor 'performance'", usable=text == "performance", why=f"it is {text!r}", fix=fix)


def _turbo() -> Availability:
    text = _file_text(_TURBO)
    if text is None:
        return Availability(name="turbo off", usable=False, why=_HIDDEN)
    fix = "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo"
    return Availability(name="turbo off", usable=text == "1", why="it is on: the clock changes with heat", fix=fix)


def _file_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
