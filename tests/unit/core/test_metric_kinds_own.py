"""What a test may hand in as a figure of its own."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.limits.merge import own_name
from pytest_perfgate.core.metric_kinds import named_among, own_reading, recorded
from pytest_perfgate.model.errors import PerfgateError, codes
from pytest_perfgate.model.measurement import Reading
from pytest_perfgate.model.values import Better, Dimension
from tests.unit.core.judge.bench import KINDS


@pytest.mark.parametrize(
    ("values", "unit", "expected", "dimension"),
    [
        (0.05, "", (0.05,), Dimension.PLAIN),
        ([1, 2], "ms", (1e6, 2e6), Dimension.TIME),
        (97, "%", (0.97,), Dimension.FRACTION),
        (250, "Mtokens/s", (250e6,), Dimension.RATE),
        (250, "kernels/s", (250.0,), Dimension.RATE),
        (3, "GB/s", (3e9,), Dimension.BANDWIDTH),
        (np.float32(0.5), "", (0.5,), Dimension.PLAIN),
        (np.array(7), "B", (7.0,), Dimension.BYTES),
        (np.array([1.0, 2.0]), "", (1.0, 2.0), Dimension.PLAIN),
        ((n for n in (1, 2)), "", (1.0, 2.0), Dimension.PLAIN),
    ],
)
def test_values_and_units(values, unit, expected, dimension) -> None:
    reading = own_reading("loss", values, unit=unit)
    assert reading.values == pytest.approx(expected)
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
    assert error.value.fix


def read(*values: float, **fields) -> Reading:
    return Reading(**{"name": "loss", "values": values, "dimension": Dimension.PLAIN, "better": Better.LOWER} | fields)


@pytest.mark.parametrize(
    ("unit", "name", "figure", "value"),
    [
        ("GB/s", "", "bandwidth", 8.12e11),
        ("TFLOPS", "", "tflops", 8.12e14),
        ("Mtokens/s", "ours", "throughput", 812e6),
        ("count", "launches", "launches", 812.0),
        ("MB", "traffic", "traffic", 812e6),
    ],
)
def test_numbers_from_elsewhere_are_the_figure_of_their_unit(unit, name, figure, value) -> None:
    reading = recorded([812.0], unit, name)
    assert (reading.name, reading.values) == (figure, pytest.approx((value,)))


@pytest.mark.parametrize(("unit", "name"), [("count", ""), ("MB", ""), ("MB", "time"), ("fortnight", "x"), (3, "x")])
def test_numbers_of_which_nobody_knows_what_they_are_are_refused(unit, name) -> None:
    with pytest.raises(PerfgateError) as error:
        recorded([1.0], unit, name)
    assert error.value.code.name == "call-wrong"


@pytest.mark.parametrize(("unit", "note"), [("Mtokens/s", "in tokens/s"), ("k/s", ""), ("GB/s", ""), ("", "")])
def test_a_rate_of_items_keeps_their_name(unit: str, note: str) -> None:
    assert own_reading("speed", 1, unit=unit).note == note
    assert unit != "Mtokens/s" or recorded([1.0], unit, "").note == note


def test_of_what_is_offered_the_numbers_that_limits_name_are_taken() -> None:
    texts = ("tokens <= 3", "host <= 1", "odd <= 1", "on <= 1", "slowdown <= 3%", "bandwidth >= 3 GB/s")
    limits = [parse_limit(text, kinds=KINDS, own=str) for text in texts]
    offered = {
        "tokens": np.float64(4),
        "host": "a name",
        "odd": math.nan,
        "on": True,
        "seed": 7,
        "slowdown": 2,
        "bandwidth": 3.5,
    }
    assert [(one.name, one.values) for one in named_among(offered, limits)] == [("tokens", (4.0,))]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("los <= 1", "did you mean 'loss'?"),
        ("change(los) <= 1%", "did you mean 'loss'?"),
        ("mfuu >= 5%", "'mfu'"),
        ("answers >= 5", 'call perfgate.metric("answers", value)'),
    ],
)
def test_a_misspelt_figure_of_the_tests_own_is_proposed_before_others(text: str, words: str) -> None:
    with pytest.raises(PerfgateError) as error:
        parse_limit(text, kinds=KINDS, own=partial(own_name, names={"loss", "tokens"}))
    assert error.value.code.name == "limit-unknown-metric"
    assert words in error.value.fix
    assert "perfgate.metric(" in codes()["limit-unknown-metric"].fix
    assert parse_limit("loss <= 1", kinds=KINDS, own=partial(own_name, names={"loss"})).metric == "loss"


@pytest.mark.parametrize(
    ("text", "bound", "dimension"),
    [
        ("tokens >= 2 Mtokens/s", 2e6, Dimension.RATE),
        ("tokens >= 2 tokens/s", 2.0, Dimension.RATE),
        ("tokens >= 2 GB/s", 2e9, Dimension.BANDWIDTH),
        ("geomean(tokens) >= 2 kernels/s", 2.0, Dimension.RATE),
        ("worst(tokens) >= 2", 2.0, Dimension.PLAIN),
    ],
)
def test_a_limit_takes_the_units_that_a_figure_takes_and_means_of_it(text: str, bound: float, dimension) -> None:
    read = parse_limit(text, kinds=KINDS, own=partial(own_name, names={"tokens"}))
    assert (read.bound, read.dimension) == (bound, dimension)


def test_a_mean_of_a_misspelt_figure_is_refused_with_the_one_that_is_meant() -> None:
    with pytest.raises(PerfgateError) as error:
        parse_limit("geomean(los) <= 1", kinds=KINDS, own=partial(own_name, names={"loss"}))
    assert (error.value.code.name, "'loss'" in error.value.fix) == ("limit-scope", True)
