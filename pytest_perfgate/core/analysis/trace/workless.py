"""Figures of operators where none has any work: each is absent, with the reason."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_perfgate.core.analysis.trace.metrics import no_work
from pytest_perfgate.core.analysis.trace.survey import Survey
from pytest_perfgate.model.metric import Absent, Labels, MetricSet

_NAMES = ("op_time", "op_count", "op_share", "op_mean", "op_variants", "op_running", "modelled", "tflops", "bandwidth",
          "intensity", "mfu", "sol", "mfu_datasheet", "sol_datasheet")  # fmt: skip


def without_operators(seen: Survey, scopes: Sequence[Labels]) -> MetricSet:
    """What operators would have told."""
    why, mend = no_work(seen)
    return MetricSet(absent=tuple(Absent(name=name, labels=s, why=why, mend=mend) for name in _NAMES for s in scopes))
