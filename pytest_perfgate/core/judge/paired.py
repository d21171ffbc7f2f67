"""What two builds found, in the words and figures of a verdict."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_perfgate.core.judge.context import Ruling
from pytest_perfgate.core.render.words import about, edges, first_of, plural, quantity, signed
from pytest_perfgate.model.metric import Metric
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import Paired

BESIDE = "paired, against "
"""Before the base, in the source of a slowdown that two arms found."""

_SHOWN = 3


def slow_processes(paired: Paired) -> str:
    """``10 of 30 processes slow, 0 of the base's``, where that is what was found."""
    if paired.slow is None:
        return ""
    head, base = paired.slow
    return f"{head} of {plural(paired.rounds, 'process', 'processes')} slow and {base} of the base's:"


def indistinguishable(paired: Paired) -> str:
    """Files that both arms took from the head, though they are other ones since the base."""
    shown, base = first_of(paired.shared, _SHOWN), paired.base or "the base"
    return f"{shown} changed since {base}, and both arms read the version of the head"


def wanting(paired: Paired) -> str:
    """How much more time what is undecided asks for."""
    return f"; {about(paired.wants_s)} more would decide it" if paired.wants_s else ""


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
    facts = [
        f"{then} then, {now} now"
        for figures, dimension in ((paired.limited.clocks_hz, Dimension.CLOCK), (paired.limited.watts, Dimension.POWER))
        if figures is not None
        for then, now in [[quantity(figure, dimension) for figure in figures]]
    ]
    decides = "; turns of a second decide, since short ones share one clock" if paired.limited.decides else ""
    yield "power", f"at the device's limit: {', '.join(facts) or 'clocks are not known'}{decides}"


def resting_on_arms(ruling: Ruling, screened: Metric, paired: Paired, processes: int) -> Ruling:
    """A confirmation shows the figure that confirmed; what the screening saw stands below it."""
    between = edges(screened, change=True)
    text = f"{signed(screened.value)} {between}".rstrip() + f" of {plural(processes, 'process', 'processes')}"
    return ruling._replace(
        metric=shift_metric(paired),
        rounds=paired.rounds,
        evidence=(*ruling.evidence, ("against the accepted time", text)),
    )
