"""What a person states beside a file, held against the roof."""

from __future__ import annotations

import re

import pytest

from pytest_perfgate.adapters.devices.visible import DeviceCatalogue, lookup_spec
from pytest_perfgate.core.analysis.classify import Bottleneck, classify
from pytest_perfgate.core.analysis.kernels.bottleneck import (
    bottleneck_report,
    parse_stated,
    run_figures,
    signals,
    stated_metrics,
    timing,
)
from pytest_perfgate.core.analysis.kernels.diagnosis import diagnose
from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.render.html import render_markdown
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Analysis
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.profiles import KernelFacts
from tests.launches import launch

KINDS = by_name([])

GIVEN = {"flops": "137.4GFLOP", "bytes": "201MB", "dtype": "float32", "problem": "GEMM", "time": "11.2ms"}
CARD = lookup_spec("RTX 3070 Ti")


def test_a_statement_places_a_kernel_under_its_roof() -> None:
    stated = parse_stated(GIVEN, CARD)
    assert (stated.time_ns, stated.work.flops, stated.work.bytes, stated.work.dtype) == (11.2e6, 137.4e9, 201e6, "fp32")
    readings = signals(stated, stated.time_ns)
    assert readings.compute == pytest.approx(0.565, abs=0.01)
    assert readings.ridge == pytest.approx(35.7, abs=0.5)
    timed = timing(stated, stated.time_ns, "device events")
    assert timed.placement.flops_rate == pytest.approx(12.27e12, rel=1e-3)
    assert timed.basis == "datasheet peak of GeForce RTX 3070 Ti"


def test_what_was_not_stated_is_missing_and_says_how() -> None:
    bare = parse_stated({}, None)
    assert bare.work is None
    assert signals(bare, 5.0) is None
    assert list(run_figures(bare, 5.0)) == []
    assert list(run_figures(parse_stated(GIVEN, CARD), None)) == []
    page = render_markdown(bottleneck_report(launch(), timing(bare, None, "device events")))
    assert "--set time=11.2ms" in page
    assert "problem, kernel time, effective rate, effective bandwidth" in page


def test_without_a_roof_there_are_rates_and_no_fractions() -> None:
    stated = parse_stated({**GIVEN, "items": "64 images"}, None)
    figures = dict(run_figures(stated, 11.2e6))
    assert set(figures) == {"Throughput", "Achieved rate", "Bandwidth of unique bytes"}
    assert figures["Throughput"].endswith("images/s")
    assert signals(stated, 11.2e6) is None


def test_everything_stated_leaves_nothing_to_ask_for() -> None:
    stated = parse_stated(GIVEN, CARD)
    page = render_text(bottleneck_report(launch(), timing(stated, stated.time_ns, "device events")))
    assert "Not collected: problem" not in page
    assert "Problem: GEMM" in page
    assert "Attained fraction" in page


def test_a_hint_names_only_what_was_not_stated() -> None:
    stated = parse_stated({"flops": "100GFLOP", "dtype": "int8"}, None)
    page = render_text(bottleneck_report(diagnose(launch().facts, "k", None), timing(stated, None, "--set time")), 400)
    assert "(state them: --set problem='GEMM, M=N=K=4096' --set time=11.2ms --set bytes=201MB)" in page
    assert "--set flops" not in page
    other = parse_stated({"dtype": "int8", "peak": "fp16=100TFLOPS"}, None)
    assert "device" not in other.names, "the roof has no peak of this type"


def test_a_share_of_a_peak_without_a_device_asks_for_one() -> None:
    absent = {a.name: a.fix for a in stated_metrics(parse_stated({"bytes": "1MB"}, None), 1e6, "--set time").absent}
    assert absent["tflops"] == "add to perfgate check: --set flops=137.4GFLOP"
    assert absent["mfu_datasheet"].endswith("--set dtype=fp16 --device 'H100 SXM'")
    with_card = stated_metrics(parse_stated({"bytes": "1MB"}, CARD), 1e6, "--set time").absent
    assert not any("--device" in one.fix for one in with_card)


def test_a_type_that_is_not_known_is_answered_with_those_that_are() -> None:
    with pytest.raises(PerfgateError) as caught:
        parse_stated({"dtype": "int9"}, None)
    assert caught.value.code.name == "kernel-option"
    assert "fp16" in caught.value.fix
    assert "int8" in caught.value.fix


