"""What this machine permits and how it is set: each with the line that an administrator needs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pytest_perfgate.model.device import Availability

_NVIDIA = Path("/proc/driver/nvidia/params")
_AMD = Path("/sys/module/amdgpu")
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_TURBO = Path("/sys/devices/system/cpu/intel_pstate/no_turbo")
_UNTOLD = "the kernel does not tell (a virtual machine?)"


def probe_gpu_permissions(*, driven: bool = False) -> tuple[Availability, ...]:
    """Locking clocks, counters of the GPU; a driver may work where its files are not shown, as in a container."""
    return (_clock_lock(driven=driven), _gpu_counters(driven=driven))


def probe_host_permissions() -> tuple[Availability, ...]:
    """Counters of the processor, its governor, its turbo."""
    return (_processor_counters(), _governor(), _turbo())


def visible_devices(environ: Mapping[str, str] | None = None) -> str:
    """What restricts the devices that libraries see, in words; empty where nothing does."""
    env = os.environ if environ is None else environ
    names = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
    return ", ".join(f"{name}={env[name]}" for name in names if name in env)


def _clock_lock(*, driven: bool) -> Availability:
    """Whether this user may lock the clocks of a GPU: drivers let only an administrator do it."""
    name = "lock GPU clocks"
    if not driven and _text(_NVIDIA) is None and not _AMD.exists():
        return Availability(name=name, usable=False, why="no driver of a GPU is loaded")
    usable = os.geteuid() == 0
    why = "" if usable else "for administrators only"
    return Availability(name=name, usable=usable, why=why, mend="once for everybody: sudo perfgate clocks lock")


def _gpu_counters(*, driven: bool) -> Availability:
    text = _text(_NVIDIA)
    if text is None:
        why = "the driver does not tell here (a container, often)" if driven else "NVIDIA's kernel module is not loaded"
        return Availability(name="GPU counters", usable=False, why=why)
    closed = re.search(r"RmProfilingAdminOnly:\s*1", text) is not None and os.geteuid() != 0
    line = "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, then reload the driver"
    return Availability(
        name="GPU counters", usable=not closed, why="for administrators only" if closed else "", mend=line
    )


def _processor_counters() -> Availability:
    text = _text(_PARANOID)
    if text is None:
        return Availability(name="processor counters", usable=False, why="this kernel has no perf events")
    level = int(text)
    usable = level <= 1 or os.geteuid() == 0
    why = "" if usable else f"perf_event_paranoid is {level}"
    return Availability(name="processor counters", usable=usable, why=why, mend="sysctl kernel.perf_event_paranoid=1")


def _governor() -> Availability:
    text = _text(_GOVERNOR)
    if text is None:
        return Availability(name="governor 'performance'", usable=False, why=_UNTOLD)
    mend = "cpupower frequency-set -g performance"
    return Availability(name="governor 'performance'", usable=text == "performance", why=f"it is {text!r}", mend=mend)


def _turbo() -> Availability:
    text = _text(_TURBO)
    if text is None:
        return Availability(name="turbo off", usable=False, why=_UNTOLD)
    mend = "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo"
    return Availability(name="turbo off", usable=text == "1", why="it is on: the clock moves with heat", mend=mend)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
