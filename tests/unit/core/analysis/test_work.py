"""Tests of core/analysis/work."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import astuple
from fractions import Fraction

import numpy as np
import pytest

from pytest_perfgate import work


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint16])
def test_work_is_counted_in_numbers_without_end(kind: type) -> None:
    pairs = [
        (work.gemm(kind(4096), kind(4096), kind(4096), dtype="bf16"), work.gemm(4096, 4096, 4096, dtype="bf16")),
        (work.softmax(np.array([4096, 4096], kind), dtype="fp32"), work.softmax((4096, 4096), dtype="fp32")),
        (work.softmax([kind(4096), kind(4096)], dtype="fp32"), work.softmax((4096, 4096), dtype="fp32")),
        (work.layer_norm(kind(4096), kind(4096), dtype="fp32"), work.layer_norm(4096, 4096, dtype="fp32")),
        (work.custom(flops=kind(7), bytes=kind(8)), work.custom(flops=7, bytes=8)),
        (work.items(kind(7)), work.items(7)),
    ]
    for counted, expected in pairs:
        assert counted == expected
        assert all(type(value) in {int, float, str, type(None)} for value in astuple(counted))


def test_what_is_a_kind_of_number_stays_what_it_is() -> None:
    assert work.gemm(2, 2, 2, dtype="fp32").flops == 16
    assert work.gemm.__name__ == "gemm"


def test_the_spot_check_of_a_large_bf16_product():
    w = work.gemm(8944, 2816, 1024, dtype="bf16")
    assert w.flops / 1e9 == 51.581550592
    assert w.bytes / 2**20 == 71.0078125
    assert w.intensity == pytest.approx(692.769, abs=5e-4)


def test_a_bias_adds_one_operation_an_element_and_one_vector():
    plain, biased = work.gemm(4, 6, 8, dtype="fp32"), work.gemm(4, 6, 8, dtype="fp32", bias=True)
    assert biased.flops - plain.flops == 4 * 6
    assert biased.bytes - plain.bytes == 6 * 4


def test_a_batch_is_so_many_products():
    assert work.bmm(5, 4, 6, 8, dtype="fp16").flops == 5 * work.gemm(4, 6, 8, dtype="fp16").flops


def test_operands_keep_their_own_widths():
    w = work.mixed_gemm((1, 4, 6, 8), ("fp8", "fp8", "bf16"))
    assert w.bytes == 4 * 8 + 8 * 6 + 2 * 4 * 6
    assert w.dtype == "fp8"
    assert work.gemm(4, 6, 8, dtype="fp8", out="bf16").bytes == w.bytes


def test_both_gradients_of_a_product_cost_two_products():
    assert work.gemm_backward(4, 6, 8, dtype="fp32").flops == 2 * work.gemm(4, 6, 8, dtype="fp32").flops


@pytest.mark.parametrize("queries", range(6))
@pytest.mark.parametrize("keys", range(6))
@pytest.mark.parametrize("bottom_right", [False, True])
def test_a_causal_mask_keeps_what_a_loop_counts(queries, keys, bottom_right):
    shift = keys - queries if bottom_right else 0
    area = sum(j <= i + shift for i in range(queries) for j in range(keys))
    assert work.kept_area(queries, keys, bottom_right=bottom_right) == area


def test_attention_counts_grouped_heads_and_unequal_head_sizes():
    w = work.attention(2, 8, 16, 64, dtype="bf16", keys=32, kv_heads=2, value_dim=48)
    assert w.flops == 2 * 2 * 8 * 16 * 32 * (64 + 48)
    q, k, v, o = 2 * 8 * 16 * 64, 2 * 2 * 32 * 64, 2 * 2 * 32 * 48, 2 * 8 * 16 * 48
    assert w.bytes == 2 * (q + k + v + o)


def test_the_gradient_of_attention_reads_four_and_writes_three():
    w = work.attention_backward(1, 4, 8, 16, dtype="fp16")
    assert w.flops == 4 * 64 * 10 * 16
    assert w.bytes == 7 * 4 * 8 * 16 * 2


def test_heads_that_cannot_be_shared_are_refused():
    with pytest.raises(ValueError, match="8 query heads cannot share 3"):
        work.attention(1, 8, 4, 4, dtype="fp32", kv_heads=3)


def test_a_convolution_has_the_shape_that_pytorch_gives_it():
    assert work.convolution_shape((4, 3, 224, 224), (768, 3, 16, 16), stride=16) == (4, 768, 14, 14)
    assert work.convolution_shape((1, 4, 5), (4, 2, 3), stride=2, padding=1, transposed=True, output_padding=1) == (
        1,
        2,
        10,
    )
    assert work.convolution_shape((1, 4, 9, 9), (8, 1, 3, 3), dilation=2) == (1, 8, 5, 5)


def test_a_convolution_is_a_product_over_its_window():
    w = work.conv((4, 3, 224, 224), (768, 3, 16, 16), dtype="bf16", stride=16)
    assert w.flops == 2 * (4 * 768 * 14 * 14) * (3 * 16 * 16)
    biased = work.conv((4, 3, 224, 224), (768, 3, 16, 16), dtype="bf16", stride=16, bias=True)
    assert biased.flops - w.flops == 4 * 768 * 14 * 14


def test_gradients_of_a_convolution_follow_the_mask():
    shapes = ((2, 3, 8, 8), (4, 3, 3, 3))
    one = work.conv(*shapes, dtype="fp32").flops
    both = work.conv_backward(*shapes, dtype="fp32", mask=(True, True, False))
    assert both.flops == 2 * one
    assert work.conv_backward(*shapes, dtype="fp32", mask=(False, True, False)).flops == one
    x, w, out = 2 * 3 * 64, 4 * 27, 2 * 4 * 36
    assert both.bytes == 4 * (2 * x + 2 * w + out)


def test_a_reduction_respects_its_dimensions():
    assert work.reduction((8, 4), dtype="fp32", dims=[-1]).bytes == 4 * (32 + 8)
    assert work.reduction((8, 4), dtype="fp32").bytes == 4 * (32 + 1)


def test_absent_affine_parameters_are_not_moved():
    bare = work.layer_norm((8, 16), 16, dtype="fp32", affine=False)
    assert bare.bytes == 2 * 128 * 4
    assert bare.flops == 6 * 16 + 2 * 128
    assert work.layer_norm((8, 16), 16, dtype="fp32").bytes == bare.bytes + 2 * 16 * 4


def test_gradients_of_a_norm_follow_the_mask():
    full = work.norm_backward((8, 16), 16, dtype="fp32")
    inner = work.norm_backward((8, 16), 16, dtype="fp32", mask=(True, False, False))
    assert full.flops > inner.flops
    assert full.bytes > inner.bytes


def test_a_mixture_of_experts_reads_only_what_was_hit():
    one = work.fused_moe(1, (16, 32), 8, dtype="bf16", top=2)
    weights = 2 * 16 * (64 + 32) * 2
    assert one.bytes == pytest.approx(weights + 2 * 2 * 16)
    assert one.flops == 2 * 2 * 16 * (64 + 32)


@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        ("allreduce", 1.75),
        ("_allgather_base", 0.875),
        ("reduce_scatter", 0.875),
        ("all_to_allv", 0.875),
        ("broadcast", 1),
    ],
)
def test_the_bus_sees_the_share_that_the_algorithm_needs(kind, factor):
    assert work.bus_factor(kind, 8) == factor


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("torch.bfloat16", "bf16"),
        ("c10::BFloat16", "bf16"),
        ("float", "fp32"),
        ("c10::Half", "fp16"),
        ("long int", "int64"),
        ("f32", "fp32"),
        (float, "fp64"),
        (complex, "complex128"),
        (bool, "bool"),
    ],
)
def test_dtypes_answer_to_the_names_of_traces_and_libraries(name, plain):
    assert work.dtype_name(name) == plain


def test_the_dtype_of_an_array_is_an_element_type():
    numpy = pytest.importorskip("numpy")
    rows = numpy.ones(2, dtype=">f4")
    assert work.dtype_name(rows.dtype) == work.dtype_name(numpy.float32) == "fp32"
    assert work.gemm(2, 2, 2, dtype=rows.dtype, out=numpy.int8) == work.gemm(2, 2, 2, dtype="fp32", out="int8")
    assert work.reduction(rows.shape, dtype=rows.dtype) == work.reduction((2,), dtype="fp32")
    with pytest.raises(ValueError, match="unknown dtype 'str32'"):
        work.softmax((2, 2), dtype=numpy.dtype("U1"))


@pytest.mark.torch
def test_the_dtype_of_a_tensor_is_an_element_type():
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    assert work.dtype_name(torch.ones(2).bfloat16().dtype) == "bf16"
    assert work.dtype_name(torch.float8_e4m3fn) == "fp8"


def test_an_unknown_dtype_names_the_known_ones():
    with pytest.raises(ValueError, match="unknown dtype 'bf17'; known are bf16"):
        work.gemm(1, 1, 1, dtype="bf17")


def test_custom_work_needs_something_to_count():
    with pytest.raises(ValueError, match="flops="):
        work.custom()


def test_naming_work_imports_no_numpy():
    code = "import sys; from pytest_perfgate import work; work.items(3, 'tokens'); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("count", [-1, -0.5, float("nan"), float("inf"), "8", True, [1]])
def test_counts_that_are_none_are_refused(count):
    stating = (lambda c: work.custom(flops=c), lambda c: work.custom(bytes=c), work.items, work.copy,
               lambda c: work.custom(flops=1, working_set=c))  # fmt: skip
    for state in stating:
        with pytest.raises(ValueError, match=r"is negative|is not finite|is not a number"):
            state(count)


def test_items_of_a_work_keep_its_operations_and_bytes() -> None:
    product = work.gemm(8, 8, 8, dtype="bf16")
    both = work.items(np.int32(8), "rows", of=product)
    assert (both.items, both.unit, type(both.items)) == (8, "rows", int)
    assert (both.flops, both.bytes, both.dtype, both.family) == (product.flops, product.bytes, "bf16", product.family)
    assert work.items(8, "rows").flops is None


def test_counts_of_any_size_and_library_are_taken():
    assert work.custom(flops=10**400).flops == 10**400
    assert work.items(Fraction(1, 2)).items == Fraction(1, 2)
    assert work.custom(flops=0, bytes=0).bytes == 0
