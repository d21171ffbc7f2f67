"""Figures beside time: what a test may hand in, and what its processes come to together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.readings import figures_of, tail_of, tally, word_of
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.measurement import Reading, Samples, Stop
from pytest_perfgate.model.metric import Absent, Metric
from pytest_perfgate.model.plan import CaseKey, Outcome
from pytest_perfgate.model.values import Better, Dimension
from tests.reports import case


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
        ([[1.0, 3.0]], 2.0, -10.706, 14.706),  # Student's of two values: 12.706 standard errors
        ([[0.0], [1.0], [5.0]], 1.0, -4.5724, 8.5724),
        ([[-4.0], [9.0], [9.0], [9.0]], 9.0, -4.5929, 16.0929),
        ([[float(n) for n in range(1, 10)]], 5.0, 2.0, 8.0),
    ],
)
def test_processes_and_values_make_the_interval(processes, value, low, high) -> None:
    (metric,) = figures_of([[read(*values)] for values in processes]).metrics
    assert metric.value == pytest.approx(value)
    assert metric.interval is not None
    assert (metric.interval.low, metric.interval.high) == pytest.approx((low, high), abs=2e-3)


@pytest.mark.parametrize(("count", "confidence"), [(3, 0.95), (6, 1 - 2 / 64), (9, 1 - 20 / 512)])
def test_an_interval_of_values_says_how_sure_it_is(count: int, confidence: float) -> None:
    (metric,) = figures_of([[read(*map(float, range(count)))]]).metrics
    assert metric.interval is not None
    assert metric.interval.confidence == pytest.approx(confidence)


def test_values_of_two_names_or_scopes_stay_apart() -> None:
    figures = figures_of([[read(1.0), read(9.0, name="error"), read(5.0, labels=(("stage", "a"),))]])
    assert [(one.name, one.labels, one.value) for one in figures.metrics] == [
        ("loss", (), 1.0), ("error", (), 9.0), ("loss", (("stage", "a"),), 5.0),
    ]  # fmt: skip


def test_an_exact_figure_that_differs_is_named_with_both_ends() -> None:
    (absent,) = figures_of([[read(130.0, 129.0, exact=True)], [read(128.0, 129.0, exact=True)]]).absent
    assert absent.why == "it is exact, and was 128 one time and 130 another"


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


def test_the_middle_of_the_calls_is_a_quantile_too() -> None:
    metric = tail_of([process(range(1, 102))], (("q", "50%"),))
    assert isinstance(metric, Metric)
    assert (metric.value, metric.note, metric.interval.confidence) == (51.0, "of 101 calls", pytest.approx(0.9))


def test_as_many_calls_as_a_quantile_takes_are_enough() -> None:
    metric = tail_of([process([1.0] * 100), process([1.0] * 199, waits=(2.0,) * 199)], (("q", "99%"),))
    assert isinstance(metric, Metric)
    assert (metric.low, metric.value, metric.note) == (1.0, 1.0, "of 299 calls, less waits for a processor")
    waiting = tail_of([process([1.0] * 299, waits=(2.0,) * 299)], (("q", "99%"),))
    assert isinstance(waiting, Metric)
    assert waiting.value == 0.0, "a wait that is longer than its call"


@pytest.mark.parametrize(
    ("stop", "fix"),
    [(Stop.RECORDED, "give record() that many"), (Stop.COUNT, "a call this long takes --perfgate=full")],
)
def test_what_gives_more_calls_is_named(stop: Stop, fix: str) -> None:
    absent = tail_of([process([1.0] * 9, stop=stop)], (("q", "99%"),))
    assert isinstance(absent, Absent)
    assert absent.fix.startswith(fix)


@pytest.mark.parametrize("batches", [(2,), (1, 16), (16, 1)])
def test_a_batch_in_any_process_hides_a_slow_call(batches: tuple[int, ...]) -> None:
    absent = tail_of([process([1.0] * 500, batch=batch) for batch in batches], (("q", "99%"),))
    assert isinstance(absent, Absent)
    assert absent.why.startswith(f"each sample is the mean of {max(batches)} calls")


def test_the_least_of_one_process_has_no_interval() -> None:
    metric = tail_of([process([3.0, 5.0])], (("stat", "min"),))
    assert isinstance(metric, Metric)
    assert (metric.value, metric.interval) == (3.0, None)
    two = tail_of([process([3.0, 5.0]), process([2.0])], (("stat", "min"),))
    assert isinstance(two, Metric)
    assert (two.low, two.value, two.high) == (2.0, 2.5, 3.0)


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
    assert absent.fix


def test_the_least_is_that_of_the_middle_process() -> None:
    metric = tail_of([process([3.0, 5.0]), process([2.0, 9.0]), process([4.0, 4.0])], (("stat", "min"),))
    assert isinstance(metric, Metric)
    assert (metric.value, metric.low, metric.high) == (3.0, 2.0, 4.0)
    assert metric.interval is not None
    assert metric.interval.confidence == 0.0


def test_waits_for_a_processor_are_no_tail_of_a_call() -> None:
    slow, crowded = (1e6,) * 290 + (3e6,) * 10, (1e6,) * 280 + (9e6,) * 20
    assert tail_of([process(slow, waits=(0.0,) * 300)], (("q", "99%"),)).value == 3e6
    assert tail_of([process(crowded, waits=(0.0,) * 280 + (8e6,) * 20)], (("q", "99%"),)).value == 1e6
    assert tail_of([process(crowded)], (("q", "99%"),)).value == 9e6


@pytest.mark.parametrize(
    ("call", "text", "outcome", "word"),
    [
        ("eager", "speedup(over=eager) >= 1.2x", Outcome.NOT_APPLICABLE, "reference"),
        ("eager", "speedup(over=eager) >= 1.2x", Outcome.PASSED, "passed"),
        ("ours", "speedup(over=eager) >= 1.2x", Outcome.NOT_APPLICABLE, "not applicable"),
        ("eager", "mfu >= 40%", Outcome.NOT_APPLICABLE, "not applicable"),
    ],
)
def test_a_call_that_others_are_held_against_is_called_their_reference(
    call: str, text: str, outcome: Outcome, word: str
) -> None:
    report = case("test_a", 1e6, outcome=outcome)
    verdict = replace(report.verdicts[0], limit=parse_limit(text, kinds=by_name()))
    report = replace(report, key=CaseKey(nodeid="t.py::test_a", name=call), verdicts=(verdict,))
    assert word_of(report, verdict) == word
    reference = case("test_b", 1e6)
    counts = {"passed": "2 passed", "reference": "1 passed, 1 reference"}.get(word, f"1 {word}, 1 passed")
    assert tally([report, reference]) == counts


def test_a_measured_call_without_a_limit_is_not_called_unmeasured() -> None:
    free = replace(case("test_eager", 1e6), verdicts=())
    assert tally([case("test_ours", 1e6), free]) == "1 passed, 1 without a limit of its own"
    assert free.worst is Outcome.NOT_APPLICABLE
    assert tally([replace(free, measurement=None)]) == "1 not measured"
