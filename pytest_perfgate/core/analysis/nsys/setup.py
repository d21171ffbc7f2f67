"""Ranks, windows and presets of an analysis."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis import intervals
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.nsys import AS_GIVEN, OPEN, Extent, Preset, Ranges, Rank, ReadOptions, Window, pid_of
from pytest_perfgate.model.values import TIME_UNIT, TIME_UNITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def ranks(
    ranges: Ranges,
    processes: Sequence[tuple[int, int]],
    preset: Preset,
    file: int = 0,
    first: int = 0,
    threads: Sequence[tuple[int, str]] = (),
) -> tuple[Rank, ...]:
    """Return one rank for each process and device; ``first`` continues the numbers of other files."""
    titles = {pid: name for pid, name in reversed(threads) if re.search(preset.thread, name)}
    labels = {**titles, **_labels(ranges, preset)}
    devices = Counter(pid for pid, _ in processes)
    result = []
    for number, (pid, device) in enumerate(sorted(processes, key=lambda pair: (pair[1], pair[0])), first):
        label = labels.get(pid, "")
        hit = re.search(preset.rank, label, re.IGNORECASE) or re.search(preset.thread, label)
        name = str(number) if not label else hit.group(1) if hit else ""
        if label and devices[pid] > 1:
            name = f"{name}/gpu{device}"
        result.append(_named(name, pid, device, label, preset, file))
    return tuple(result)


def _labels(ranges: Ranges, preset: Preset) -> dict[int, str]:
    """Return each process's first range that names a rank."""
    pattern = re.compile(preset.rank, re.IGNORECASE)
    names = np.array([bool(pattern.search(text)) for text in ranges.texts], dtype=bool)
    rows = np.flatnonzero(names[ranges.text]) if len(ranges) else np.empty(0, dtype=np.int64)
    rows = rows[np.argsort(ranges.start[rows], kind="stable")]
    labels: dict[int, str] = {}
    for pid, text in zip(pid_of(ranges.tid[rows]).tolist(), ranges.text[rows].tolist()):
        labels.setdefault(pid, ranges.texts[text])
    return labels


def _named(name: str, pid: int, device: int, label: str, preset: Preset, file: int) -> Rank:
    mesh = re.findall(preset.mesh, label, re.IGNORECASE)
    settings = re.findall(preset.settings, label, re.IGNORECASE)
    return Rank(
        name=name,
        pid=pid,
        device=device,
        file=file,
        label=label,
        mesh=tuple((axis.lower(), int(at), int(size)) for axis, at, size in mesh),
        settings=tuple((key.lower(), int(number)) for key, number in settings),
    )


def order(rank: Rank) -> tuple[int, str]:
    """Return the key that sorts ranks by number."""
    digits = re.match(r"\d+", rank.name)
    return (int(digits.group()) if digits else 1 << 62, rank.name)


def windows(
    ranges: Ranges, ranks: Sequence[Rank], reading: ReadOptions, extents: Callable[[], Sequence[Extent]]
) -> dict[Rank, Window]:
    """Return a window for each rank; none for a rank without the anchor that others have."""
    if reading.span is not None:
        return _fixed(reading.span, ranks, extents)
    for anchor in (reading.anchor,) if reading.anchor else reading.preset.anchors:
        if anchored := _anchored(ranges, ranks, anchor, extents):
            return anchored
    if reading.anchor:
        raise PerfgateError("nsys-anchor", f"no range matches {reading.anchor!r}", fix=_nearest(ranges))
    spans = {(extent.pid, extent.device): extent for extent in extents()}
    why = "the whole capture, for no range matches the preset's anchors" if len(ranges) else "the whole capture"
    return {
        rank: Window(start=spans[key].first, end=spans[key].last, how=why)
        for rank in ranks
        if (key := (rank.pid, rank.device)) in spans
    }


def _fixed(span: tuple[int, int], ranks: Sequence[Rank], extents: Callable[[], Sequence[Extent]]) -> dict[Rank, Window]:
    (start, end), spans = span, {(extent.pid, extent.device): extent for extent in extents()}
    parts = [_covers(np.array([start]), np.array([end]), spans.get((rank.pid, rank.device))) for rank in ranks]
    return {rank: Window(start=start, end=end, how=AS_GIVEN, covers=part) for rank, part in zip(ranks, parts)}


