"""The part of a trace that figures are of: whole, steps, an annotation, a time range."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import numpy as np

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.quantity import TIME_UNIT, TIME_UNITS
from pytest_perfgate.model.trace import Category, Trace
from pytest_perfgate.model.values import value

_STEP = re.compile(r"^ProfilerStep#(\d+)$")
_RANGE = re.compile(rf"^(\d+(?:\.\d+)?)\s*({TIME_UNIT})?\s*\.\.\s*(\d+(?:\.\d+)?)\s*({TIME_UNIT})$")


@value
class Window:
    """A stretch of a trace, in its own nanoseconds, and how it is called."""

    label: str
    start: int
    end: int
    step: str = ""
    on_host: bool = False
    """The host marked it; the GPU may have run behind."""

    @property
    def pair(self) -> tuple[int, int]:
        return self.start, self.end


def steps(trace: Trace) -> tuple[Window, ...]:
    """Windows of profiler steps as the GPU saw them, else as the host did; PyTorch 1 called them operators."""
    for category in (Category.GPU_ANNOTATION, Category.ANNOTATION, Category.OPERATOR):
        found = [w for w in ranges(trace, "ProfilerStep#*", category) if w.step]
        if found:
            return tuple(found)
    return ()


def ranges(trace: Trace, pattern: str, category: Category) -> tuple[Window, ...]:
    """Windows of ranges whose name fits; one that shows on several streams is their hull."""
    wanted = {i for i, name in enumerate(trace.names) if fnmatchcase(name, pattern) or name == pattern}
    rows = np.flatnonzero((trace.category == category) & np.isin(trace.name, list(wanted)))
    hulls: dict[tuple[str, int], Window] = {}
    for row in rows[np.argsort(trace.start[rows], kind="stable")].tolist():
        name, start, end = trace.names[trace.name[row]], int(trace.start[row]), int(trace.end[row])
        step = _STEP.match(name)
        key = (name, 0 if step else int(trace.external[row]))
        before = hulls.get(key)
        low, high = (min(before.start, start), max(before.end, end)) if before else (start, end)
        at_host, number = category != Category.GPU_ANNOTATION, step.group(1) if step else ""
        hulls[key] = Window(label=name, start=low, end=high, step=number, on_host=at_host)
    return tuple(hulls.values())


def parse_window(trace: Trace, text: str) -> tuple[Window, ...]:
    """Windows that an option names: ``steps``, ``step=3``, ``annotation=NAME`` or ``2ms..5ms``."""
    text = text.strip()
    if text in {"", "whole"}:
        return ()
    ranged = _RANGE.match(text)
    if ranged:
        low, unit, high, end_unit = ranged.groups()
        start, end = float(low) * TIME_UNITS[unit or end_unit], float(high) * TIME_UNITS[end_unit]
        if end <= start:
            raise PerfgateError("trace-option", f"the window {text!r} ends before it starts")
        return (Window(label=f"from {text}", start=round(start), end=round(end)),)
    kind, _, name = text.partition("=")
    found: tuple[Window, ...]
    if kind in {"steps", "step"}:
        found = tuple(w for w in steps(trace) if not name or fnmatchcase(w.step, name))
    else:
        name = name if kind == "annotation" else text
        found = ranges(trace, name, Category.GPU_ANNOTATION) or ranges(trace, name, Category.ANNOTATION)
    if not found:
        raise PerfgateError(
            "trace-window", f"no step or annotation fits {text!r}", place=trace.path, mend=_known(trace)
        )
    return found


def _known(trace: Trace) -> str:
    rows = np.flatnonzero((trace.category == Category.ANNOTATION) | (trace.category == Category.GPU_ANNOTATION))
    names = sorted({trace.names[n] for n in np.unique(trace.name[rows]).tolist()})[:8]
    return (
        f"the trace has: {', '.join(names)}" if names else "the trace has no annotations; use a range such as 2ms..5ms"
    )