def test_items_alone_are_a_throughput() -> None:
    figures = dict(run_figures(parse_stated({"items": "10"}, CARD), 1e9))
    assert figures == {"Throughput": "10 items/s"}


def test_a_type_without_work_still_sets_the_balance_point() -> None:
    timed = timing(parse_stated({"dtype": "fp32"}, CARD), 5.0, "the profiler")
    assert (timed.dtype, timed.ridge) == ("fp32", pytest.approx(35.7, abs=0.5))


def test_more_than_the_hardware_can_do_is_invalid_and_says_what_may_be_wrong() -> None:
    stated = parse_stated({"flops": "200TFLOP", "bytes": "1GB", "dtype": "bf16", "time": "1ms"}, CARD)
    readings = signals(stated, stated.time_ns)
    classification = classify(readings)
    assert classification.bottleneck is Bottleneck.INVALID
    assert "is more than the hardware can do: the peak of its type or the work is wrong" in classification.sentence
    figures = dict(run_figures(stated, stated.time_ns))
    assert figures["Achieved rate, MFU and % of SOL"].startswith("INVALID: compute ")
    assert "MFU" not in figures
    placed = stated.placed(stated.time_ns)
    assert placed.impossible == classification.evidence[0]


def test_invalid_figures_are_explained_with_both_rates_and_bring_no_advice() -> None:
    stated = parse_stated({"flops": "550GFLOP", "bytes": "300MB", "dtype": "int8", "time": "1ms"}, CARD)
    timed = timing(stated, stated.time_ns, "device events")
    impossible = diagnose(launch().facts, "k", None, signals(stated, stated.time_ns))
    page = render_text(bottleneck_report(impossible, timed), 400)
    assert page.count("316.1 % of its roof (550 TOPS of 174 TOPS) is more than the hardware can do") == 2
    assert "Attained fraction: INVALID, as above (datasheet peak of GeForce RTX 3070 Ti)" in page
    assert "The class is invalid, so advice that depends on it is not given." in page
    assert "Micro-benchmark" not in page


def test_what_given_peaks_leave_out_is_that_of_the_device() -> None:
    peak = parse_stated({**GIVEN, "peak": "fp32=24.54TFLOPS"}, CARD).roof
    assert (peak.rate("fp32"), peak.rate("int8"), peak.bandwidth) == (24.54e12, None, 608e9)
    assert peak.note == "peaks as given, bandwidth: datasheet peak of GeForce RTX 3070 Ti"
    speed = parse_stated({**GIVEN, "bandwidth": "500GB/s"}, CARD).roof
    assert (speed.rate("fp32"), speed.bandwidth) == (21.7e12, 500e9)
    assert speed.note == "peaks as given, compute: datasheet peak of GeForce RTX 3070 Ti"
    alone = parse_stated({**GIVEN, "peak": "fp32=24.54TFLOPS"}, None).roof
    assert (alone.bandwidth, alone.note) == (None, "peaks as given")
    both = parse_stated({**GIVEN, "peak": "fp32=24.54TFLOPS", "bandwidth": "500GB/s"}, CARD).roof
    assert (both.bandwidth, both.note) == (500e9, "peaks as given")


def test_a_card_has_rates_by_type_under_both_of_its_names() -> None:
    assert CARD is not None
    assert lookup_spec("GA104").name == CARD.name
    for dtype, rate in (("fp16", 43.5e12), ("bf16", 43.5e12), ("tf32", 21.7e12), ("int8", 174e12)):
        stated = parse_stated({"flops": "1GFLOP", "bytes": "1MB", "dtype": dtype, "time": "1ms"}, CARD)
        assert stated.roof.rate(dtype) == rate


@pytest.mark.parametrize(
    ("options", "figures"),
    [
        ({}, {"tflops": 12.27e12, "bandwidth": 17.95e9, "mfu_datasheet": 0.565, "sol_datasheet": 0.565}),
        ({"peak": "fp32=24.54TFLOPS"}, {"mfu_datasheet": 0.5, "mfu": 0.5, "sol": 0.5}),
        ({"bandwidth": "19.95GB/s"}, {"mfu_datasheet": 0.565, "sol_datasheet": 0.9, "sol": 0.9}),
        ({"items": "112 images"}, {"throughput": 10_000.0}),
    ],
)
def test_stated_work_is_metrics_that_limits_name(options, figures) -> None:
    made = stated_metrics(parse_stated({**GIVEN, **options}, CARD), 11.2e6, "the profiler")
    values = {metric.name: metric.value for metric in made.metrics}
    assert {name: values[name] for name in figures} == pytest.approx(figures, rel=0.01)