def _anchored(
    ranges: Ranges, ranks: Sequence[Rank], anchor: str, extents: Callable[[], Sequence[Extent]]
) -> dict[Rank, Window]:
    pattern = re.compile(_regular(anchor), re.IGNORECASE)
    hits = np.array([bool(pattern.search(text)) for text in ranges.texts], dtype=bool)
    rows = np.flatnonzero(hits[ranges.text] & (ranges.end < OPEN)) if len(ranges) else np.empty(0, dtype=np.int64)
    rows = _lasting(ranges, rows, anchor)
    process, result = pid_of(ranges.tid[rows]), dict[Rank, Window]()
    spans = {(extent.pid, extent.device): extent for extent in extents()} if len(rows) else {}
    for rank in ranks:
        own = rows[process == rank.pid]
        if len(own):
            own = own[np.argsort(ranges.start[own], kind="stable")]
            middle = own[len(own) // 2]
            start, end = ranges.start[own], ranges.end[own]
            result[rank] = Window(
                start=int(ranges.start[middle]),
                end=int(ranges.end[middle]),
                how=f"{ranges.texts[ranges.text[middle]]!r}, number {len(own) // 2 + 1} of {len(own)} that match",
                covers=_covers(start, end, spans.get((rank.pid, rank.device))),
                between_starts=int(intervals.middle(np.diff(start))) if len(start) > 1 else None,
            )
    return result


def _covers(start: Ints, end: Ints, extent: Extent | None) -> float | None:
    """Return the part of a capture, from its first kernel or range to its last, that these ranges cover."""
    if extent is None:
        return None
    low, high = min(extent.first, int(start.min())), max(extent.last, int(end.max()))
    return intervals.covered(start, end) / max(high - low, 1)


def _lasting(ranges: Ranges, rows: Ints, anchor: str) -> Ints:
    """Return the ranges that take time; in an empty one every share would be zero."""
    lasting = rows[ranges.end[rows] > ranges.start[rows]]
    if len(rows) and not len(lasting):
        fix = "name another range (--anchor), or give a start and an end"
        raise PerfgateError("nsys-window", f"every range that matches {anchor!r} starts and ends at once", fix=fix)
    return lasting


def _regular(anchor: str) -> str:
    """Return a pattern as a regular expression; one with SQL's ``%`` must match the whole text."""
    if "%" in anchor:
        return "^" + ".*".join(re.escape(part) for part in anchor.split("%")) + "$"
    try:
        re.compile(anchor)
    except re.error:
        return re.escape(anchor)
    return anchor


def _nearest(ranges: Ranges) -> str:
    """Return the commonest ranges, as proposals."""
    if not len(ranges):
        return "the export has no NVTX ranges: give a start and an end"
    counts = np.bincount(ranges.text, minlength=len(ranges.texts))
    common = [ranges.texts[at] for at in np.argsort(-counts, kind="stable")[:5] if counts[at]]
    return f"the commonest ranges are {', '.join(map(repr, common))}"


_STEP = r"^ProfilerStep"

PITHTRAIN = Preset(
    name="pithtrain",
    anchors=(r"^forward chunk.*backward chunk", _STEP),
    stage=r"stage([1-5])_([fbw])",
    purposes=(
        (r"stage[24]_", "ep_a2a"),
        (r"stage1_", "cp_ring"),
        (r"pipeline send/recv", "pp_p2p"),
    ),
)

MEGATRON = Preset(
    name="megatron",
    anchors=(r"^(iteration|train[_ -]?step)\b", r"^forward[-_]backward", _STEP),
    stage=r"(forward|backward)[-_](compute|step)|(embedding|layernorm|layer)[-_ ]?grads?[-_ ]all[-_]?reduce|optimizer",
    purposes=(
        (r"(forward|backward)[-_](send|recv)|p2p|send[-_]recv", "pp_p2p"),
        (r"all[-_]?to[-_]?all|alltoall|token[-_ ]?dispatch|token[-_ ]?combine", "ep_a2a"),
        (r"context[-_ ]parallel|ring[-_ ]?attention|attn[-_ ]fwd[-_ ]ring", "cp_ring"),
        (r"grads?[-_ ](all[-_]?reduce|reduce[-_]?scatter|sync)|param[-_ ]?gather", "dp_grad"),
        (r"tensor[-_ ]parallel|row[-_ ]?parallel|column[-_ ]?parallel", "tp"),
    ),
    rank=r"\b(?:global[-_ ])?rank\s*[=:]?\s*(\d+)",
)

DDP = Preset(
    name="ddp",
    anchors=(_STEP, r"^(train[_ -]?)?(step|iteration|iter|batch)\b"),
    stage=r"\b(forward|backward|optimizer|data)\b",
    purposes=(
        (r"DistributedDataParallel\.|all[-_]?reduce|bucket", "dp_grad"),
        (r"all[-_]?to[-_]?all", "a2a"),
        (r"backward", "dp_grad"),
    ),
)

PRESETS = {preset.name: preset for preset in (PITHTRAIN, MEGATRON, DDP)}

OPTIONS: tuple[tuple[str, str], ...] = (
    ("rank", "only ranks of this name, such as 0, or 1,3"),
    ("preset", f"how the program names its ranges: {', '.join(PRESETS)}"),
    ("anchor", "NVTX pattern whose median range is the window (SQL's % or a regular expression)"),
    ("start", "start of the window in ns, instead of an anchor"),
    ("end", "end of the window in ns"),
    ("stage", "pattern that names a stage; its last match counts"),
    ("purposes", "PATTERN=PURPOSE, ... for communication streams"),
    ("label", "pattern with one group: the rank in a process's label"),
    ("communication", "one more pattern of kernel names that communicate"),
    ("compat", "pithtrain: only kernels wholly inside the window, added up kernel by kernel"),
)


def reading(options: Mapping[str, str]) -> ReadOptions:
    """Return the reading by the options, over the preset's patterns."""
    known = [name for name, _ in OPTIONS]
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, 1)
            fix = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
            raise PerfgateError("nsys-option", f"there is no option {name!r}", fix=fix)
    compat = options.get("compat", "")
    if compat not in {"", "pithtrain"}:
        raise PerfgateError("nsys-option", f"compat={compat!r}", fix="the only choice is compat=pithtrain")
    return ReadOptions(
        preset=_preset(options),
        anchor=options.get("anchor", ""),
        span=_span(options),
        original=bool(compat),
        ranks=tuple(filter(None, (name.strip() for name in options.get("rank", "").split(",")))),
    )


