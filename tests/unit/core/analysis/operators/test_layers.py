"""Every operator of the table, called as its schema says, against counts made by hand."""

from __future__ import annotations

import pytest

from pytest_perfgate import work
from pytest_perfgate.core.analysis.operators import (
    CATEGORIES,
    MODELS,
    OperatorCall,
    category_of,
    fusion_of,
    model_of,
    parse_call,
    work_of,
)
from pytest_perfgate.core.analysis.operators.pointwise import fused_operators
from pytest_perfgate.model.values import Work

NONE = None
HALF, FLOAT, FP8 = "c10::Half", "float", "c10::Float8_e4m3fn"
Argument = object
"""A shape in half precision, (shape, type), the text of a scalar, or nothing."""


def called(name: str, *arguments: Argument) -> OperatorCall:
    dims, types, concrete = [], [], []
    for argument in arguments:
        shaped = (
            argument[0] if isinstance(argument, tuple) and argument and isinstance(argument[0], tuple) else argument
        )
        kind = argument[1] if shaped is not argument else HALF
        tensor = isinstance(argument, tuple)
        dims.append(tuple(shaped) if tensor else ())
        types.append(kind if tensor else "Scalar" if isinstance(argument, str) else "")
        concrete.append(argument if isinstance(argument, str) else "")
    return OperatorCall(name=name, dims=tuple(dims), types=tuple(types), concrete=tuple(concrete))


def counted(name: str, *arguments: Argument) -> tuple[float, float]:
    amount, why = work_of(called(name, *arguments))
    assert amount is not None, why
    return amount.flops, amount.bytes


MM = 2 * 4 * 6 * 8
MOVED = 2 * (4 * 8 + 8 * 6 + 4 * 6)


@pytest.mark.parametrize(
    ("name", "arguments", "flops", "moved"),
    [
        ("aten::mm", [(4, 8), (8, 6)], MM, MOVED),
        ("aten::addmm", [(6,), (4, 8), (8, 6), "1", "1"], MM + 24, MOVED + 12),
        ("aten::addmm", [((6,), FLOAT), (4, 8), (8, 6)], MM + 24, MOVED + 24),
        ("aten::bmm", [(3, 4, 8), (3, 8, 6)], 3 * MM, 3 * MOVED),
        ("aten::baddbmm", [(6,), (3, 4, 8), (3, 8, 6)], 3 * (MM + 24), 3 * (MOVED + 12)),
        ("aten::linear", [(2, 2, 8), (6, 8), (6,)], MM + 24, MOVED + 12),
        ("aten::linear", [(4, 8), (6, 8), NONE], MM, MOVED),
        ("aten::linear", [(4, 8), (8,), NONE], 2 * 4 * 8, 2 * (4 * 8 + 8 + 4)),
        ("aten::_scaled_mm", [((4, 8), FP8), ((8, 6), FP8), ((1,), FLOAT), ((1,), FLOAT), NONE], MM, 32 + 48 + 48),
        ("aten::_scaled_mm", [((4, 8), FP8), ((8, 6), FP8), ((1,), FLOAT), ((1,), FLOAT), (6,)], MM + 24, 128 + 12),
        ("aten::_scaled_mm", [(4, 8), (8, 6), ((1,), FLOAT), ((1,), FLOAT), NONE], MM, MOVED),
        ("aten::mv", [(4, 8), (8,)], 64, 2 * (32 + 8 + 4)),
        ("aten::dot", [(8,), (8,)], 16, 2 * (8 + 8 + 1)),
        ("aten::_grouped_mm", [(12, 8), (3, 8, 6)], 2 * 12 * 6 * 8, 2 * (12 * 8 + 3 * 8 * 6 + 12 * 6)),
        ("primus_turbo::grouped_gemm", [(12, 8), (3, 6, 8)], 2 * 12 * 6 * 8, 2 * (12 * 8 + 3 * 8 * 6 + 12 * 6)),
    ],
)
def test_products(name: str, arguments: list, flops: float, moved: float) -> None:
    assert counted(name, *arguments) == (flops, moved)


X, C = (2, 6, 5), 6
COUNT = 2 * 6 * 5
STATISTICS = 6 * C + 2 * COUNT
TRAINED = STATISTICS + 3 * COUNT


