"""Metrics of diagnosed kernels."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.kernels.counters import COLLECT, PLAIN, collected_with, stalls_missing
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis, depth_unknown, why_no_bytes
from pytest_perfgate.core.analysis.kernels.sass_facts import architecture, static_shared
from pytest_perfgate.core.analysis.kernels.sass_mix import COUNTED, Mix, barrier_waits, stall_cycles
from pytest_perfgate.core.analysis.kernels.sass_opcodes import counted, has_instruction, is_pattern, opcode_name, since
from pytest_perfgate.core.analysis.occupancy import UNLINKED, cliff, occupancy
from pytest_perfgate.core.limits.scope import Span, Written, closing, parse_scope
from pytest_perfgate.core.metric_kinds import KERNEL_KINDS
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Absent, Labels, Metric, MetricSet, labels
from pytest_perfgate.model.values import value

if TYPE_CHECKING:
    from pytest_perfgate.model.device import SmLimits
    from pytest_perfgate.model.profiles import KernelCode

_DIMENSIONS = {kind.name: kind.dimension for kind in KERNEL_KINDS}

_LINK, _ANY_DEPTH = "name the linked program or library", "ptxas cannot tell the size of its stack"

MOST = 20_000
"""The most counts of opcodes; of a library with more, only those that limits name are metrics."""


def metrics_of(
    diagnoses: Sequence[Diagnosis], source: str, requested: Iterable[Labels] = (), most: int = MOST
) -> MetricSet:
    """Return every metric of every kernel. Launches of one kernel are numbered, so that each is judged."""
    # ``requested`` adds instructions that limits count: with modifiers, or absent from the code.
    every = [mix for d in diagnoses for mix in (d.whole, d.ran) if mix]
    opcodes = sorted({name for mix in every for name in mix.counts})
    requested = tuple(requested)
    names = _instruction_names(requested, opcodes, every)
    if len(every) * len(opcodes) > most:
        patterns = [opcode_name(labelled) for labelled in requested]
        opcodes = [name for name in opcodes if any(fnmatchcase(name, pattern) for pattern in patterns)]
    named = list(zip(diagnoses, _labels(diagnoses)))
    several = _in_several_files(diagnoses)
    metrics: list[Metric] = []
    for d, where in named:
        own = [*_kernel_metrics(d, where, opcodes), *requested_counts(d, where, names)]
        if (d.name, d.facts.arch) in several:
            own = [_of_file(one, d.facts.source) for one in own]
        metrics += own
    absent = [gap for d, where in named for gap in uncounted(d, where, names)]
    if metrics and len(named) > most:
        absent += _absent_once(named, source, {one.name for one in metrics})
    else:
        absent += [gap for d, where in named for gap in _absent(d, where, source)]
    return MetricSet(metrics=tuple(metrics), absent=tuple(absent))


def _absent_once(named: Iterable[tuple[Diagnosis, Labels]], source: str, present: Collection[str]) -> Iterator[Absent]:
    """Yield what is absent, once where no launch has it: ten entries for each of a million would fill the memory."""
    nowhere: dict[Absent, None] = {}
    here: dict[object, list[Absent]] = {}
    for d, where in named:
        facts = d.facts
        alike = (d.name, facts.arch, facts.launch, facts.resources, *d.numbers, *facts.counters)
        key: object = alike if source == "rocprof" else id(d)
        if key not in here:
            every = list(_absent(d, (), source))
            nowhere |= dict.fromkeys(absent for absent in every if absent.name not in present)
            here[key] = [absent for absent in every if absent.name in present]
        yield from (replace(absent, labels=where) for absent in here[key])
    yield from nowhere


def _in_several_files(diagnoses: Sequence[Diagnosis]) -> set[tuple[str, str]]:
    """Return kernels by name and architecture that several files contain, so that a number is ambiguous."""
    files = {(d.name, d.facts.arch, d.facts.source) for d in diagnoses}
    counts = Counter((name, arch) for name, arch, _ in files)
    return {key for key, number in counts.items() if number > 1}


def _of_file(metric: Metric, source: str) -> Metric:
    return replace(metric, note="; ".join(filter(None, (metric.note, f"of {source}"))))


def _instruction_names(requested: Iterable[Labels], opcodes: Sequence[str], every: Sequence[Mix]) -> dict[Labels, str]:
    """Return the requested instructions that exist; a name that no architecture has is refused later."""
    exact = {opcode for mix in every for opcode in mix.exact}
    full = {labelled: opcode_name(labelled) for labelled in requested}
    return {
        labelled: name
        for labelled, name in full.items()
        if name not in opcodes and not is_pattern(name) and has_instruction(name, exact)
    }


def _labels(diagnoses: Sequence[Diagnosis]) -> list[Labels]:
    """Return kernel, architecture and, if any kernel was launched twice, the number of the launch for all."""
    # A limit selects the metrics with the fewest labels, so all must have the same ones or it would miss some.
    arches = any(d.facts.arch for d in diagnoses)
    repeated = len({(d.name, d.facts.arch) for d in diagnoses}) < len(diagnoses)
    launches: Counter[tuple[str, str]] = Counter()
    every = []
    for d in diagnoses:
        where: dict[str, object] = {"kernel": d.name}
        if arches:
            where["arch"] = d.facts.arch or "unknown"
        if repeated:
            where["launch"] = launches[d.name, d.facts.arch]
        launches[d.name, d.facts.arch] += 1
        every.append(labels(**where))
    return every


def metric(name: str, number: float, where: Labels, note: str = "", more: Labels = ()) -> Metric:
    scope = tuple(sorted((*where, *more))) if more else where  # figures of one launch share its labels
    return Metric(name=name, value=float(number), dimension=_DIMENSIONS[name], labels=scope, note=note)


def _kernel_metrics(diagnosis: Diagnosis, where: Labels, opcodes: Iterable[str]) -> Iterator[Metric]:
    for name, number in diagnosis.numbers.items():
        yield metric(name, number, where, diagnosis.answered.get(name) or diagnosis.facts.notes.get(name, ""))
    if diagnosis.occupancy is not None:
        yield metric("occupancy_limit", diagnosis.occupancy.fraction, where, diagnosis.occupancy.note)
    elif (fraction := theoretical(diagnosis)) is not None:
        yield metric("occupancy_limit", fraction, where, "as ncu says")
    if diagnosis.cliff is not None and not diagnosis.cliff.moot:
        yield metric("cliff_distance", diagnosis.cliff.edge - diagnosis.cliff.shared, where)
    for reason, share in diagnosis.stalls.items():
        yield metric("stall", share, where, more=(("reason", reason),))
    full, label = ("rocprof", "counter") if diagnosis.facts.arch.startswith("gfx") else ("ncu", "metric")
    for name, counter in diagnosis.facts.counters.items():
        note = f"its unit is {counter.unit}" if counter.unit else ""
        yield metric(full, counter.value, where, note, ((label, name),))
    if diagnosis.ran is not None:
        for name in dict.fromkeys((*COUNTED, *opcodes, *diagnosis.ran.counts)):
            if not _without_modifiers(name, diagnosis.ran):
                number = counted(name, diagnosis.ran.exact) if "." in name else diagnosis.ran.counts.get(name, 0)
                yield metric("executed", number, where, _too_early(name, diagnosis.facts.arch), (("opcode", name),))
    if diagnosis.whole is not None and diagnosis.facts.code is not None:
        yield from _code_metrics(diagnosis, diagnosis.whole, where, opcodes)


def _code_metrics(diagnosis: Diagnosis, whole: Mix, where: Labels, opcodes: Iterable[str]) -> Iterator[Metric]:
    code, inner = diagnosis.facts.code, diagnosis.inner
    assert code is not None
    for name in opcodes:
        yield metric("count", whole.counts.get(name, 0), where, more=(("opcode", name),))
    yield from _scheduling(code, range(len(code)), where)
    if inner is None:
        return
    if inner.ratio is not None:
        yield metric("compute_load_ratio", inner.ratio, where)
    if inner.wide is not None:
        yield metric("wide_loads", inner.wide, where)
    counts, rows, note = _main_loop(diagnosis, inner.counts)
    for name in opcodes:
        yield metric("count", counts.get(name, 0), where, note, (("loop", "main"), ("opcode", name)))
    yield from _scheduling(code, rows, tuple(sorted((*where, ("loop", "main")))), note)


def _main_loop(diagnosis: Diagnosis, counts: Mapping[str, int]) -> tuple[Mapping[str, int], range, str]:
    """Return the counts of the main loop and its rows; of a kernel without a loop nothing, and a note."""
    return (counts, diagnosis.loop.rows, "") if diagnosis.loop else ({}, range(0), "the kernel has no loop")


def requested_counts(diagnosis: Diagnosis, where: Labels, names: Mapping[Labels, str]) -> Iterator[Metric]:
    """Yield counts of the instructions that limits name, in the kernel, in its main loop, as executed."""
    whole, inner, ran = diagnosis.whole, diagnosis.inner, diagnosis.ran
    for label, name in names.items():
        note = _too_early(name, diagnosis.facts.arch)
        if whole is not None:
            yield metric("count", counted(name, whole.exact), where, note, label)
        if whole is not None and inner is not None:
            exact, _, no_loop = _main_loop(diagnosis, inner.exact)
            yield metric("count", counted(name, exact), where, note or no_loop, (("loop", "main"), *label))
        if ran is not None and name not in COUNTED and not _without_modifiers(name, ran):
            yield metric("executed", counted(name, ran.exact), where, note, label)


def _too_early(name: str, arch: str) -> str:
    number = architecture(arch)
    return f"{arch} has no {name.partition('.')[0]}" if number is not None and number < since(name) else ""


def _without_modifiers(name: str, ran: Mix) -> bool:
    """Return whether modifiers are requested but the profiler counted this opcode without them."""
    opcode, _, modifiers = name.partition(".")
    return bool(modifiers and ran.counts.get(opcode)) and not any("." in full for full in ran.exact)


def uncounted(diagnosis: Diagnosis, where: Labels, names: Mapping[Labels, str]) -> Iterator[Absent]:
    """Yield executed instructions whose modifiers were not counted."""
    why = "opcodes were counted without their modifiers"
    fix = "collect it with --metrics sass__inst_executed_per_opcode_with_modifier_all"
    for label, name in names.items():
        if diagnosis.ran is not None and _without_modifiers(name, diagnosis.ran):
            yield Absent(name="executed", labels=tuple(sorted((*where, *label))), why=why, fix=fix)


def _scheduling(code: KernelCode, rows: range, where: Labels, note: str = "") -> Iterator[Metric]:
    """Yield metrics of the control words; nothing without them."""
    for name, number in (("stall_cycles", stall_cycles(code, rows)), ("barrier_waits", barrier_waits(code, rows))):
        if number is not None:
            yield metric(name, number, where, note)


def _absent(diagnosis: Diagnosis, where: Labels, source: str) -> Iterator[Absent]:
    """Yield what this instrument could have collected and did not, with the section to add."""
    unstated, inner, fix = tuple[str, ...](), diagnosis.inner, _name_the_launch(diagnosis)
    if source == "ncu":
        yield from _absent_of_ncu(diagnosis, where)
        fix = "collect it with --section LaunchStats"
    elif source == "rocprof":
        yield from _absent_of_amd(diagnosis, where)
    elif source == "cubin" and diagnosis.facts.resources is not None:
        unstated = diagnosis.facts.resources.unstated
        yield from _left_to_linker(diagnosis, where, unstated)
        fix = _LINK if "shared" in unstated else fix
    if diagnosis.whole is not None and "spills" not in diagnosis.numbers and "stack" not in unstated:
        yield Absent(name="spills", labels=where, why=depth_unknown(diagnosis.whole), fix="limit count(STL)")
    if inner is not None and inner.ratio is None:
        yield Absent(name="compute_load_ratio", labels=where, why=inner.no_ratio)
    if inner is not None and inner.wide is None:
        yield Absent(name="wide_loads", labels=where, why="the main loop has no global loads of its own")
    if diagnosis.occupancy is None and theoretical(diagnosis) is None:
        yield Absent(name="occupancy_limit", labels=where, why=_why_no_occupancy(diagnosis), fix=fix)


def _absent_of_ncu(diagnosis: Diagnosis, where: Labels) -> Iterator[Absent]:
    for entry in PLAIN:
        if entry.name not in diagnosis.numbers:
            why = why_no_bytes(diagnosis.ran) if entry.name == "spills" else ""
            yield Absent(name=entry.name, labels=where, why=why or "not collected", fix=entry.fix)
    if diagnosis.ran is None:
        yield Absent(name="executed", labels=where, fix="collect it with --section InstructionStats")
    if not diagnosis.stalls:
        why = stalls_missing(diagnosis.facts.counters) or "not collected"
        yield Absent(name="stall", labels=where, why=why, fix="collect it with --section WarpStateStats")


def _left_to_linker(diagnosis: Diagnosis, where: Labels, unstated: Collection[str]) -> Iterator[Absent]:
    """Yield what machine code does not say before it is linked, or a log of a kernel whose stack has any size."""
    why, fix = (UNLINKED, _LINK) if diagnosis.whole else (_ANY_DEPTH, "name the cubin, and limit count(STL)")
    for name, part in (("smem", "shared"), ("spills", "stack"), ("stack", "stack"), ("registers", "registers")):
        if part in unstated:
            yield Absent(name=name, labels=where, why=why, fix=fix)


def _absent_of_amd(diagnosis: Diagnosis, where: Labels) -> Iterator[Absent]:
    for name in (*(entry.name for entry in PLAIN), "stall", "executed"):
        if name not in diagnosis.numbers and name in COLLECT:
            options = collected_with(name, diagnosis.facts.counters)
            yield Absent(name=name, labels=where, fix=f"collect it with rocprofv3 {options}")
        elif name not in diagnosis.numbers:
            yield Absent(name=name, labels=where, why="rocprof has no column for it")


def theoretical(diagnosis: Diagnosis) -> float | None:
    """Return the profiler's own theoretical occupancy."""
    counter = diagnosis.facts.counters.get("sm__maximum_warps_per_active_cycle_pct")
    return counter.value / 100 if counter is not None and math.isfinite(counter.value) else None


