"""What two arms found, as the figure of a verdict."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_perfgate.core.gate.ruling import Ruling
from pytest_perfgate.core.render.edges import edges
from pytest_perfgate.core.render.plural import plural
from pytest_perfgate.core.render.quantity import quantity, signed
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


def power_facts(paired: Paired) -> Iterator[tuple[str, str]]:
    """What both sides drew and ran at, where the device was at its power limit."""
    if paired.limited is None:
        return
    told = [
        f"{then} then, {now} now"
        for figures, dimension in ((paired.limited.clocks_hz, Dimension.CLOCK), (paired.limited.watts, Dimension.POWER))
        if figures is not None
        for then, now in [[quantity(figure, dimension) for figure in figures]]
    ]
    decides = "; turns of a second decide, since short ones share one clock" if paired.limited.decides else ""
    yield "power", f"at the device's limit: {', '.join(told) or 'clocks are not known'}{decides}"


def resting_on_arms(ruling: Ruling, screened: Metric, paired: Paired, processes: int) -> Ruling:
    """A conviction shows the figure that convicted; what the screening saw stands below it."""
    between = edges(screened, change=True)
    seen = f"{signed(screened.value)} {between}".rstrip() + f" of {plural(processes, 'process', 'processes')}"
    return ruling._replace(
        metric=shift_metric(paired),
        rounds=paired.rounds,
        evidence=(*ruling.evidence, ("against the accepted time", seen)),
    )