@pytest.mark.parametrize(
    ("name", "arguments", "flops", "moved"),
    [
        ("aten::batch_norm", [X, (6,), (6,), (6,), (6,), "True", "0.1"], TRAINED, 4 * COUNT + 4 * C * 2),
        ("aten::batch_norm", [X, (6,), (6,), (6,), (6,), "False", "0.1"], STATISTICS, 4 * COUNT + 4 * C),
        ("aten::native_batch_norm", [X, NONE, NONE, (6,), (6,), "False"], STATISTICS, 4 * COUNT),
        ("aten::layer_norm", [X, "[5]", (5,), (5,)], 6 * 5 + 5 * COUNT, 4 * COUNT + 4 * 5 * 2),
        ("aten::native_layer_norm", [X, "[6, 5]", NONE, NONE], 6 * 30 + 5 * COUNT, 4 * COUNT + 4 * 30),
        ("aten::group_norm", [X, "3", (6,), (6,)], TRAINED, 4 * COUNT + 4 * C * 2),
        ("aten::native_group_norm", [X, (6,), (6,), "2", "6", "5", "3"], TRAINED, 4 * COUNT + 4 * C * 2),
        ("aten::instance_norm", [X, NONE, NONE, NONE, NONE, "True"], TRAINED, 4 * COUNT + 4 * C),
        ("aten::_fused_rms_norm", [X, "[5]", (5,)], 12 * 12 + 2 * COUNT, 4 * COUNT + 10),
        ("aten::rms_norm", [X, "[5]", NONE], 12 * 12 + COUNT, 4 * COUNT),
    ],
)
def test_normalisations(name: str, arguments: list, flops: float, moved: float) -> None:
    assert counted(name, *arguments) == (flops, moved)


ALL, INPUT = "[True, True, True]", "[True, False, False]"
WHOLE, PART = 12 * COUNT, 9 * COUNT


@pytest.mark.parametrize(
    ("name", "arguments", "flops", "moved"),
    [
        ("aten::native_batch_norm_backward", [X, X, (6,), *[NONE] * 4, "True", "1e-5", ALL], WHOLE, 6 * COUNT + 10 * C),
        ("aten::native_batch_norm_backward", [X, X, NONE, *[NONE] * 4, "True", "1", INPUT], PART, 6 * COUNT + 4 * C),
        ("aten::cudnn_batch_norm_backward", [X, X, (6,)], WHOLE, 6 * COUNT + 10 * C),
        ("aten::miopen_batch_norm_backward", [X, X, (6,)], WHOLE, 6 * COUNT + 10 * C),
        ("aten::native_layer_norm_backward", [X, X, "[5]", X, X, (5,), (5,), ALL], WHOLE, 6 * COUNT + 50),
        ("aten::native_group_norm_backward", [X, X, X, X, (6,), "2", "6", "5", "3", ALL], WHOLE, 6 * COUNT + 10 * C),
        ("aten::_fused_rms_norm_backward", [X, X, "[5]", X, (5,), "[True, True]"], 11 * COUNT, 6 * COUNT + 40),
        ("aten::_fused_rms_norm_backward", [X, X, "[5]", X, (5,), ""], 11 * COUNT, 6 * COUNT + 40),
    ],
)
def test_gradients_of_normalisations(name: str, arguments: list, flops: float, moved: float) -> None:
    totals = counted(name, *arguments)
    assert totals == (pytest.approx(flops), moved)


IMAGE, KERNEL, OUT = (2, 4, 8, 8), (6, 4, 3, 3), 2 * 6 * 8 * 8
PRODUCT = 2 * OUT * 4 * 9
SIZES = 2 * 4 * 64 + 6 * 4 * 9 + OUT
PADDED = ("[1, 1]", "[1, 1]", "[1, 1]")


@pytest.mark.parametrize(
    ("name", "arguments", "flops", "moved"),
    [
        ("aten::convolution", [IMAGE, KERNEL, NONE, *PADDED, "False", "[0, 0]", "1"], PRODUCT, 2 * SIZES),
        ("aten::_convolution", [IMAGE, KERNEL, (6,), *PADDED, "False", "[0, 0]", "1"], PRODUCT + OUT, 2 * (SIZES + 6)),
        ("aten::cudnn_convolution", [IMAGE, KERNEL, *PADDED, "1"], PRODUCT, 2 * SIZES),
        ("aten::miopen_convolution", [IMAGE, KERNEL, NONE, *PADDED, "1"], PRODUCT, 2 * SIZES),
        (
            "aten::convolution_backward",
            [(2, 6, 8, 8), IMAGE, KERNEL, "[6]", *PADDED, "False", "[0, 0]", "1", ALL],
            2 * PRODUCT + OUT,
            2 * (OUT + 2 * (2 * 4 * 64 + 216) + 6),
        ),
    ],
)
def test_convolutions(name: str, arguments: list, flops: float, moved: float) -> None:
    assert counted(name, *arguments) == (flops, moved)


