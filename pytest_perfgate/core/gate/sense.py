"""Limits that read well and mean nonsense: refused before they are held against anything."""

from __future__ import annotations

from pytest_perfgate.core.gate.fault import Span, Written
from pytest_perfgate.model.limit import Operator
from pytest_perfgate.model.metric import MetricKind
from pytest_perfgate.model.quantity import Dimension

CHANGES = frozenset({"slowdown"})
"""Metrics of change: a lower bound on them would demand a regression."""

OF_A_PEAK = frozenset({"mfu", "sol"})
"""Fractions of a physical peak: nothing reaches more than all of it."""

_EXACT = frozenset({Dimension.COUNT, Dimension.BYTES, Dimension.PLAIN})
_UPPER_BOUNDS = frozenset({Operator.AT_MOST, Operator.LESS})
_LOWER_BOUNDS = frozenset({Operator.AT_LEAST, Operator.MORE})


def check_sense(written: Written, sign: Span, kind: MetricKind, operator: Operator, bound: float) -> None:
    """Refuse what no measurement could keep, or what would demand a regression."""
    if operator is Operator.EQUAL and kind.dimension not in _EXACT:
        raise written.fault(
            "limit-direction", f"a measured {kind.dimension.value} never equals a number", sign, "write <= or >="
        )
    if kind.name in CHANGES and operator in _LOWER_BOUNDS:
        raise written.fault(
            "limit-direction",
            "this would demand a regression",
            sign,
            f"write {kind.name} <= ...; to demand an improvement, {kind.name} <= -5%",
        )
    if kind.name in OF_A_PEAK and operator in _LOWER_BOUNDS and bound > 1:
        raise written.fault("limit-direction", "nothing reaches more than the whole of a physical peak", sign)
    if fault := _out_of_reach(kind.name, operator, bound):
        raise written.fault("limit-number", f"{fault}, so the limit means nothing", sign)


def _out_of_reach(name: str, operator: Operator, bound: float) -> str:
    """Why no call keeps a limit; ``mfu >= 0%`` is kept by each that was measured, which is something to ask."""
    if name in CHANGES and bound <= -1:
        return "nothing is faster by all of its time"
    if name == "time" and operator in _UPPER_BOUNDS and bound <= 0:
        return "every call takes some time"
    return ""
