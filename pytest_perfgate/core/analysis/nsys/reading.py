"""Options as text come to a reading; whatever does not read is an error that says what would."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches

from pytest_perfgate.core.analysis.nsys.presets import PITHTRAIN, PRESETS
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.nsys import Preset
from pytest_perfgate.model.nsys_job import Reading
from pytest_perfgate.model.quantity import TIME_UNIT, TIME_UNITS

OPTIONS: tuple[tuple[str, str], ...] = (
    ("preset", f"how the program names its ranges: {', '.join(PRESETS)}"),
    ("anchor", "NVTX pattern whose median range is the window (SQL's % or a regular expression)"),
    ("start", "start of the window in ns, instead of an anchor"),
    ("end", "end of the window in ns"),
    ("stage", "pattern that names a stage; its last match counts"),
    ("purposes", "PATTERN=PURPOSE, ... for communication streams"),
    ("label", "pattern with one group: the rank in a process's label"),
    ("communication", "one more pattern of kernel names that communicate"),
    ("compat", "pithtrain: kernels wholly inside the window, summed per kernel"),
)


def reading(options: Mapping[str, str]) -> Reading:
    """What the options ask for, over the preset's patterns."""
    known = [name for name, _ in OPTIONS]
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, 1)
            mend = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
            raise PerfgateError("nsys-option", f"there is no option {name!r}", mend=mend)
    compat = options.get("compat", "")
    if compat not in {"", "pithtrain"}:
        raise PerfgateError("nsys-option", f"compat={compat!r}", mend="compat=pithtrain is the one there is")
    return Reading(
        preset=_preset(options),
        anchor=options.get("anchor", ""),
        span=_span(options),
        original=bool(compat),
    )


def _preset(options: Mapping[str, str]) -> Preset:
    name = options.get("preset", PITHTRAIN.name)
    if name not in PRESETS:
        raise PerfgateError("nsys-option", f"preset={name!r}", mend=f"known: {', '.join(PRESETS)}")
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
        found = re.compile(text)
    except re.error as error:
        raise PerfgateError("nsys-option", f"{option}={text!r} is no regular expression: {error}") from error
    if found.groups < groups:
        raise PerfgateError("nsys-option", f"{option}={text!r} has no group", mend=r"for instance rank=(\d+)")
    return text


def _purposes(text: str) -> tuple[tuple[str, str], ...]:
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        pattern, equals, purpose = part.rpartition("=")
        if not equals or not pattern or not purpose:
            raise PerfgateError("nsys-option", f"purposes={part!r}", mend="write PATTERN=PURPOSE, PATTERN=PURPOSE")
        pairs.append((_pattern("purposes", pattern.strip()), purpose.strip()))
    return tuple(pairs)


def _span(options: Mapping[str, str]) -> tuple[int, int] | None:
    if "start" not in options and "end" not in options:
        return None
    if "start" not in options or "end" not in options:
        raise PerfgateError("nsys-window", "start and end go together", mend="--set start=NS --set end=NS")
    if "anchor" in options:
        raise PerfgateError("nsys-window", "an anchor and a start are two windows", mend="drop one of them")
    start, end = (_nanoseconds(name, options[name]) for name in ("start", "end"))
    if not start < end:
        raise PerfgateError("nsys-window", f"{start}..{end} is no span", mend="start < end")
    return start, end


def _nanoseconds(name: str, text: str) -> int:
    """A point of the export's own clock; without a unit it is in nanoseconds."""
    hit = re.fullmatch(rf"\s*(-?\d+(?:\.\d+)?)\s*({TIME_UNIT})?\s*", text)
    if hit is None:
        mend = "nanoseconds of the export's own clock, or a number with ns, us, ms or s"
        raise PerfgateError("nsys-window", f"{name}={text!r} is no time", mend=mend)
    number, unit = hit.groups()
    return int(number) if unit is None and "." not in number else round(float(number) * TIME_UNITS[unit or "ns"])