Q, KV = (2, 8, 16, 32), (2, 2, 24, 32)
ATTENTION = work.attention(2, 8, 16, 32, dtype="fp16", keys=24, kv_heads=2)
CAUSAL = work.attention(2, 8, 16, 32, dtype="fp16", keys=24, kv_heads=2, causal=True)
ALIGNED = work.attention(2, 8, 16, 32, dtype="fp16", keys=24, kv_heads=2, causal=True, bottom_right=True)
GRADIENT = work.attention_backward(2, 8, 16, 32, dtype="fp16", keys=24, kv_heads=2, causal=True)
LAST, LAST_KV = (2, 16, 8, 32), (2, 24, 2, 32)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("aten::_scaled_dot_product_flash_attention", [Q, KV, KV, "0.", "False"], ATTENTION),
        ("aten::_scaled_dot_product_flash_attention", [Q, KV, KV, "0.", "True"], CAUSAL),
        ("aten::_scaled_dot_product_efficient_attention", [Q, KV, KV, NONE, "False", "0.", "True"], CAUSAL),
        ("aten::_scaled_dot_product_cudnn_attention", [Q, KV, KV, NONE, "False", "0.", "False"], ATTENTION),
        ("aten::scaled_dot_product_attention", [Q, KV, KV, NONE, "0.", "True"], CAUSAL),
        ("aten::_flash_attention_forward", [LAST, LAST_KV, LAST_KV, NONE, NONE, "1", "1", "0.", "True"], ALIGNED),
        ("FlashAttnFunc", [LAST, LAST_KV, LAST_KV, "0.", "1", "True"], ALIGNED),
        ("flash_attn::_flash_attn_forward", [LAST, LAST_KV, LAST_KV, "0.", "1", "False", "False"], ATTENTION),
        (
            "aten::_scaled_dot_product_flash_attention_backward",
            [Q, Q, KV, KV, Q, Q, NONE, NONE, "1", "1", "0.", "True"],
            GRADIENT,
        ),
        (
            "aten::_scaled_dot_product_efficient_attention_backward",
            [Q, Q, KV, KV, NONE, Q, Q, NONE, NONE, "0.", ALL, "True"],
            GRADIENT,
        ),
    ],
)
def test_attention(name: str, arguments: list, expected: Work) -> None:
    assert counted(name, *arguments) == (expected.flops, expected.bytes)


@pytest.mark.parametrize(
    ("name", "arguments", "flops", "moved"),
    [
        ("aten::relu", [(4, 6)], 24, 96),
        ("aten::add", [(4, 6), (6,), "1"], 24, 2 * (24 + 6 + 24)),
        ("aten::mul", [(4, 6), "2.0"], 24, 96),
        ("aten::copy_", [((4, 6), FLOAT), (4, 6)], 0, 24 * 6),
        ("aten::copy_", [((4, 6), FLOAT), (6,)], 0, 24 * 4 + 6 * 2),
        ("aten::eq", [(4, 6), (6,)], 24, 48 + 12 + 24),
        ("aten::eq_", [(4, 6), (6,)], 24, 48 + 12 + 48),
        ("aten::isnan", [(4, 6)], 24, 48 + 24),
        ("aten::mse_loss_backward", [(), (4, 6), (4, 6), "1"], 24, 2 + 3 * 48),
        ("aten::linalg_vector_norm", [(4, 6), "1", NONE, "False"], 24, 48 + 2),
        ("aten::norm", [(4, 6), "1", "[0]"], 24, 48 + 12),
        ("aten::fill_", [(4, 6), "0"], 0, 48),
        ("aten::sum", [(4, 6)], 24, 48 + 2),
        ("aten::_softmax", [(4, 6), "-1", "False"], 72, 96),
        ("aten::_softmax_backward_data", [(4, 6), (4, 6), "-1"], 72, 144),
        ("aten::embedding", [(100, 6), ((4,), "long int")], 0, 4 * 8 + 2 * 4 * 6 * 2),
        ("aten::index_select", [(100, 6), "0", ((4,), "long int")], 0, 4 * 8 + 2 * 4 * 6 * 2),
        ("aten::index_select", [(5, 100, 6), "-1", ((4,), "long int")], 0, 4 * 8 + 2 * 4 * 500 * 2),
        ("aten::index_select", [(100,), "", ((4,), "long int")], 0, 4 * 8 + 2 * 4 * 2),
        ("aten::cross_entropy_loss", [(4, 6), ((4,), "long int")], 5 * 24, 48 + 32),
    ],
)
def test_what_streams(name: str, arguments: list, flops: float, moved: float) -> None:
    assert counted(name, *arguments) == (flops, moved)


