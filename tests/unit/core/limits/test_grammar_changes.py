"""Tests of core/limits/grammar: change(METRIC)."""

from __future__ import annotations

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Compare
from pytest_perfgate.model.values import Dimension
from tests.unit.core.judge.bench import limit


@pytest.mark.parametrize(
    ("text", "metric", "labels", "bound", "dimension", "compare"),
    [
        ("change(registers) <= 0", "registers", (), 0.0, Dimension.COUNT, Compare.ABSOLUTE),
        ("change(registers) <= 2", "registers", (), 2.0, Dimension.COUNT, Compare.ABSOLUTE),
        ("change(registers) <= 5%", "registers", (), 0.05, Dimension.FRACTION, Compare.RELATIVE),
        ("change(registers) <= 0.05", "registers", (), 0.05, Dimension.FRACTION, Compare.RELATIVE),
        ("change(smem) <= 4 KiB", "smem", (), 4096.0, Dimension.BYTES, Compare.ABSOLUTE),
        ("change(step_time) <= -3%", "step_time", (), -0.03, Dimension.FRACTION, Compare.RELATIVE),
        ("change(bandwidth) >= -5%", "bandwidth", (), -0.05, Dimension.FRACTION, Compare.RELATIVE),
        (" change ( overlap(stage=x) ) >= -2pp", "overlap", (("stage", "x"),), -0.02, Dimension.FRACTION, Compare.ABSOLUTE),
        ("change(step_time) <= 0", "step_time", (), 0.0, Dimension.TIME, Compare.ABSOLUTE),
        ("change(step_time) <= 0.5us", "step_time", (), 500.0, Dimension.TIME, Compare.ABSOLUTE),
        ("change(metric(loss)) <= 2pp", "loss", (), 0.02, Dimension.FRACTION, Compare.ABSOLUTE),
        ("change(time(q=99%)) <= 5%", "time", (("q", "99%"),), 0.05, Dimension.FRACTION, Compare.RELATIVE),
        ("change(registers)<= 0", "registers", (), 0.0, Dimension.COUNT, Compare.ABSOLUTE),
        ("change(count(HMMA)) == 0", "count", (("opcode", "HMMA"),), 0.0, Dimension.COUNT, Compare.ABSOLUTE),
        ('change(kernel_time(kernel="a(b)")) <= 2%', "kernel_time", (("kernel", "a(b)"),), 0.02, Dimension.FRACTION,
         Compare.RELATIVE),
    ],
)  # fmt: skip
def test_a_change_of_a_metric(text, metric, labels, bound, dimension, compare) -> None:
    parsed = limit(text)
    assert (parsed.metric, parsed.labels, parsed.dimension, parsed.compare) == (metric, labels, dimension, compare)
    assert parsed.bound == pytest.approx(bound)
    assert parsed.title == f"change({metric})"
    assert parsed.key != limit(f"mfu >= {'55%'}").key


@pytest.mark.parametrize(
    ("text", "code", "fix"),
    [
        ("change(overlap) >= -2%", "limit-unit", "change(overlap) >= -2pp"),
        ("change(overlap) <= 2%", "limit-unit", "change(overlap) >= -2pp"),
        ("change(idle) >= 2%", "limit-unit", "change(idle) <= 2pp"),
        ("change(overlap) >= -0.5", "limit-unit", "pp"),
        ("change(smem) <= 4", "limit-unit", "change(smem) <= 4%, or change(smem) <= 4B"),
        ("change(smem) <= 1", "limit-unit", "change(smem) <= 1%"),
        ("change(metric(loss)) <= 2 qq", "limit-unit", "change(loss) <= 2%"),
        ("change(step_time) <= 3pp", "limit-unit", "change(step_time) <= 3%"),
        ("change(registers) >= 0", "limit-direction", "change(registers) <= 0"),
        ("change(overlap) <= 1pp", "limit-direction", "change(overlap) >= -1pp"),
        ("change(bandwidth) <= 5%", "limit-direction", "change(bandwidth) >= -5%; to demand"),
        ("change(step_time) >= -5%", "limit-direction", "change(step_time) <= 5%; to demand"),
        ("change(geomean(mfu)) <= 1pp", "limit-unknown-metric", "each case of the test keeps by itself"),
        ("change(overlap) == 0", "limit-direction", "write <= or >="),
        ("change(time) <= 3%", "limit-unknown-metric", "slowdown <= 3%"),
        ("change(time(case=bwd)) <= 3%", "limit-unknown-metric", "slowdown <= 3%"),
        ("change(slowdown) <= 3%", "limit-unknown-metric", "slowdown <= 3%"),
        ("change(geomean(slowdown)) <= 1pp", "limit-unknown-metric", "geomean(slowdown) <= 1%"),
        ("change(registres) <= 0", "limit-unknown-metric", "registers"),
        ("change(registers <= 0", "limit-syntax", "change(METRIC"),
        ("change() <= 0", "limit-syntax", "METRIC"),
        ("change(registers) <=", "limit-number", "change(registers) <= 5%"),
        ("change(registers) <= x", "limit-number", "change(registers) <= 5%"),
    ],
)
def test_a_change_that_is_refused_says_what_to_write(text: str, code: str, fix: str) -> None:
    with pytest.raises(PerfgateError) as error:
        limit(text)
    assert error.value.code.name == code
    assert fix in error.value.fix


def test_of_the_units_of_a_change_the_usual_one_is_proposed_beside_percent() -> None:
    with pytest.raises(PerfgateError) as error:
        limit("change(smem) <= 4")
    assert error.value.fix.count("change(smem)") == 2
