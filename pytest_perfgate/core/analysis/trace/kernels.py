"""Kernels of a trace: by launcher, name and stream."""

from __future__ import annotations

import numpy as np

from pytest_perfgate.core.analysis.trace.classes import WORDS, Kind
from pytest_perfgate.core.analysis.trace.grouped import Spread, numbered, spread, statistics
from pytest_perfgate.core.analysis.trace.operators import OUTSIDE
from pytest_perfgate.core.analysis.trace.survey import Survey
from pytest_perfgate.model.trace import Queue
from pytest_perfgate.model.values import value


@value
class KernelRow(Spread):
    """One kernel of one launcher on one stream."""

    name: str
    launcher: str
    stream: str
    device: int
    kind: str
    share: float


def kernels(seen: Survey) -> tuple[KernelRow, ...]:
    """Kernels, copies and fills, the longest first."""
    if not len(seen.rows):
        return ()
    trace = seen.trace
    leaf = seen.link.leaf
    launcher = np.where(leaf >= 0, trace.name[np.maximum(leaf, 0)], -1).astype(np.int64)
    place = np.full(len(seen.rows), -1) if seen.on_host else trace.place[seen.rows].astype(np.int64)
    group, groups = numbered(trace.name[seen.rows].astype(np.int64), launcher, place)
    stats = statistics((seen.end - seen.start).astype(np.float64), group, groups)
    everything = float(stats.total.sum()) or 1.0
    rows = []
    for g in np.argsort(-stats.total, kind="stable").tolist():
        at = int(stats.first[g])
        queue = Queue(device=-1, stream="host") if seen.on_host else trace.queues[int(place[at])]
        rows.append(
            KernelRow(
                name=trace.names[int(trace.name[seen.rows[at]])],
                launcher=trace.names[int(launcher[at])] if launcher[at] >= 0 else OUTSIDE,
                stream=str(queue.stream),
                device=queue.device,
                kind=WORDS[Kind(int(seen.kinds[at]))],
                **spread(stats, g),
                share=float(stats.total[g]) / everything,
            )
        )
    return tuple(rows)
