"""What a reading came to: figures, what is said beside them, and figures that cannot be."""

from __future__ import annotations

import contextlib
import math
import re
import shutil
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pytest_perfgate.app.inspections import choose, inspect
from pytest_perfgate.core.judge.against_limit import above_peak
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Analysis, Bullets, Document, Metric, Paragraph, Section, Table
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.wiring import built_ins


class Seen(NamedTuple):
    """What a file came to."""

    figures: Mapping[str, Any]
    notices: frozenset[str] = frozenset()
    """Whatever tells a person that something is wrong or missing."""
    odd: tuple[str, ...] = ()
    """Figures outside of what they can be, where limits are held against them."""


def plain(value: Any, *odd: str) -> Seen:
    """Of what is no report: all that it says."""
    return Seen({"value": repr(value)}, odd=odd)


@lru_cache(maxsize=1)
def _inspectors() -> Any:
    return built_ins.BuiltIns().pytest_perfgate_inspectors()


def _peek(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4096)


def inspected(path: Path, *others: Path) -> Seen:
    """The metrics of a file, or of several together, and what is said beside them."""
    return looked(_analysis(path, *others))


def figures_of(path: Path, *others: Path) -> Mapping[str, Any]:
    """The metrics alone, without the views, which take most of the time."""
    return _figures(_analysis(path, *others))


def _analysis(*paths: Path) -> Analysis:
    return inspect(list(paths), {}, inspectors=_inspectors(), peek=_peek)


def compared(path: Path) -> Seen:
    """The same of a file beside itself."""
    copy = path.with_name(f"beside{path.suffix}")
    shutil.copy(path, copy)
    return against(path, copy)


def against(before: Path, after: Path) -> Seen:
    """The same of one file beside another one."""
    return looked(choose([before], {}, inspectors=_inspectors(), peek=_peek).compare([before], [after], {}))


def looked(analysis: Analysis) -> Seen:
    """Every view must be written or refused."""
    documents = []
    for build in analysis.views.values():
        with contextlib.suppress(PerfgateError):
            documents.append(build())
            render_text(documents[-1], 100, 0)
    notices = {f"{one.code}: {_wordy(one.what)}" for one in analysis.problems}
    notices |= {f"no {one.name}: {_wordy(one.why)}" for one in analysis.metrics.absent}
    notices |= {
        _wordy(f"{one.title} {one.detail}") for one in analysis.findings if _TROUBLE.search(one.title + one.detail)
    }
    notices |= {_wordy(text) for one in documents[:1] for text in _texts(one.blocks) if _TROUBLE.search(text)}
    odd = tuple(f"{m.name}={m.value!r}" for m in analysis.metrics.metrics if not analysis.problems and not possible(m))
    return Seen(_figures(analysis), frozenset(notices), odd)


def _figures(analysis: Analysis) -> Mapping[str, Any]:
    figures: dict[str, list[float]] = {}
    for metric in analysis.metrics.metrics:
        figures.setdefault(f"{metric.name}{dict(metric.labels)}", []).append(metric.value)
    return {name: sorted(values) for name, values in figures.items()}


_TROUBLE = re.compile(
    r"left out|cut|invalid|not |no |never|none|missing|damage|skip|lost|drop|with(?:out| no)|unknown", re.IGNORECASE
)
_ANY = frozenset({"slowdown", "change", "ncu", "rocprof"})
"""Metrics that may be below zero: changes, and counters that are handed through as the profiler named them."""


def possible(metric: Metric) -> bool:
    """Whether a figure is one that can be; where a trace says more than a peak, the gate calls that INVALID."""
    if metric.name in _ANY or above_peak(metric):
        return math.isfinite(metric.value)
    most = 1 + 1e-9 if metric.dimension is Dimension.FRACTION else math.inf
    return math.isfinite(metric.value) and 0 <= metric.value <= most


def _wordy(text: str) -> str:
    """Without its numbers: other numbers are no other notice."""
    return re.sub(r"[\d.,]+", "#", text)


def _texts(blocks: Iterable[Any]) -> Iterable[str]:
    for block in blocks:
        if isinstance(block, Paragraph):
            yield block.text
        elif isinstance(block, Bullets):
            yield from block.items
        elif isinstance(block, Table):
            yield block.note
        elif isinstance(block, (Section, Document)):
            yield from _texts(block.blocks)
