"""Remarks of `perfgate doctor` on the project, its short screen of the devices, and the page of the machine."""

from __future__ import annotations

import enum
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_perfgate.app.diagnosis import DoctorTools, left_locked, same_words, tried
from pytest_perfgate.core.render.text import Line, render_screen
from pytest_perfgate.core.render.words import quantity
from pytest_perfgate.model.device import Availability, Device, SupportsWait
from pytest_perfgate.model.errors import PerfgateError, speaks_of_a_file
from pytest_perfgate.model.errors import refusal as errors_refusal
from pytest_perfgate.model.metric import Column, Document, Table
from pytest_perfgate.model.protocol import TIMED
from pytest_perfgate.model.values import Dimension, value

if TYPE_CHECKING:
    from pytest_perfgate.model.ports import Runtime


class Level(str, enum.Enum):
    GOOD = "ok"
    NOTE = "note"
    BAD = "bad"


@value
class Remark:
    """One finding of a check."""

    name: str
    level: Level
    what: str
    fix: str = ""


Check = Callable[[Any], Iterable[Remark]]
"""Takes the project and returns findings."""


def examined(checks: Sequence[tuple[str, Check]], project: Any) -> tuple[Remark, ...]:
    """Return the findings of all checks, in their order."""
    findings: list[Remark] = []
    for name, check in checks:
        findings += [
            remark
            for remark in _findings_of(name, check, project)
            if remark.level is not Level.BAD or not _reported(remark, findings)
        ]
    return tuple(findings)


def _reported(finding: Remark, before: Sequence[Remark]) -> bool:
    """Return whether an earlier check reported the same fault."""
    return any((remark.level, remark.what) == (finding.level, finding.what) for remark in before)


def _findings_of(name: str, check: Check, project: Any) -> Iterable[Remark]:
    try:
        return tuple(check(project))
    except PerfgateError as error:
        return (_remark(name, error),)
    except (OSError, ValueError, ImportError) as fault:
        if isinstance(fault, OSError) and speaks_of_a_file(fault):
            return (_remark(name, errors_refusal(fault)),)
        return (Remark(name=name, level=Level.BAD, what=f"{type(fault).__name__}: {fault}"),)


def _remark(name: str, error: PerfgateError) -> Remark:
    where = f"{error.place}: " if error.place else ""
    return Remark(name=name, level=Level.BAD, what=f"{where}{error.what}  [{error.code.name}]", fix=error.fix)


def brief(findings: Iterable[Remark]) -> tuple[Remark, ...]:
    """Return the findings with all that is well in one line a check, and the number of further ones."""
    good: dict[str, list[Remark]] = {}
    brief_findings: list[Remark] = []
    for finding in findings:
        if finding.level is not Level.GOOD:
            brief_findings.append(finding)
        elif finding.name in good:
            good[finding.name].append(finding)
        else:
            good[finding.name] = [finding]
            brief_findings.append(finding)
    return tuple(_counted(finding, good.get(finding.name, [finding])) for finding in brief_findings)


def _counted(finding: Remark, like: Sequence[Remark]) -> Remark:
    if finding is not like[0] or len(like) == 1:
        return finding
    return replace(finding, what=f"{finding.what}; {len(like) - 1} more")


_LONGEST = 78
"""The most characters of a reason; ``--verbose`` shows all of it."""

_OF_CUDA = frozenset({"cupti", "annotation", "ncu"})
"""Profilers that need an NVIDIA device."""

_LOCK = "lock GPU clocks"

_KIND = re.compile(r"^[A-Za-z_]*(?:Error|NotFound)[A-Za-z_]*: ")
"""Matches the exception class at the start of a reason."""


@value
class Part:
    """One part of a device: what works, and what does not, with its reason and fix."""

    name: str
    works: tuple[str, ...] = ()
    fails: tuple[Availability, ...] = ()

    def lines(self) -> Iterator[Line]:
        """Yield one line for what works, and one for each reason."""
        if self.works:
            yield self.name, "yes", ", ".join(self.works)
        yield from ((self.name, "no", refusal(finding)) for finding in merge_reasons(self.fails))


@value
class DeviceGroup:
    """A device with its parts, or without a device, what keeps its libraries from finding one."""

    title: str
    parts: tuple[Part, ...]


