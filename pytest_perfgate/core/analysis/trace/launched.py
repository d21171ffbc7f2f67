"""Steps and annotations that only the host marked, as the GPU saw them: from what was launched in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pytest_perfgate.core.analysis.trace.survey import Survey
from pytest_perfgate.core.analysis.trace.window import Window, parse_window, steps
from pytest_perfgate.model.errors import PerfgateError

BEHIND = "by launches"
"""Said where the GPU runs behind the host, and a window is that of the work which was launched in it."""


def steps_of(seen: Survey) -> tuple[Window, ...]:
    """The steps of a trace; none where it marks none, or where none of its GPU work belongs to one."""
    return _of_the_gpu(seen, steps(seen.trace))


def windows_of(seen: Survey, text: str) -> tuple[Window, ...]:
    """The windows that an option names."""
    asked = parse_window(seen.trace, text)
    every = steps(seen.trace)
    if not all(window in every for window in asked):
        found = _of_the_gpu(seen, _numbered(asked))
    else:
        known = {window.step: window for window in steps_of(seen)}
        found = tuple(known[window.step] for window in asked if window.step in known)
    if asked and not found:
        names = ", ".join(window.label for window in asked[:4])
        what = f"nothing that was launched in {names} is in the trace"
        mend = "name another, or a range such as 2ms..5ms; a profile that stops early loses the work of its last step"
        raise PerfgateError("trace-window", what, place=seen.trace.path, mend=mend)
    return found


def _numbered(found: Sequence[Window]) -> tuple[Window, ...]:
    """The instances of an annotation, told apart as steps are."""
    if len(found) < 2:
        return tuple(found)
    return tuple(replace(w, label=f"{w.label} ({n})", step=str(n)) for n, w in enumerate(found, 1))


def _of_the_gpu(seen: Survey, found: Sequence[Window]) -> tuple[Window, ...]:
    """The host's windows as they are while all that they launch ends in them, else the hulls of what they launched."""
    linked = np.flatnonzero(seen.link.launch >= 0)
    if seen.on_host or not len(linked) or not any(window.on_host for window in found):
        return tuple(found)
    rows, at = seen.link.rows[linked], seen.trace.start[seen.link.launch[linked]]
    order = np.argsort(at, kind="stable")
    rows, at = rows[order], at[order]
    hulls = []
    for window in found:
        low, high = np.searchsorted(at, window.pair, side="left")
        inside = rows[low:high]
        if len(inside):
            hulls.append((window, int(seen.trace.start[inside].min()), int(seen.trace.end[inside].max())))
    if all(end <= window.end for window, _, end in hulls):
        return tuple(found)
    return tuple(replace(w, start=low, end=high, label=f"{w.label}, {BEHIND}") for w, low, high in hulls)
