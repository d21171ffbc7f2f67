"""What JUnit carries of a case that two arms convicted: the figure of the verdict."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.plugin.reporting import properties
from tests.unit.core.gate.bench import CONTEXT, accepted, limit, measured
from tests.unit.core.gate.test_paired import NOT_SLOWER, SLOWER


@pytest.mark.parametrize(("paired", "slowdown"), [(None, 0.1), (SLOWER, SLOWER.shift), (NOT_SLOWER, 0.1)])
def test_the_slowdown_is_that_of_the_verdict(paired, slowdown: float) -> None:
    report = judge(measured(1.1e6), [limit("slowdown <= 3%")], baseline=accepted(1e6), context=CONTEXT, paired=paired)
    told = dict(properties([report]))
    assert float(str(told["perfgate.slowdown"])) == pytest.approx(slowdown)
    assert float(str(told["perfgate.time_ns"])) == pytest.approx(1.1e6)