def _preset(options: Mapping[str, str]) -> Preset:
    name = options.get("preset", PITHTRAIN.name)
    if name not in PRESETS:
        raise PerfgateError("nsys-option", f"preset={name!r}", fix=f"known: {', '.join(PRESETS)}")
    preset = PRESETS[name]
    if "stage" in options:
        preset = replace(preset, stage=_pattern("stage", options["stage"]))
    if "label" in options:
        preset = replace(preset, rank=_pattern("label", options["label"], groups=1))
    if "communication" in options:
        preset = replace(preset, communication=(_pattern("communication", options["communication"]),))
    if "purposes" in options:
        preset = replace(preset, purposes=_purposes(options["purposes"]))
    return preset


def _pattern(option: str, text: str, groups: int = 0) -> str:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise PerfgateError("nsys-option", f"{option}={text!r} is not a regular expression: {error}") from error
    if pattern.groups < groups:
        raise PerfgateError("nsys-option", f"{option}={text!r} has no group", fix=r"for instance rank=(\d+)")
    return text


def _purposes(text: str) -> tuple[tuple[str, str], ...]:
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        pattern, equals, purpose = part.rpartition("=")
        if not equals or not pattern or not purpose:
            raise PerfgateError("nsys-option", f"purposes={part!r}", fix="write PATTERN=PURPOSE, PATTERN=PURPOSE")
        pairs.append((_pattern("purposes", pattern.strip()), purpose.strip()))
    return tuple(pairs)


def _span(options: Mapping[str, str]) -> tuple[int, int] | None:
    if "start" not in options and "end" not in options:
        return None
    if "start" not in options or "end" not in options:
        raise PerfgateError("nsys-window", "start and end go together", fix="--start NS --end NS")
    if "anchor" in options:
        raise PerfgateError("nsys-window", "an anchor and a start are two windows", fix="drop one of them")
    start, end = (_nanoseconds(name, options[name]) for name in ("start", "end"))
    if not start < end:
        raise PerfgateError("nsys-window", f"{start}..{end} is not a span", fix="start < end")
    return start, end


def _nanoseconds(name: str, text: str) -> int:
    """Return a time of the export's own clock; without a unit it is in nanoseconds."""
    hit = re.fullmatch(rf"\s*(-?\d+(?:\.\d+)?)\s*({TIME_UNIT})?\s*", text)
    if hit is None:
        fix = "nanoseconds of the export's own clock, or a number with ns, us, ms or s"
        raise PerfgateError("nsys-window", f"{name}={text!r} is not a time", fix=fix)
    number, unit = hit.groups()
    return int(number) if unit is None and "." not in number else round(float(number) * TIME_UNITS[unit or "ns"])