def test_a_reduction_over_some_dimensions_keeps_the_others() -> None:
    call = OperatorCall(name="aten::sum", dims=((4, 6), ()), types=(HALF, "ScalarList"), concrete=("", "[1]"))
    amount, _ = work_of(call)
    assert amount.bytes == 48 + 8


def test_a_kernel_of_inductor_counts_what_it_fused() -> None:
    call = called("triton_poi_fused_add_mul_view_3", (4, 6), (4, 6), ((6,), FLOAT))
    amount, _ = work_of(call)
    assert (amount.flops, amount.bytes) == (48, 48 + 48 + 24)
    assert "estimated" in amount.note
    assert fused_operators("triton_red_fused__softmax_add_0") == ("softmax", "add")
    assert fused_operators("my_kernel") == ()


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("aten::mm", [(4, 8), NONE], "argument 1 of aten::mm is not a tensor"),
        ("aten::mm", [(4, 8, 2), (8, 6)], "do not fit"),
        ("aten::index_select", [(100, 6), "", ((4,), "long int")], "argument 1 of aten::index_select was not recorded"),
        ("aten::eq", ["3", "4"], "neither operand of aten::eq is a tensor"),
        ("aten::native_layer_norm_backward", [X, X, "[5]", X, X, (5,), (5,), "[True]"], "mask was not recorded"),
        ("aten::convolution_backward", [X, X, X, "", "", "", "", "", "", "1", ""], "mask was not recorded"),
        ("aten::convolution", [IMAGE, KERNEL, NONE, *PADDED, "False", "[0, 0]", ""], "was not recorded"),
        ("aten::_flash_attention_forward", [(32, 8, 32), KV, KV], "do not fit"),
        ("aten::scaled_dot_product_attention", [(2, 3, 16, 32), KV, KV], "cannot share"),
        ("triton_poi_fused_add_0", [NONE], "no arguments were traced"),
        ("mine::op", [(4,)], "no model"),
    ],
)
def test_what_does_not_fit_says_why(name: str, arguments: list, why: str) -> None:
    amount, reason = work_of(called(name, *arguments))
    assert amount is None
    assert why in reason


def test_without_shapes_nothing_is_counted() -> None:
    assert work_of(OperatorCall(name="aten::mm")) == (None, "the trace has no shapes: profile with record_shapes=True")


def test_a_model_of_the_user_comes_first() -> None:
    mine = {"aten::mm": lambda call: work.custom(flops=7.0)}
    assert model_of("aten::mm", mine) is mine["aten::mm"]
    assert work_of(OperatorCall(name="aten::mm"), mine)[0].flops == 7.0


def test_every_model_has_a_category_and_unknown_ones_have_one_too() -> None:
    assert set(MODELS) == set(CATEGORIES)
    assert category_of("triton_poi_fused_add_0") == "triton"
    assert fusion_of("triton", "triton_per_fused__softmax_add_0").startswith("none: torch.compile made this kernel")
    assert category_of("flash_attn_3::fwd") == "SDPA_fwd"
    assert category_of("my_attention_backward") == "SDPA_bwd"
    assert category_of("x", "void at::native::vectorized_elementwise_kernel") == "elementwise"
    assert category_of("x", "void at::native::reduce_kernel") == "reduce"
    assert category_of("x", "void at::native::multi_tensor_apply_kernel") == "multi_tensor_apply"
    assert category_of("x", "gemm") == "other"


def test_a_call_is_read_from_what_was_recorded() -> None:
    call = parse_call("aten::mm", (b"[[4, 8], [8, 6]]", b'["float", "float"]', b"", b'["", "True"]'))
    assert call.shape(1) == (8, 6)
    assert call.flag(1)
    assert call.size(0) == 128
    assert call.size(5) == 0
    assert parse_call("x", (b"{", b"3", b"", b"")).types == ()


def test_work_of_the_users_own() -> None:
    assert work.custom(bytes=8.0).working_set == 8.0
    assert work.custom(flops=1.0, dtype="torch.float16", working_set=3.0).dtype == "fp16"
    assert work.items(7, "tokens").items == 7
    with pytest.raises(ValueError, match="flops=, bytes= or both"):
        work.custom()