def _name_the_launch(diagnosis: Diagnosis) -> str:
    arch, threads = diagnosis.facts.arch or "sm_90", diagnosis.facts.most_threads or 256
    return f"name the launch: occupancy_limit(arch={arch}, threads={threads}), or --set threads={threads}"


def _why_no_occupancy(diagnosis: Diagnosis) -> str:
    facts = diagnosis.facts
    if facts.code is not None and facts.resources is not None and "shared" in facts.resources.unstated:
        return UNLINKED
    if facts.launch is None:
        whose = "a cubin does" if facts.code is not None else "these pages do"
        return f"the launch is not known: {whose} not say how many threads a block has"
    if facts.resources is None:
        return "the registers of a thread are not collected"
    if "shared" in facts.resources.unstated:
        return "the shared memory of a block is not collected"
    return f"the catalogue has no limits of {diagnosis.facts.arch or 'this architecture'}"


_KINDS = {kind.name: kind for kind in KERNEL_KINDS}

_SCOPED = re.compile(r"\b(?:occupancy_limit|cliff_distance)\s*\(([^)]*)\)")
_COUNTS = re.compile(r"\s*(?:change\s*\(\s*)?(count|executed)\s*\(")
_SIZE = re.compile(r"(\d+)\s*(B|KiB|KB|MiB|MB)?")

