"""One trace looked at through one window: its GPU rows, their classes, launches and owners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from pytest_perfgate.core.analysis.operators.table import model_of
from pytest_perfgate.core.analysis.trace.classes import gpu_rows, kinds
from pytest_perfgate.core.analysis.trace.linkage import Linkage, link
from pytest_perfgate.core.analysis.trace.timeline import Timeline, timeline
from pytest_perfgate.core.analysis.trace.tree import Tree, call_tree
from pytest_perfgate.core.analysis.trace.window import Window
from pytest_perfgate.model.trace import Trace
from pytest_perfgate.model.values import array_value, value
from pytest_perfgate.model.work import Work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


@value
class Settings:
    """What a user may set for an analysis."""

    communication: tuple[str, ...] = ()
    """More patterns of communication kernels."""
    micro_ns: int = 10_000
    floor: float = 0.9
    """Coverage under which every limit is INVALID."""
    top: int = 6
    models: Mapping[str, Callable[..., Work]] = field(default_factory=dict)
    """Work of the user's own operators."""


@array_value
class Survey:
    """A trace in a window."""

    trace: Trace
    tree: Tree
    link: Linkage
    kinds: NDArray[np.uint8]
    device: Ints
    """The device of each GPU row."""
    owner: Ints
    """The operator row each GPU row is accounted to; -1 where none is known."""
    window: Window | None
    settings: Settings

    @property
    def rows(self) -> Ints:
        return self.link.rows

    @property
    def start(self) -> Ints:
        """Starts of the GPU rows, cut to the window."""
        found: Ints = self.trace.start[self.rows]
        return np.clip(found, *self.window.pair) if self.window else found

    @property
    def end(self) -> Ints:
        found: Ints = self.trace.end[self.rows]
        return np.clip(found, *self.window.pair) if self.window else found

    @property
    def label(self) -> str:
        return self.window.label if self.window else "whole trace"

    @property
    def coverage(self) -> float | None:
        """GPU time in the window that is linked to a launch, over all of it."""
        spent = self.end - self.start
        total = int(spent.sum())
        return float(spent[self.link.launch >= 0].sum() / total) if total else None


def survey(trace: Trace, settings: Settings, window: Window | None = None) -> Survey:
    """Look at a trace; with a window, at the GPU rows that touch it."""
    tree = call_tree(trace)
    rows = gpu_rows(trace)
    links = link(trace, tree, rows)
    devices = np.array([queue.device for queue in trace.queues] or [-1], np.int64)
    whole = Survey(
        trace=trace,
        tree=tree,
        link=links,
        kinds=kinds(trace, rows, settings.communication),
        device=devices[trace.place[rows]] if len(rows) else np.zeros(0, np.int64),
        owner=_owners(trace, tree, links.leaf, settings),
        window=None,
        settings=settings,
    )
    return within(whole, window) if window else whole


def within(whole: Survey, window: Window) -> Survey:
    """The same survey seen through a window."""
    rows = whole.link.rows
    low, high = window.pair
    kept = (whole.trace.start[rows] < high) & (whole.trace.end[rows] > low)
    return Survey(
        trace=whole.trace,
        tree=whole.tree,
        link=Linkage(
            rows=rows[kept],
            launch=whole.link.launch[kept],
            leaf=whole.link.leaf[kept],
            coverage=whole.link.coverage,
        ),
        kinds=whole.kinds[kept],
        device=whole.device[kept],
        owner=whole.owner[kept],
        window=window,
        settings=whole.settings,
    )


def timelines(seen: Survey) -> dict[int, Timeline]:
    """The breakdown of each device."""
    window = seen.window.pair if seen.window else None
    found = {}
    for device in np.unique(seen.device).tolist():
        here = seen.device == device
        found[device] = timeline(seen.start[here], seen.end[here], seen.kinds[here], window, seen.settings.micro_ns)
    return found


def _owners(trace: Trace, tree: Tree, leaf: Ints, settings: Settings) -> Ints:
    """The nearest operator at or above the launcher that has a model; the launcher itself where none has."""
    modelled = np.array([model_of(name, settings.models) is not None for name in trace.names] or [False])
    owner: Ints = leaf.copy()
    seeking = np.flatnonzero((owner >= 0) & ~modelled[trace.name[np.maximum(owner, 0)]])
    at = owner[seeking]
    while len(seeking):
        parent = tree.parent[at]
        above = np.where(parent >= 0, tree.operator[np.maximum(parent, 0)], -1)
        open_rows = above >= 0
        seeking, at = seeking[open_rows], above[open_rows]
        hit = modelled[trace.name[at]]
        owner[seeking[hit]] = at[hit]
        seeking, at = seeking[~hit], at[~hit]
    return owner


def pooled(parts: Sequence[Timeline]) -> Timeline | None:
    """The one timeline of a trace of one device; several devices have no sum."""
    return parts[0] if len(parts) == 1 else None
