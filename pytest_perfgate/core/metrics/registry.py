"""All kinds of metrics by name and alias."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_perfgate.core.metrics import kernel, nsys, overlap, timing, trace
from pytest_perfgate.model.metric import MetricKind

BUILT_IN: tuple[MetricKind, ...] = (
    *timing.KINDS,
    *overlap.KINDS,
    *trace.KINDS,
    *nsys.KINDS,
    *kernel.KINDS,
)


def by_name(extra: Iterable[MetricKind] = ()) -> Mapping[str, MetricKind]:
    """Kinds under every name they answer to; a plugin's kind does not replace a built-in."""
    table: dict[str, MetricKind] = {}
    for kind in (*BUILT_IN, *extra):
        for name in (kind.name, *kind.aliases):
            table.setdefault(name, kind)
    return table
