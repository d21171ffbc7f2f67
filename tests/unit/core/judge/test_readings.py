"""Figures beside time: what a test may hand in, and what its processes come to together."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_perfgate.core.judge.readings import figures_of, own_kinds, own_reading, tail_of
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Reading, Samples, Stop
from pytest_perfgate.model.metric import Absent, Metric
from pytest_perfgate.model.values import Better, Dimension


@pytest.mark.parametrize(
    ("values", "unit", "held", "dimension"),
    [
        (0.05, "", (0.05,), Dimension.PLAIN),
        ([1, 2], "ms", (1e6, 2e6), Dimension.TIME),
        (97, "%", (0.97,), Dimension.FRACTION),
        (250, "ktokens/s", (250e3,), Dimension.RATE),
        (3, "GB/s", (3e9,), Dimension.BANDWIDTH),
        (np.float32(0.5), "", (0.5,), Dimension.PLAIN),
        (np.array(7), "B", (7.0,), Dimension.BYTES),
        (np.array([1.0, 2.0]), "", (1.0, 2.0), Dimension.PLAIN),
        ((n for n in (1, 2)), "", (1.0, 2.0), Dimension.PLAIN),
    ],
)
def test_values_and_units(values, unit, held, dimension) -> None:
    reading = own_reading("loss", values, unit=unit)
    assert reading.values == pytest.approx(held)
    assert reading.dimension is dimension


@pytest.mark.parametrize(
    ("name", "values", "keywords"),
    [
        ("time", 1, {}),
        ("peak memory", 1, {}),
        (3, 1, {}),
        ("loss", [], {}),
        ("loss", "1", {}),
        ("loss", [1, None], {}),
        ("loss", math.nan, {}),
        ("loss", [1, math.inf], {}),
        ("loss", True, {}),
        ("loss", 1, {"unit": "fortnights"}),
        ("loss", 1, {"better": "smaller"}),
    ],
)
def test_what_no_limit_could_hold_is_refused(name, values, keywords) -> None:
    with pytest.raises(PerfgateError) as error:
        own_reading(name, values, **keywords)
    assert error.value.code.name == "call-wrong"
    assert error.value.mend


def read(*values: float, **fields) -> Reading:
    return Reading(**{"name": "loss", "values": values, "dimension": Dimension.PLAIN, "better": Better.LOWER} | fields)


def test_one_value_has_no_interval() -> None:
    (metric,) = figures_of([[read(3.0)]]).metrics
    assert (metric.value, metric.interval, metric.better) == (3.0, None, Better.LOWER)


@pytest.mark.parametrize(
    ("processes", "value", "low", "high"),
    [
        ([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]], 3.5, 1.0, 6.0),  # order statistics: six cover the middle at 95 %
        ([[1.0], [1.1], [0.9]], 1.0, 0.7767, 1.2789),  # Student's, of logarithms
        ([[-1.0], [0.0], [1.0]], 0.0, -2.484, 2.484),  # Student's, of the numbers themselves
        ([[4.0, 6.0, 5.0], [5.0], [5.0]], 5.0, 5.0, 5.0),
    ],
)
def test_processes_and_values_make_the_interval(processes, value, low, high) -> None:
    (metric,) = figures_of([[read(*values)] for values in processes]).metrics
    assert metric.value == pytest.approx(value)
    assert metric.interval is not None
    assert (metric.interval.low, metric.interval.high) == pytest.approx((low, high), abs=2e-3)


def test_values_of_one_name_are_joined() -> None:
    (metric,) = figures_of([[read(1.0), read(3.0), read(2.0)]]).metrics
    assert metric.value == 2.0


@pytest.mark.parametrize(
    "processes",
    [
        [[read(128.0, exact=True)], [read(130.0, exact=True)]],
        [[read(1.0)], []],
        [[read(1.0)], [read(1.0, dimension=Dimension.TIME)]],
        [[read(1.0), read(1.0, better=Better.HIGHER)]],
    ],
)
def test_processes_that_disagree_leave_no_figure(processes) -> None:
    figures = figures_of(processes)
    assert not figures.metrics
    assert [absent.code for absent in figures.absent] == ["rounds-differ"]


def test_an_exact_figure_is_its_value() -> None:
    (metric,) = figures_of([[read(128.0, exact=True)]] * 3).metrics
    assert (metric.value, metric.interval, metric.exact) == (128.0, None, True)


def test_kinds_of_own_figures_know_their_direction() -> None:
    kinds = own_kinds([read(1.0, better=Better.HIGHER), read(1.0, name="peak_memory", better=None)])
    assert {name: kind.better for name, kind in kinds.items()} == {"loss": Better.HIGHER}


def peak(by: str, value: float) -> Reading:
    return read(value, name="peak_memory", dimension=Dimension.BYTES, better=None, labels=(("by", by),))


@pytest.mark.parametrize(
    ("traced", "resident", "value", "by"),
    [
        (1e6, 1.5e6, 1e6, "traced"),  # within a megabyte: pages of the kernel
        (1e6, 9e6, 9e6, "resident"),  # torch on the CPU tells Python nothing
        (500e6, 520e6, 500e6, "traced"),
        (500e6, 600e6, 600e6, "resident"),
        (9e6, 0.0, 9e6, "traced"),
    ],
)
def test_the_peak_is_what_was_traced_unless_much_more_was_held(traced, resident, value, by) -> None:
    figures = figures_of([[peak("traced", traced), peak("resident", resident)]])
    (metric,) = figures.find("peak_memory")
    assert (metric.value, metric.note.partition(":")[0], metric.labels) == (value, by, ())
    (part,) = figures.find("peak_memory", (("by", "resident"),))
    assert part.value == resident


def test_where_the_kernel_does_not_tell_the_traced_peak_stands() -> None:
    (metric,) = figures_of([[peak("traced", 5.0)]]).find("peak_memory")
    assert metric.value == 5.0


def process(durations, **fields) -> Samples:
    return Samples(**{"durations": tuple(durations), "timer": "host", "stop": Stop.COUNT} | fields)


def test_a_quantile_is_of_the_calls_of_all_processes() -> None:
    metric = tail_of([process(range(1, 501)), process(range(501, 1001))], (("q", "99%"),))
    assert isinstance(metric, Metric)
    assert metric.value == 990.0
    assert metric.interval is not None
    assert 980 < metric.interval.low < 990 < metric.interval.high < 1000


@pytest.mark.parametrize(
    ("processes", "why"),
    [
        ([process([1.0] * 298)], "it takes 299"),
        ([process([1.0] * 99, stop=Stop.RECORDED)] * 3, "it takes 299"),
        ([process([1.0] * 5000, batch=16)], "mean of 16"),
    ],
)
def test_samples_that_cannot_tell_a_tail_are_refused(processes, why) -> None:
    absent = tail_of(processes, (("q", "99%"),))
    assert isinstance(absent, Absent)
    assert why in absent.why
    assert absent.mend


def test_the_least_is_that_of_the_middle_process() -> None:
    metric = tail_of([process([3.0, 5.0]), process([2.0, 9.0]), process([4.0, 4.0])], (("stat", "min"),))
    assert isinstance(metric, Metric)
    assert (metric.value, metric.low, metric.high) == (3.0, 2.0, 4.0)