def screen(doctor_tools: DoctorTools, same: tuple[float, float] | None, width: int = 100) -> str:
    """Return what a user should know about this machine before measuring on it."""
    shown = [(group.title, [line for part in group.parts for line in part.lines()]) for group in groups(doctor_tools)]
    after = (*doctor_tools.faulty, *left_locked(doctor_tools.locks), *([same_words(same)] if same else []))
    lines = [textwrap.fill(text, width, break_on_hyphens=False) + "\n" for text in after]
    return "".join([render_screen(shown, width), *lines])


def groups(doctor_tools: DoctorTools) -> tuple[DeviceGroup, ...]:
    """Return the groups: GPUs, or the reasons for their absence, then the host."""
    users: dict[str, list[Runtime]] = {}
    devices: dict[str, Device] = {}
    for runtime, device in zip(doctor_tools.runtimes, doctor_tools.devices):
        name = device.uuid.removeprefix("GPU-") or device.pci or device.key
        devices.setdefault(name, device)
        users.setdefault(name, []).append(runtime)
    gpus = [_gpu(doctor_tools, device, users[name]) for name, device in devices.items() if device.kind == "gpu"]
    rest = [_host_group(doctor_tools, device, users[name]) for name, device in devices.items() if device.kind != "gpu"]
    return (*(gpus or [_no_gpu(doctor_tools)]), *rest)


def _gpu(doctor_tools: DoctorTools, device: Device, runtimes: Sequence[Runtime]) -> DeviceGroup:
    names = {runtime.name for runtime in runtimes}
    works = tuple(name_and_version(finding) for finding in doctor_tools.libraries if finding.name in names)
    libraries = Part(name="libraries", works=works, fails=tuple(f for f in doctor_tools.libraries if not f.usable))
    profilers = _split(
        "profilers", [finding for finding in doctor_tools.profilers if finding.name in {*_OF_CUDA, TIMED}]
    )
    timers = (_timers(doctor_tools, runtime) for runtime in runtimes)
    return DeviceGroup(
        title=_title(device), parts=(libraries, *timers, *_clocks(doctor_tools), profilers, *_visible(doctor_tools))
    )


def _no_gpu(doctor_tools: DoctorTools) -> DeviceGroup:
    libraries = Part(name="libraries", fails=tuple(finding for finding in doctor_tools.libraries if not finding.usable))
    profilers = _split("profilers", [finding for finding in doctor_tools.profilers if finding.name in _OF_CUDA])
    text = ", ".join(f"{count} x {name}" for name, count in Counter(doctor_tools.driven).items())
    title = f"No GPU that a library can use, though the driver sees {text}" if text else "No GPU that a library can use"
    return DeviceGroup(title=title, parts=(libraries, *_clocks(doctor_tools), profilers, *_visible(doctor_tools)))


def _host_group(doctor_tools: DoctorTools, device: Device, runtimes: Sequence[Runtime]) -> DeviceGroup:
    """Return the host, and what a library offers as a device on the same processor."""
    plain = any(runtime.name == "host" for runtime in runtimes)
    timers = tuple(_timers(doctor_tools, runtime) for runtime in runtimes)
    excluded = _OF_CUDA if any(isinstance(runtime, SupportsWait) for runtime in runtimes) else {*_OF_CUDA, TIMED}
    profilers = [f for f in doctor_tools.profilers if (f.name not in excluded if plain else f.name == TIMED)]
    settings = (_split("settings", doctor_tools.host_permissions),) if plain else ()
    return DeviceGroup(title=_title(device), parts=(*timers, _split("profilers", profilers), *settings))


def _title(device: Device) -> str:
    """Return ``NVIDIA-H200-140GiB: 140 GiB, data sheet H200 SXM``."""
    memory = (quantity(device.memory_bytes, Dimension.BYTES),) if device.memory_bytes else ()
    sheet = f"data sheet {device.spec.name}" if device.spec else "no data sheet"
    return f"{device.key}: {', '.join((*memory, sheet))}"


