"""The bottleneck report of a kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_perfgate.core.analysis.classify import Bottleneck, Signals
from pytest_perfgate.core.analysis.decisions import NO_ROW, advice_items, sentence
from pytest_perfgate.core.analysis.kernels.diagnosis import Diagnosis, code_evidence
from pytest_perfgate.core.analysis.kernels.sections import cliff_section, mix_section, occupancy_section, ratio_section
from pytest_perfgate.core.analysis.roofline import (
    GIVEN,
    Placement,
    datasheet_roof,
    given_roof,
    of_compute,
    parse_items,
    place,
    rated,
    ridge,
)
from pytest_perfgate.core.analysis.work import WIDTHS, known_dtype
from pytest_perfgate.core.render.words import quantity
from pytest_perfgate.model.device import Device, DeviceSpec, Roof
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Absent, Block, Bullets, Document, Metric, MetricSet, Paragraph, Section
from pytest_perfgate.model.values import OF_ITEMS, UNITS, Dimension, Work, value


@value
class Timing:
    """The measured time and the stated work of a kernel."""

    problem: str = ""
    time_ns: float | None = None
    by: str = "device events"
    placement: Placement | None = None
    ridge: float | None = None
    dtype: str = ""
    basis: str = ""
    stated: tuple[str, ...] = ()


_FLOPS, _BYTES = "--set flops=137.4GFLOP", "--set bytes=201MB"

_STATED = {
    "problem": ("--set problem='GEMM, M=N=K=4096'",),
    "kernel time": ("--set time=11.2ms",),
    "effective rate": (_FLOPS,),
    "effective bandwidth": (_BYTES,),
    "arithmetic intensity": (_FLOPS, _BYTES),
    "balance point": ("--set dtype=fp16", "--device 'H100 SXM'"),
}
"""How to state what no file contains."""

_OPTION = re.compile(r"--(?:set )?(\w+).*")

_COUNTERS = "perfgate profile NODEID --mode annotation"


def bottleneck_report(diagnosis: Diagnosis, timing: Timing | None = None) -> Document:
    """Return the bottleneck of a kernel by what was collected, and how to collect the rest."""
    from pytest_perfgate.core.analysis.kernels.pictures import by_counters

    facts = diagnosis.facts
    time = by_counters(diagnosis, timing or Timing(time_ns=diagnosis.numbers.get("duration"), by="the profiler"))
    where = " · ".join(part for part in (facts.device, facts.arch, facts.source) if part)
    return Document(
        title=f"Bottleneck report: {diagnosis.name}",
        subtitle=where,
        blocks=(
            Paragraph(text=in_short(diagnosis)),
            Section(title="Baseline", blocks=(_listed(_baseline(time), _missing(_unknown(time), time.stated)),)),
            Section(title="Roofline", blocks=(_listed(_roofline(diagnosis, time), _no_roofline(diagnosis, time)),)),
            Section(title="Occupancy", blocks=tuple(occupancy_section(diagnosis))),
            Section(title="Compute/load ratio", blocks=tuple(ratio_section(diagnosis))),
            Section(title="Instruction mix", blocks=tuple(mix_section(diagnosis))),
            Section(title="Shared-memory cliff", blocks=tuple(cliff_section(diagnosis))),
            Section(title="Recommendations", blocks=tuple(recommendations(diagnosis))),
        ),
    )


def in_short(diagnosis: Diagnosis) -> str:
    """Return the class, what the code shows, and the first thing to try."""
    classification = diagnosis.classification
    parts = [sentence(classification.sentence)] if classification.bottleneck is not Bottleneck.NOT_COLLECTED else []
    evidence = [text for text in code_evidence(diagnosis) if text not in classification.evidence]
    if diagnosis.occupancy and diagnosis.occupancy.why_none in evidence:
        parts.append(sentence(evidence.pop(0)))
    parts += [sentence(", ".join(evidence))] if evidence else []
    first = next((f for f in diagnosis.advice if f.trigger != NO_ROW), None)
    parts += [f"First to try: {first.title[:1].lower()}{first.title[1:]} ({first.trigger})."] if first else []
    return " ".join(parts) or "Nothing was collected."


def _listed(known: Iterator[str], missing: str) -> Block:
    """Return what is known, and one line for the rest."""
    items = tuple(known)
    if items:
        return Bullets(items=(*items, missing) if missing else items)
    return Paragraph(text=missing)


def _baseline(time: Timing) -> Iterator[str]:
    placed = time.placement
    if time.problem:
        yield f"Problem: {time.problem}"
    if time.time_ns is not None:
        yield f"Kernel time: {quantity(time.time_ns, Dimension.TIME)} by {time.by}"
    if placed and placed.impossible:
        yield f"Effective rate and bandwidth: INVALID: {placed.impossible}. Next: {_CHECK}"
        return
    if placed and placed.flops_rate is not None:
        yield f"Effective rate: {quantity(placed.flops_rate, Dimension.FLOPS)}"
    if placed and placed.bandwidth is not None:
        yield f"Effective bandwidth: {quantity(placed.bandwidth, Dimension.BANDWIDTH)}"


def _unknown(time: Timing) -> list[str]:
    placed = time.placement
    known = {
        "problem": bool(time.problem),
        "kernel time": time.time_ns is not None,
        "effective rate": placed is not None and placed.flops_rate is not None,
        "effective bandwidth": placed is not None and placed.bandwidth is not None,
    }
    return [name for name, there in known.items() if not there]


def _missing(names: Sequence[str], stated: Sequence[str], printed: Sequence[str] = ()) -> str:
    """Return what is missing and how to state it, without what was stated or printed before."""
    flags = [flag for name in names for flag in _STATED.get(name, ()) if _OPTION.sub(r"\1", flag) not in stated]
    fresh = " ".join(dict.fromkeys(flag for flag in flags if flag not in printed))
    above = "the work as above" if any(flag in printed for flag in flags) else ""
    which = "them" if len(names) > 1 else "it"
    how = " and ".join(filter(None, (above, fresh))) if above else f"{which}: {fresh}"
    state = f" (state {how})" if above or fresh else ""
    return f"Not collected: {', '.join(names)}{state}" if names else ""


def _roofline(diagnosis: Diagnosis, time: Timing) -> Iterator[str]:
    classification, placed = diagnosis.classification, time.placement
    wrong = placed.impossible if placed else ""
    if placed and placed.intensity is not None:
        yield f"Arithmetic intensity: {quantity(placed.intensity, Dimension.INTENSITY)}"
    if time.ridge is not None:
        yield f"Balance point: {quantity(time.ridge, Dimension.INTENSITY)} ({time.dtype})"
    yield from _types_not_computed(diagnosis, time)
    if classification.bottleneck is not Bottleneck.NOT_COLLECTED:
        yield f"Classification: {classification.short}"
        yield from (f"{line[:1].upper()}{line[1:]}" for line in classification.evidence if line != wrong)
    yield from (f"Note: {note}" for note in classification.notes)
    if diagnosis.pipe:
        yield f"Busiest pipe that computes: {diagnosis.pipe[0]}, {quantity(diagnosis.pipe[1], Dimension.FRACTION, 3)}"
    if wrong:
        yield "Attained fraction: INVALID, as above" + (f" ({time.basis})" if time.basis else "")
    elif placed and placed.fraction is not None:
        basis = f" of {time.basis}" if time.basis else ""
        yield f"Attained fraction: {quantity(placed.fraction, Dimension.FRACTION, 3)}{basis}"


def _types_not_computed(diagnosis: Diagnosis, time: Timing) -> Iterator[str]:
    """Yield a stated type that the machine code does not compute in, so that the peak would be wrong."""
    inner = diagnosis.inner
    if inner and time.dtype and inner.types and time.dtype not in inner.types:
        types = " or ".join(inner.types)
        yield f"Doubt: {time.dtype} is stated, but the main loop computes with {inner.compute} ({types})"


def _no_roofline(diagnosis: Diagnosis, time: Timing) -> str:
    placed, lines = time.placement, []
    if diagnosis.classification.bottleneck is Bottleneck.NOT_COLLECTED:
        lines.append(f"Not collected: classification ({_COUNTERS})")
    missing = [] if placed and placed.intensity is not None else ["arithmetic intensity"]
    missing += ["balance point"] if time.ridge is None else []
    missing += ["attained fraction"] if not placed or (placed.fraction is None and not placed.impossible) else []
    above = [flag for name in _unknown(time) for flag in _STATED[name]]
    stated = (*time.stated, "device") if diagnosis.facts.device else time.stated
    lines += [_of_this_code(_missing(missing, stated, above), diagnosis)] if missing else []
    return "; ".join(lines[:1] + [text[:1].lower() + text[1:] for text in lines[1:]])


_DEVICES = {
    "sm_70": "V100-SXM2", "sm_75": "T4", "sm_80": "A100-SXM4-80GB", "sm_86": "RTX 3070 Ti", "sm_89": "RTX 4090",
    "sm_100": "B200", "sm_103": "B300", "sm_120": "RTX 5090",
}  # fmt: skip
"""A device of each architecture, for the hint."""


def _of_this_code(hint: str, diagnosis: Diagnosis) -> str:
    """Return the hint with a type that this code computes in, and a device that runs it."""
    dtype = ((diagnosis.inner.types if diagnosis.inner else ()) or ("fp16",))[0]
    device = _DEVICES.get(diagnosis.facts.arch.rstrip("af"), "H100 SXM")
    return hint.replace("dtype=fp16", f"dtype={dtype}").replace("H100 SXM", device)


def recommendations(diagnosis: Diagnosis) -> Iterator[Block]:
    advice = diagnosis.advice
    unknown = {Bottleneck.NOT_COLLECTED: f"not collected ({_COUNTERS})", Bottleneck.INVALID: "invalid"}
    if state := unknown.get(diagnosis.classification.bottleneck):
        advice = tuple(finding for finding in advice if finding.trigger != NO_ROW)
        rest = "What the code alone shows:" if advice else "Nothing stands out in the code alone."
        yield Paragraph(text=f"The class is {state}, so advice that depends on it is not given. {rest}")
    if advice:
        yield Bullets(items=tuple(advice_items(advice)), ordered=True)


OPTIONS = (
    ("problem", "the problem in words, such as 'GEMM, M=N=K=4096'"),
    ("flops", "operations, such as 137.4GFLOP"),
    ("bytes", "unique bytes moved, such as 201MB"),
    ("items", "the unit of throughput, such as '8192 tokens'"),
    ("dtype", "the type that sets the peak, such as fp16"),
    ("device", "the device of the catalogue that it ran on, such as 'H100 SXM'"),
    ("peak", "peaks by dtype, such as bf16=708TFLOPS, instead of a device"),
    ("bandwidth", "memory bandwidth, such as 5.3TB/s, instead of a device"),
    ("rates", "datasheet or achievable: which column of the catalogue is the roof"),
    ("version", "the kernel's version, shown at the top of the contract"),
)

_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(\S*)\s*")


@value
class BottleneckOptions:
    """The options as values."""

    problem: str = ""
    time_ns: float | None = None
    work: Work | None = None
    roof: Roof | None = None
    device: str = ""
    dtype: str = ""
    names: tuple[str, ...] = ()
    """What was stated, with ``device`` for any roof of the type."""

    @property
    def configuration(self) -> dict[str, str]:
        """Return the stated facts of the call other than its launch."""
        stated = {"parameters": self.problem, "dtype": self.dtype}
        return {name: text for name, text in stated.items() if text}

    def placed(self, time_ns: float | None) -> Placement | None:
        """Return the work done in a time, compared with the known part of the roof."""
        return place(self.work, time_ns, self.roof or _NO_ROOF) if self.work and time_ns else None


_NO_ROOF = datasheet_roof(Device(key="", name="", kind="gpu"), DeviceSpec(name="", pattern="", arch=""))


def parse_stated(options: Mapping[str, str], spec: DeviceSpec | None) -> BottleneckOptions:
    """Return options as values; raise for an unreadable one."""
    flops, moved = _amount(options, "flops", Dimension.WORK), _amount(options, "bytes", Dimension.BYTES)
    items, unit = parse_items(options.get("items", ""))
    dtype = options.get("dtype", "")
    if dtype and known_dtype(dtype) is None:
        known = ", ".join(sorted(WIDTHS))
        raise PerfgateError("kernel-option", f"dtype={dtype} is no known type", fix=f"one of {known}")
    work = Work(flops=flops, bytes=moved, dtype=known_dtype(dtype) or "", items=items, unit=unit, working_set=moved)
    roof = _roof(options, spec)
    return BottleneckOptions(
        problem=options.get("problem", ""),
        time_ns=_amount(options, "time", Dimension.TIME),
        work=work if any(number is not None for number in (flops, moved, items)) else None,
        roof=roof,
        device=spec.name if spec else "",
        dtype=known_dtype(dtype) or "",
        names=(
            *(name for name, text in options.items() if text),
            *(["device"] if roof and (not dtype or roof.rate(dtype)) else []),
        ),
    )


def _roof(options: Mapping[str, str], spec: DeviceSpec | None) -> Roof | None:
    """Return given peaks, and for what they leave out those of the device in the requested column."""
    peaks = options.get("peak", ""), options.get("bandwidth", "")
    if all(peaks) or spec is None:
        return given_roof(*peaks, None, "kernel-option")
    sheet = replace(datasheet_roof(Device(key="", name=spec.name, kind="gpu"), spec), note="")
    roof = rated(spec, sheet, options.get("rates", "datasheet"), "kernel-option")
    roof = replace(roof, note=f"{options.get('rates', 'datasheet')} peak of {spec.name}{roof.note}")
    return given_roof(*peaks, roof, "kernel-option")


def _amount(options: Mapping[str, str], name: str, dimension: Dimension) -> float | None:
    text = options.get(name)
    if text is None:
        return None
    match, units = _AMOUNT.fullmatch(text), UNITS[dimension]
    if match is None or match[2] not in units or not float(match[1]) > 0:
        known = ", ".join(list(units)[:6])
        raise PerfgateError("kernel-option", f"{name}={text} cannot be read", fix=f"a number with a unit: {known}")
    return float(match[1]) * units[match[2]]


def timing(stated: BottleneckOptions, time_ns: float | None, by: str) -> Timing:
    """Return the baseline and the roofline of a report."""
    return Timing(
        problem=stated.problem,
        time_ns=time_ns,
        by=by,
        placement=stated.placed(time_ns),
        ridge=ridge(stated.roof, stated.dtype) if stated.roof else None,
        dtype=stated.dtype,
        basis=stated.roof.note if stated.roof else "",
        stated=stated.names,
    )


def signals(stated: BottleneckOptions, time_ns: float | None) -> Signals | None:
    """Return both fractions of the roof by the timing; None without time, work or roof."""
    placed = stated.placed(time_ns)
    wrong = (placed.impossible,) if placed and placed.impossible else ()
    if placed is None or stated.roof is None or (placed.compute is None and placed.memory is None and not wrong):
        return None
    balance = ridge(stated.roof, stated.dtype)
    return Signals(
        compute=placed.compute, memory=placed.memory, intensity=placed.intensity, ridge=balance, problems=wrong
    )


_WORK = "--set flops=137.4GFLOP --set bytes=201MB --set dtype=fp16"

_PARTS = (
    ("tflops", Dimension.FLOPS, "operations", _FLOPS),
    ("bandwidth", Dimension.BANDWIDTH, "bytes", _BYTES),
    ("intensity", Dimension.INTENSITY, "operations and bytes", f"{_FLOPS} {_BYTES}"),
    ("throughput", Dimension.RATE, "items", "--set items='8192 tokens'"),
    ("mfu_datasheet", Dimension.FRACTION, "operations, their type and a device", f"{_FLOPS} --set dtype=fp16"),
    ("sol_datasheet", Dimension.FRACTION, "work and a device", _WORK),
)
"""Figures of stated work, with what each needs and how to state it."""

_OF_ROOF = ("mfu_datasheet", "sol_datasheet")
_OF_TIME = ("tflops", "bandwidth", *_OF_ROOF, "mfu", "sol")
_CHECK = "check --set flops=, bytes=, dtype= and the time, and --device, --peak and --bandwidth"


def stated_metrics(stated: BottleneckOptions, time_ns: float | None, by: str) -> MetricSet:
    """Return rates and fractions of stated work for limits; missing ones say how to state the work."""
    placed, work = stated.placed(time_ns), stated.work
    more = dict.fromkeys(() if stated.roof else _OF_ROOF, " --device 'H100 SXM'")
    if placed is None or work is None or not time_ns:
        why, fix = ("no work is stated", _WORK) if work is None else ("no time is known", "--set time=11.2ms")
        fixes = {name: f"add to perfgate check: {fix}{more.get(name, '')}" for name, *_ in _PARTS}
        return MetricSet(absent=tuple(Absent(name=name, why=why, fix=fixes[name]) for name in fixes))
    values = {
        "tflops": placed.flops_rate,
        "bandwidth": placed.bandwidth,
        "intensity": placed.intensity,
        "throughput": work.items / time_ns * 1e9 if work.items is not None else None,
        "mfu_datasheet": placed.compute,
        "sol_datasheet": placed.fraction,
    }
    values |= dict.fromkeys(_OF_TIME if placed.impossible else ())
    over = f"stated work over {quantity(time_ns, Dimension.TIME)} by {by}"
    sheet = f"{over}; {stated.roof.note}" if stated.roof else over
    notes = dict.fromkeys(_OF_ROOF, sheet) | {"throughput": f"{OF_ITEMS}{work.unit}/s; {over}"}
    metrics, absent = list[Metric](), dict[str, Absent]()
    for name, dimension, needs, how in _PARTS:
        value, note = values[name], notes.get(name, over)
        if value is not None:
            metrics.append(Metric(name=name, value=value, dimension=dimension, source="stated", note=note))
        else:
            fix = f"add to perfgate check: {how}{more.get(name, '')}"
            absent[name] = Absent(name=name, why=f"it needs {needs}", fix=fix)
    if stated.roof and stated.roof.note.startswith(GIVEN):
        metrics += [replace(m, name=m.name.partition("_")[0]) for m in metrics if m.name.endswith("_datasheet")]
    why = of_compute(work, stated.roof).why if stated.roof and work.flops and work.dtype else ""
    if why:
        absent["mfu_datasheet"] = Absent(name="mfu_datasheet", why=why, fix=f"give it: --peak {work.dtype}=100TFLOPS")
    for name in _OF_TIME if placed.impossible else ():
        absent[name] = Absent(name=name, why=placed.impossible, fix=_CHECK, code="above-peak")
    return MetricSet(metrics=tuple(metrics), absent=tuple(absent.values()))


def run_figures(stated: BottleneckOptions, time_ns: float | None) -> Iterator[tuple[str, str]]:
    """Yield figures of the whole run for the analysis report, as far as they are known."""
    placed, work = stated.placed(time_ns), stated.work
    if placed is None or work is None or not time_ns:
        return
    if work.items is not None:
        yield "Throughput", quantity(work.items / time_ns * 1e9, Dimension.RATE, noun=f"{work.unit}/s")
    if placed.impossible:
        yield "Achieved rate, MFU and % of SOL", f"INVALID: {placed.impossible}"
        return
    if placed.flops_rate is not None:
        yield "Achieved rate", quantity(placed.flops_rate, Dimension.FLOPS)
    if placed.compute is not None:
        yield "MFU", quantity(placed.compute, Dimension.FRACTION, 3)
    if placed.fraction:
        yield "% of SOL", f"{quantity(placed.fraction, Dimension.FRACTION, 3)} (room for {1 / placed.fraction:,.2f} x)"
    if placed.bandwidth is not None:
        part = f" ({quantity(placed.memory, Dimension.FRACTION, 3)} of peak)" if placed.memory is not None else ""
        yield "Bandwidth of unique bytes", quantity(placed.bandwidth, Dimension.BANDWIDTH) + part