@pytest.mark.parametrize(
    ("options", "time", "missing", "how"),
    [
        ({}, 5.0, "tflops", "--set flops="),
        (GIVEN, None, "mfu_datasheet", "--set time="),
        (GIVEN, 5.0, "throughput", "--set items="),
        ({"bytes": "1MB"}, 5.0, "mfu_datasheet", "--set flops="),
    ],
)
def test_a_figure_that_was_not_stated_says_how(options, time, missing, how) -> None:
    (absent,) = [one for one in stated_metrics(parse_stated(options, CARD), time, "it").absent if one.name == missing]
    assert how in absent.fix


def test_more_than_the_peak_is_invalid_and_passes_nothing() -> None:
    made = stated_metrics(parse_stated({**GIVEN, "flops": "200TFLOP"}, CARD), 11.2e6, "the profiler")
    (judged,) = judge_artifact(
        Analysis(kind="ncu", subject="k", metrics=made, views={}), (parse_limit("mfu_datasheet >= 5%", kinds=KINDS),)
    )
    assert judged.outcome is Outcome.INVALID


@pytest.mark.parametrize(("card", "peak"), [("MI300X", 708e12), ("MI325X", 708e12), ("NVIDIA H200", 770e12)])
def test_achievable_rates_are_a_choice(card, peak) -> None:
    spec = lookup_spec(card)
    sheet, reached = (parse_stated({"rates": rates}, spec).roof for rates in ("datasheet", "achievable"))
    assert reached.rate("bf16") == peak
    assert sheet.rate("bf16") > peak
    assert "achievable" in sheet.note
    assert "achievable peak of" in reached.note


@pytest.mark.parametrize(
    ("options", "spec"),
    [
        ({"rates": "achievable"}, CARD),
        ({"rates": "best"}, CARD),
        ({"peak": "bf16=708"}, None),
        ({"bandwidth": "fast"}, None),
    ],
)
def test_rates_that_are_not_known_are_refused(options, spec) -> None:
    with pytest.raises(PerfgateError) as error:
        parse_stated(options, spec)
    assert error.value.code.name == "kernel-option"


def test_a_rate_of_no_type_above_every_peak_is_invalid_wherever_it_stands() -> None:
    stated = parse_stated({"flops": "200TFLOP", "time": "1ms"}, CARD)
    placed = stated.placed(stated.time_ns)
    assert "174 TOPS (int8)" in placed.impossible
    assert classify(signals(stated, stated.time_ns)).bottleneck is Bottleneck.INVALID
    metrics = stated_metrics(stated, stated.time_ns, "--set time")
    assert [m.name for m in metrics.metrics] == []
    assert {a.name for a in metrics.absent if a.code == "above-peak"} >= {"tflops", "bandwidth", "mfu_datasheet", "sol"}
    assert [text.partition(":")[0] for text in dict(run_figures(stated, stated.time_ns)).values()] == ["INVALID"]
    page = render_markdown(bottleneck_report(launch(), timing(stated, stated.time_ns, "device events")))
    assert "Effective rate:" not in page


def test_a_type_without_a_peak_says_so_instead_of_asking_for_the_work_again() -> None:
    stated = parse_stated({**GIVEN, "dtype": "fp8"}, CARD)
    absent = next(a for a in stated_metrics(stated, 11.2e6, "--set time").absent if a.name == "mfu_datasheet")
    assert absent.why.startswith("there is no datasheet peak for fp8 (known: fp32")
    assert "--peak fp8=" in absent.fix


def test_a_rate_of_no_type_below_some_peak_stands() -> None:
    stated = parse_stated({"flops": "100GFLOP", "time": "1ms"}, CARD)
    assert stated.placed(stated.time_ns).impossible == ""
    assert {m.name: m.value for m in stated_metrics(stated, stated.time_ns, "--set time").metrics} == {"tflops": 1e14}


@pytest.mark.parametrize(
    "arch", ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100f", "sm_103a", "sm_120"]
)
def test_the_hint_names_a_device_that_runs_the_code(arch: str) -> None:
    page = render_text(bottleneck_report(diagnose(KernelFacts(name="k", arch=arch), "k", None)))
    device = re.search(r"--device '(.+?)'", " ".join(page.split()))
    assert device is not None
    (spec,) = DeviceCatalogue().find(device[1])
    assert arch.rstrip("af") == spec.arch