_FAMILY = re.compile(r"^(sm_\d+)[af]$")
"""Suffixes of code for one architecture or its family, whose multiprocessor has the same limits."""

_UNITS = {"": 1, "B": 1, "KB": 1000, "KiB": 1024, "MB": 1000**2, "MiB": 1024**2}


@value
class RequestedLaunch:
    """A block of so many threads on an architecture, with the launch's shared memory."""

    threads: int
    arch: str = ""
    """"" means the architecture that the code was compiled for."""
    shared: int | None = None
    """Requested dynamic bytes; ``None`` if not stated."""
    written: tuple[tuple[str, str], ...] = ()
    """The scope as written, by which the metric is selected."""


def requested_launches(options: Mapping[str, str]) -> tuple[RequestedLaunch, ...]:
    """Return launches from the options ``threads``, ``arch`` and ``smem``, and from the judged ``limits``."""
    scopes = [_pairs(inside) for inside in _SCOPED.findall(options.get("limits", ""))]
    if "threads" in options:
        scopes.append({name: options[name] for name in ("threads", "arch", "smem") if name in options})
    return tuple(dict.fromkeys(_requested_launch(scope) for scope in scopes if "threads" in scope))


def _pairs(inside: str) -> dict[str, str]:
    parts = (part.partition("=") for part in inside.split(","))
    return {name.strip(): text.strip() for name, sign, text in parts if sign}


