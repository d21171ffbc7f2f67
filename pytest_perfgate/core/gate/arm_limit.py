"""Which slowdown two arms are asked about: the tightest limit that a call answers to on its device."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_perfgate.core.gate.conviction import contested
from pytest_perfgate.core.gate.merge import applies_on, limits_for, without_case
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.limit import Limit
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.verdict import CaseReport

UNASKED = 0.03
"""For a call that no limit on the slowdown is meant for."""


def arm_limit(limits: Iterable[Limit], key: CaseKey, device: Device) -> float:
    """τ of a call, from all limits of its test."""
    meant = (limit for limit in limits_for(limits, key) if applies_on(limit, device))
    return min((one.bound for one in meant if _allows(one)), default=UNASKED)


def contested_limit(report: CaseReport) -> float:
    """τ of a case that two builds decide: of the limits that its open verdicts are about."""
    return min((v.limit.bound for v in contested(report, ci=True) if _allows(v.limit)), default=UNASKED)


def _allows(limit: Limit) -> bool:
    """Whether it allows a slowdown of the call itself; one that demands an improvement is asked otherwise."""
    return limit.metric == "slowdown" and limit.bound >= 0 and not without_case(limit)
