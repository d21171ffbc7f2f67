"""Tests of core/render/devlog."""

from __future__ import annotations

from dataclasses import replace

from pytest_perfgate.core.render.devlog import Version, render_entry
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.metric import Finding, Metric, MetricSet, labels
from pytest_perfgate.model.values import Dimension
from tests.reports import case

CASE = case("test_k[4096-bf16]", 1e6, 1e6)


def entry(*metrics: Metric, findings: tuple[Finding, ...] = (), kernels: str = "") -> str:
    measured = CASE.measurement
    held = MetricSet(metrics=measured.metrics.metrics + metrics)
    changed = replace(CASE, measurement=replace(measured, metrics=held, findings=findings))
    return render_entry(Version(name="v2"), [changed], kernels=kernels)


def of(kernel: str, name: str, value: float, dimension: Dimension = Dimension.FRACTION) -> Metric:
    return Metric(name=name, value=value, dimension=dimension, labels=labels(kernel=kernel))


def test_the_longest_kernel_speaks_for_the_call() -> None:
    text = entry(
        of("a", "occupancy", 0.5), of("b", "occupancy", 0.25),
        of("a", "duration", 10.0, Dimension.TIME), of("b", "duration", 90.0, Dimension.TIME),
    )  # fmt: skip
    assert "| Occupancy | 25 % |" in text
    assert ", 4096-bf16):" in text


def test_one_kernel_speaks_for_itself_and_several_without_times_for_nobody() -> None:
    assert "| TC Util | 70 % |" in entry(of("a", "tc_util", 0.7))
    assert "| TC Util | not collected |" in entry(of("a", "tc_util", 0.7), of("b", "tc_util", 0.1))


def test_titles_and_figures_of_an_entry_agree() -> None:
    """A host's log had `Achieved TFLOPs/s` over MFLOPS, and rows that only a GPU can fill."""
    rates = (
        Metric(name="tflops", value=45.19e6, dimension=Dimension.FLOPS),
        Metric(name="bandwidth", value=3.35e12, dimension=Dimension.BANDWIDTH),
    )
    measured = replace(CASE.measurement, metrics=MetricSet(metrics=CASE.measurement.metrics.metrics[:1] + rates))
    card = render_entry(Version(name="v2"), [replace(CASE, measurement=measured)])
    assert "| Achieved TFLOPs/s | 0.00004519 TFLOPS |" in card
    assert "| Achieved GB/s | 3,350 GB/s |" in card
    assert "| Occupancy | not collected |" in card
    host = replace(measured, device=Device(key="host-x", name="x", kind="host"))
    text = render_entry(Version(name="v2"), [replace(CASE, measurement=host)])
    assert "| Achieved FLOP/s | 45.19 MFLOPS |" in text
    assert "| Achieved B/s | 3.35 TB/s |" in text
    assert not any(word in text for word in ("TFLOPs", "Occupancy", "TC Util"))


def test_a_class_in_the_findings_is_the_bottleneck() -> None:
    seen = Finding(title="gemm", detail="compute-bound: compute 70.4 % of its roof")
    assert "**Bottleneck**: gemm. compute-bound: compute 70.4 %" in entry(findings=(seen,))


def test_what_changed_in_the_kernels_stands_before_what_people_write() -> None:
    text = entry(kernels="### Kernels\n\n- faster\n")
    assert text.index("- faster") < text.index("**Issues**")


def test_many_cases_of_which_only_the_time_is_known_share_a_table() -> None:
    bare = [case(f"test_k[{n}|x]", 1e6, 1e6) for n in range(4)]
    known = replace(bare[0], measurement=replace(bare[0].measurement, metrics=MetricSet(metrics=(
        *bare[0].measurement.metrics.metrics, of("a", "occupancy", 0.5)))))  # fmt: skip
    other = replace(case("test_other", 1e6), measurement=known.measurement)
    text = render_entry(Version(name="v2"), [*bare, other])
    assert "### 4 cases of which only the time was collected" in text
    assert text.count("TFLOPs/s") == 1
    assert "test_k[3\\|x] | 1 ms |  | none that was measured alike |" in text
    assert "### 4 cases" not in render_entry(Version(name="v2"), bare[:3])