def _requested_launch(scope: Mapping[str, str]) -> RequestedLaunch:
    written = {name: text for name, text in scope.items() if name in {"threads", "smem", "arch"}}
    return RequestedLaunch(
        threads=_number("threads", scope["threads"]),
        arch=_FAMILY.sub(r"\1", scope.get("arch", "")),
        shared=_number("smem", scope["smem"]) if "smem" in scope else None,
        written=labels(**written),
    )


def _number(name: str, text: str) -> int:
    read = _SIZE.fullmatch(text.strip())
    if not read or (name == "threads" and not int(read[1])):
        unit, example = ("bytes", "48KiB") if name == "smem" else ("threads", "256")
        raise PerfgateError("kernel-option", f"{name}={text} is no number of {unit}", fix=f"write {name}={example}")
    return int(read[1]) * _UNITS[read[2] or ""]


def requested_opcodes(options: Mapping[str, str]) -> tuple[Labels, ...]:
    """Return instructions that limits count: ``count(LDG.E.128)`` or ``count(LDG, modifiers=E.128)``."""
    scopes = (dict(_scope(line)) for line in options.get("limits", "").splitlines())
    return tuple(dict.fromkeys(instruction(**scope) for scope in scopes if "opcode" in scope))


def instruction(opcode: str, modifiers: str = "", **_: str) -> Labels:
    """Return labels with modifiers apart, so that a pattern of opcodes only matches opcodes."""
    modifier = modifiers or opcode.partition(".")[2]
    return (*((("modifiers", modifier),) if modifier else ()), ("opcode", opcode))