def _timers(doctor_tools: DoctorTools, runtime: Runtime) -> Part:
    """Return overhead and resolution of each timer that works with a library; one that fails gives its reason."""
    works: list[str] = []
    fails: list[Availability] = []
    for timer in doctor_tools.timers:
        finding = timer.availability(runtime)
        if timer.name == "auto":
            continue
        fine, why = tried(doctor_tools, runtime, timer.name) if finding.usable else ((None, None), finding.why)
        if why:
            fails.append(Availability(name=timer.name, usable=False, why=why))
        else:
            works.append(f"{timer.name} {'/'.join(quantity(f, Dimension.TIME) for f in fine if f is not None)}".strip())
    reasons = "; ".join(refusal(finding) for finding in merge_reasons(fails))
    summary = (f"overhead/resolution: {', '.join(works)}",) if works else ()
    return Part(
        name=f"{runtime.name} timers",
        works=summary,
        fails=(Availability(name="", usable=False, why=reasons),) if reasons else (),
    )


def _clocks(doctor_tools: DoctorTools) -> Iterator[Part]:
    """Yield ``--perfgate-clocks=observe``, ``lock``, ``off`` and the other permissions."""
    lock = next((finding for finding in doctor_tools.gpu_permissions if finding.name == _LOCK), None)
    library = doctor_tools.management
    if not library.usable:
        fails: tuple[Availability, ...] = (replace(library, name="observe, lock"),)
        works: tuple[str, ...] = ("off",)
    else:
        permitted = lock is not None and lock.usable
        works = (
            f"observe ({library.version or library.name})",
            *(["lock (as root; not tried)"] if permitted else []),
            "off",
        )
        fails = () if lock is None or permitted else (replace(lock, name="lock"),)
    yield Part(name="clocks", works=works, fails=fails)
    rest = tuple(finding for finding in doctor_tools.gpu_permissions if finding.name != _LOCK)
    if library.usable or any(finding.usable for finding in rest):
        yield _split("permissions", rest)


def _visible(doctor_tools: DoctorTools) -> tuple[Part, ...]:
    return (Part(name="shown", works=(doctor_tools.visible,)),) if doctor_tools.restricted else ()


def _split(name: str, availabilities: Sequence[Availability]) -> Part:
    works = tuple(name_and_version(availability) for availability in availabilities if availability.usable)
    return Part(
        name=name, works=works, fails=tuple(availability for availability in availabilities if not availability.usable)
    )


def name_and_version(tool: Availability) -> str:
    """Return ``torch 2.13.0``."""
    return textwrap.shorten(f"{tool.name} {tool.version}", _LONGEST, placeholder=" …")


def merge_reasons(fails: Iterable[Availability]) -> Iterator[Availability]:
    names: dict[tuple[str, str], list[str]] = {}
    for finding in fails:
        names.setdefault((finding.why, finding.fix), []).append(finding.name)
    for (why, fix), of in names.items():
        yield Availability(name=", ".join(of), usable=False, why=why, fix=fix)


def refusal(tool: Availability) -> str:
    """Return ``cupy: No module named 'cupy'; next: pip install cupy-cuda13x``."""
    why = textwrap.shorten(_KIND.sub("", tool.why), _LONGEST, placeholder=" …") if tool.name else tool.why
    return f"{f'{tool.name}: ' if tool.name else ''}{why}{f'; next: {tool.fix}' if tool.fix else ''}"


def machine_document(here: tuple[Sequence[Device], Sequence[Availability]]) -> Document:
    """Return the devices of this machine, and the libraries that can use them."""
    devices, libraries = here
    rows = tuple(
        (d.key, d.name, d.kind, d.uuid or d.pci, d.memory_bytes, d.spec.name if d.spec else None) for d in devices
    )
    names, memory = Column.header("key | device | kind | id"), Column.header("memory: bytes", absent="-")
    table = Table(columns=(*names, *memory, *Column.header("data sheet")), rows=rows)
    return Document(title="This machine", blocks=(table, _availability_table(libraries)))


def _availability_table(availabilities: Sequence[Availability]) -> Table:
    """Return what works here, and for the rest the reason in a sentence."""
    rows = tuple(
        (a.name, "yes" if a.usable else "no", a.version if a.usable else a.why, a.fix if not a.usable else "")
        for a in availabilities
    )
    return Table(columns=Column.header("name | works | version or reason | next"), rows=rows, title="Libraries")
