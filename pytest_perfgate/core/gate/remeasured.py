"""A change that measures a test differently: no line of before can be compared, and the change brings one that can."""

from __future__ import annotations

from typing import NamedTuple

from pytest_perfgate.core.gate.comparable import incomparable
from pytest_perfgate.core.gate.context import JudgeContext
from pytest_perfgate.core.gate.reasons import reasoned
from pytest_perfgate.core.gate.ruling import Ruling
from pytest_perfgate.core.render.quantity import quantity
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.limit import Outcome
from pytest_perfgate.model.measurement import Measurement
from pytest_perfgate.model.quantity import Dimension


class Standing(NamedTuple):
    """The lines that a measurement is held against."""

    baseline: Baseline | None
    edited: Baseline | None = None
    replaced: Baseline | None = None
    """The merge base's line, where it cannot be compared and the change accepts another with a reason."""


def standing(
    measurement: Measurement, then: Baseline | None, edited: Baseline | None, context: JudgeContext
) -> Standing:
    """The change's own line judges only where the merge base's cannot, and with a reason of its own."""
    if edited is None or not incomparable(then, measurement, context):
        return Standing(then, edited)
    if incomparable(edited, measurement, context) or not reasoned(edited, then):
        return Standing(then, edited)
    return Standing(edited, None, then)


def remeasured(ruling: Ruling, baseline: Baseline, measurement: Measurement, context: JudgeContext) -> Ruling:
    """Nobody knows whether it is slower than before: what keeps the new line is accepted, not passed."""
    assert context.replaced is not None
    was, now = (quantity(line.time, Dimension.TIME) for line in (context.replaced, baseline))
    apart = incomparable(context.replaced, measurement, context)
    said = f'{apart}; {was} was accepted before, this change accepts {now}: "{baseline.why}"'
    if ruling.outcome is Outcome.PASSED:
        return ruling._replace(outcome=Outcome.ACCEPTED, sentence=said)
    return ruling._replace(evidence=(*ruling.evidence, ("accepted", said)))