def _scope(line: str) -> Labels:
    match = _COUNTS.match(line)
    if match is None:
        return ()
    written, opened = Written(text=line), match.end() - 1
    return parse_scope(written, Span(start=opened + 1, end=closing(written, opened)), _KINDS[match[1]])


def requested_metrics(
    diagnoses: Sequence[Diagnosis], launches: Sequence[RequestedLaunch], limits: Mapping[str, SmLimits]
) -> MetricSet:
    """Return occupancy and cliff distance of each kernel under each requested launch."""
    # Only code of the requested architecture counts; without any, every build counts with its registers.
    answers: dict[Metric | Absent, None] = {}
    for launch in launches:
        exact = [d for d in diagnoses if d.facts.arch == launch.arch]
        answers |= dict.fromkeys(one for d in exact or diagnoses for one in _answers(d, launch, limits))
    absent = tuple(answer for answer in answers if isinstance(answer, Absent))
    return MetricSet(metrics=tuple(answer for answer in answers if isinstance(answer, Metric)), absent=absent)


def _answers(
    diagnosis: Diagnosis, launch: RequestedLaunch, limits: Mapping[str, SmLimits]
) -> Iterator[Metric | Absent]:
    facts = diagnosis.facts
    arch = launch.arch or facts.arch
    if arch not in limits:
        known = ", ".join(sorted(limits, key=lambda a: int(re.sub(r"\D", "", a) or 0)))
        raise PerfgateError("kernel-arch", f"the catalogue has no limits of {arch}", fix=f"name one of {known}")
    where = labels(**{"arch": arch, **dict(launch.written), "kernel": diagnosis.name})
    if facts.resources is None or "shared" in facts.resources.unstated:
        lacking = Absent(name="occupancy_limit", labels=where, why=_why_no_occupancy(diagnosis), fix=_LINK)
        yield from (lacking, replace(lacking, name="cliff_distance"))
        return
    dynamic = facts.launch.shared_dynamic if facts.launch else 0
    shared = static_shared(facts) + (dynamic if launch.shared is None else launch.shared)
    note = "" if arch == facts.arch else f"registers as compiled for {facts.arch}"
    block = {"threads": launch.threads, "registers": facts.resources.registers, "shared": shared}
    occupied = occupancy(limits[arch], **block, most=facts.most_threads)
    step = cliff(limits[arch], **block)
    yield metric("occupancy_limit", occupied.fraction, where, "; ".join(filter(None, (occupied.note, note))))
    if not step.moot:
        yield metric("cliff_distance", step.edge - step.shared, where, note)
