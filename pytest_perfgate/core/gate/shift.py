"""What two arms found, as the figure of a verdict."""

from __future__ import annotations

from pytest_perfgate.core.gate.ruling import Ruling
from pytest_perfgate.core.render.edges import edges
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.core.render.quantity import signed
from pytest_perfgate.model.metric import Metric
from pytest_perfgate.model.paired import Paired
from pytest_perfgate.model.quantity import Dimension

BESIDE = "paired, against "
"""Before the base, in the source of a slowdown that two arms found."""


def shift_metric(paired: Paired) -> Metric:
    """The slowdown that the pairs found."""
    return Metric(
        name="slowdown",
        value=paired.shift,
        dimension=Dimension.FRACTION,
        interval=paired.interval,
        source=f"{BESIDE}{paired.base}",
    )


def resting_on_arms(ruling: Ruling, screened: Metric, paired: Paired, processes: int) -> Ruling:
    """A conviction shows the figure that convicted; what the screening saw stands below it."""
    between = edges(screened, change=True)
    seen = f"{signed(screened.value)} {between}".rstrip() + f" of {plural(processes, 'process', 'processes')}"
    return ruling._replace(
        metric=shift_metric(paired),
        rounds=paired.rounds,
        evidence=(*ruling.evidence, ("against the accepted time", seen)),
    )
