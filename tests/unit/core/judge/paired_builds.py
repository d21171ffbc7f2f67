"""What two builds measured in turns came to."""

from __future__ import annotations

from pytest_perfgate.core.judge.context import JudgeContext
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.model.metric import Interval
from pytest_perfgate.model.plan import Decision
from pytest_perfgate.model.verdict import Paired
from tests.unit.core.judge.bench import CONTEXT, KINDS, SHAPE, accepted, limit, measured


def decided_verdict(time: float, text: str = "slowdown <= 3%", baseline=None, context=CONTEXT, paired=None, **fields):
    line = baseline or accepted(1e6)
    return judge(measured(time, **fields), [limit(text)], baseline=line, context=context, paired=paired).verdicts[0]


def decided(decision: Decision, shift: float, rounds: int = 10, **fields) -> Paired:
    interval = Interval(low=shift - 0.01, high=shift + 0.01)
    values = {"base": "a1b2c3d", "visible": 0.02, "revision": True} | fields
    return Paired(decision=decision, differences=(shift,) * rounds, shift=shift, interval=interval, **values)


def judged_arms(text: str, time: float = 2e6, *, paired: Paired | None = None, context=CONTEXT, **fields):
    measurement = measured(time, **fields)
    return judge(measurement, [limit(text)], baseline=accepted(1e6), context=context, paired=paired).verdicts[0]


def arms_between(decision: Decision, shift: float, low: float, high: float, *, revision: bool = True) -> Paired:
    return Paired(
        decision=decision, differences=(shift,) * 10, shift=shift, interval=Interval(low=low, high=high),
        base="a1b2c3d", revision=revision,
    )  # fmt: skip


PAIRED_CONTEXT = JudgeContext(kinds=KINDS, paired_available=True)


def paired(decision: Decision, shift: float, low: float, high: float, **fields) -> Paired:
    return Paired(
        **{
            "decision": decision,
            "differences": (shift,) * 10,
            "shift": shift,
            "interval": Interval(low=low, high=high),
            "base": "a1b2c3d",
            "visible": 0.02,
        }
        | fields
    )


def paired_verdict(
    time: float,
    evidence: Paired | None,
    text: str = "slowdown <= 3%",
    context=PAIRED_CONTEXT,
    baseline="accepted",
    shape=SHAPE,
):
    line = accepted(1e6) if baseline == "accepted" else baseline
    report = judge(measured(time, shape=shape), [limit(text)], baseline=line, context=context, paired=evidence)
    return report.verdicts[0]


SLOWER = paired(Decision.SLOWER, 0.08, 0.07, 0.09)
NOT_SLOWER = paired(Decision.NOT_SLOWER, 0.001, -0.01, 0.01, moved=(("driver", "570.1", "580.2"),))
OPEN = paired(Decision.UNDECIDED, 0.04, -0.01, 0.09)


def arms(shift: float, low: float, high: float, rounds: int, **fields) -> Paired:
    interval = Interval(low=low, high=high)
    return Paired(**{"decision": Decision.UNDECIDED, "differences": (shift,) * rounds, "shift": shift,
                     "interval": interval, "base": "a1b2c3d"} | fields)  # fmt: skip
