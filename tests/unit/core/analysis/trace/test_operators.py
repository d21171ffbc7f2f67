"""Tests of core/analysis/trace/operators."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.analysis.trace.operators import (
    hardware_table,
    library,
    operators,
    recompute_share,
    short_name,
)
from pytest_perfgate.core.analysis.trace.survey import AnalysisSettings, survey, timelines
from pytest_perfgate.core.render.words import ABSENT
from pytest_perfgate.model.device import Basis, Roof
from tests.kineto_file import host, kernel, launch, surveyed


def test_an_operator_without_a_model_says_so_and_gets_no_zero(tmp_path):
    shapes = {"Input Dims": [[4]], "Input type": ["float"], "Input Strides": [[1]], "Concrete Inputs": [""]}
    events = [host("mine::op", 0, 10, **shapes), launch(1, 1), kernel("k", 5, 5, correlation=1)]
    (row,) = operators(surveyed(tmp_path / "t.json", events))
    assert row.work is None
    assert row.why == "no model for this operator"


def test_a_user_s_operator_gets_its_work(tmp_path):
    from pytest_perfgate import work

    shapes = {"Input Dims": [[4, 8]], "Input type": ["float"], "Input Strides": [[8, 1]], "Concrete Inputs": [""]}
    events = [host("mine::op", 0, 10, **shapes), launch(1, 1), kernel("k", 5, 5, correlation=1)]
    settings = AnalysisSettings(models={"mine::op": lambda call: work.elementwise(call.shape(0), dtype=call.dtype(0))})
    (row,) = operators(surveyed(tmp_path / "t.json", events, settings))
    assert row.work.flops == 32


def test_a_copy_with_a_user_s_model_is_work_of_its_own(tmp_path):
    events = [host("aten::mul", 0, 100), host("aten::clone", 2, 40), host("aten::copy_", 4, 30)]
    names = {}
    for models in ({}, {"aten::clone": lambda call: None}):
        rows = operators(surveyed(tmp_path / "t.json", events, AnalysisSettings(models=models)))
        names[len(models)] = [row.name for row in rows]
    assert names == {0: ["aten::mul"], 1: ["aten::clone"]}


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (lambda call: call.shapes[0], "arguments do not fit the model: 'method' object is not subscriptable"),
        (lambda call: call.size_of, "its model failed: AttributeError("),
        (lambda call: None, "its model returned None, which is no work"),
        (lambda call: 2 * 4**3, "its model returned 128, which is no work"),
    ],
)
def test_a_user_s_model_that_fails_costs_only_its_own_figures(tmp_path, model, why):
    events = [host("mine::op", 0, 10), launch(1, 1), kernel("k", 5, 5, correlation=1)]
    (row,) = operators(surveyed(tmp_path / "t.json", events, AnalysisSettings(models={"mine::op": model})))
    assert row.work is None
    assert row.why.startswith(why)


def test_recomputed_forward_passes_are_told_by_their_frame(tmp_path):
    events = [
        host("checkpoint.py(1): recompute_fn", 0, 50, cat="python_function"),
        launch(10, 1),
        launch(60, 2),
        kernel("again", 20, 30, correlation=1),
        kernel("first", 70, 10, correlation=2),
    ]
    assert recompute_share(surveyed(tmp_path / "t.json", events)) == pytest.approx(0.75)


def test_operators_and_kernels_of_the_corpus_account_for_all_linked_time(look, corpus):
    for name in ("vit_h100", "bert_small_mi300", "nccl_a100_rank0of2", "sampled_128ranks/rank0"):
        surveyed = look(name)
        (line,) = timelines(surveyed).values()
        assert sum(row.total for row in operators(surveyed)) >= line.busy * 0.999
        assert survey(surveyed.trace, AnalysisSettings()).coverage == surveyed.coverage


def test_names_and_peaks_fit_a_page():
    long = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float*)"
    assert short_name(long) == "vectorized_layer_norm_kernel<c10::BFloat16, float>"
    assert len(short_name("sm90_xmma_gemm_" + "x" * 200)) == 72
    roof = Roof(basis=Basis.DATASHEET, compute=(("bf16", 1e15),), bandwidth=3e12, note="a sheet")
    table = hardware_table(reference=roof, target=None)
    assert table.rows[0] == ("peaks", "a sheet", "not known")
    assert table.rows[1:] == (("memory bandwidth", "3 TB/s", ABSENT), ("bf16", "1,000 TFLOPS", ABSENT))
    assert table.note == ""
    noted = hardware_table(reference=None, target=replace(roof, note="a sheet; achievable: bf16 7 TFLOPS"))
    assert (noted.rows[0], noted.note) == (("peaks", "not known", "a sheet"), "target: achievable: bf16 7 TFLOPS")


@pytest.mark.parametrize(
    ("kernel_name", "of"),
    [
        ("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn", "cuBLAS"),
        ("ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x5_tn", "cuBLAS"),
        ("volta_h884gemm_64x64_ldg8_nn", "cuBLAS"),
        ("ampere_sgemm_128x64_nn", "cuBLAS"),
        ("my_h100gemm_v2", ""),
    ],
)
def test_a_kernel_of_a_product_is_of_its_library(kernel_name, of):
    assert library(kernel_name) == of
