"""Tests of core/analysis/operators: calls, their shapes and their work."""

from __future__ import annotations

from math import prod

import pytest

from pytest_perfgate import work
from pytest_perfgate.core.analysis.operators import MODELS, OperatorCall, category_of, parse_call, work_of
from tests.kineto_operators import CALLS, ROWS, W, X, recorded


@pytest.mark.parametrize(
    "arguments",
    [
        (b"[5, {}]", b'["float", "float"]', b"[7]", b"[]"),
        (b"[]", b'["float", "float"]', b"[]", b"[]"),
        (b'[["a", "b"], [2, 2]]', b'["float", "float"]', b"", b"null"),
        (b"[[2, 2], [2, 2]]", b"[1, null]", b"[]", b"[3]"),
        (b"[[-1, 2], [2, 1e400]]", b'["float", "float"]', b"[]", b"[]"),
        (b"[" * 5000 + b"]" * 5000, b'["float"]', b"[]", b"[]"),
    ],
)
@pytest.mark.parametrize("name", ["aten::mm", "aten::add", "aten::cat", "aten::_foreach_add_", "aten::sum"])
def test_arguments_of_any_form_have_work_or_a_reason(name, arguments):
    call = parse_call(name, arguments)
    work, why = work_of(call)
    assert (work is None) == bool(why)
    assert not call.dims or len(call.dims) >= len(call.types)


SHAPES = {name: arguments for name, arguments, _ in CALLS}
CONV = work.conv(X[0], W[0], dtype="bf16", padding=1)
BIASED = work.conv(X[0], W[0], dtype="bf16", padding=1, bias=True)
ATTENTION = work.attention(2, 8, 128, 64, dtype="bf16")
CAUSAL = work.attention(2, 8, 128, 64, dtype="bf16", causal=True)
N = prod(ROWS[0])
EXPECTED = {
    "aten::mm": work.gemm(128, 256, 64, dtype="bf16"),
    "aten::addmm": work.gemm(128, 256, 64, dtype="bf16", bias=True),
    "aten::bmm": work.bmm(4, 32, 8, 16, dtype="bf16"),
    "aten::baddbmm": work.bmm(4, 32, 8, 16, dtype="bf16", bias=True),
    "aten::linear": work.gemm(128, 16, 32, dtype="bf16", bias=True),
    "aten::_scaled_mm": work.gemm(64, 16, 32, dtype="fp8", out="bf16"),
    "aten::mv": work.gemm(64, 1, 32, dtype="fp32"),
    "aten::dot": work.gemm(1, 1, 64, dtype="fp32"),
    "aten::_grouped_mm": work.grouped_gemm(64, 16, 32, 4, dtype="bf16"),
    "aten::convolution": BIASED,
    "aten::cudnn_convolution": CONV,
    "aten::miopen_convolution": BIASED,
    "aten::convolution_backward": work.conv_backward(X[0], W[0], dtype="bf16", padding=1),
    "aten::_scaled_dot_product_flash_attention": CAUSAL,
    "aten::_scaled_dot_product_efficient_attention": CAUSAL,
    "aten::scaled_dot_product_attention": ATTENTION,
    "FlashAttnFunc": CAUSAL,
    "aten::batch_norm": work.batch_norm(X[0], 16, dtype="bf16", affine=True, training=True),
    "aten::layer_norm": work.layer_norm(ROWS[0], 256, dtype="bf16", affine=True, training=True),
    "aten::native_layer_norm": work.layer_norm(ROWS[0], 256, dtype="bf16", affine=False, training=True),
    "aten::group_norm": work.group_norm(X[0], 16, dtype="bf16", training=True),
    "aten::native_group_norm": work.group_norm(X[0], 16, dtype="bf16", training=True),
    "aten::instance_norm": work.norm(X[0], 16, dtype="bf16", affine=False, training=True),
    "aten::_fused_rms_norm": work.rms_norm(ROWS[0], 256, dtype="bf16"),
    "aten::native_batch_norm_backward": work.norm_backward(X[0], 16, dtype="bf16"),
    "aten::cudnn_batch_norm_backward": work.norm_backward(X[0], 16, dtype="bf16"),
    "aten::native_layer_norm_backward": work.norm_backward(ROWS[0], 256, dtype="bf16"),
    "aten::native_group_norm_backward": work.norm_backward(X[0], 16, dtype="bf16"),
    "aten::_fused_rms_norm_backward": work.norm_backward(ROWS[0], 256, dtype="bf16", mask=(True, True, False)),
    "aten::relu": work.elementwise(N, dtype="bf16"),
    "aten::silu": work.elementwise(N, dtype="bf16"),
    "aten::add": work.custom(flops=N, bytes=2 * (2 * N + 256), dtype="bf16"),
    "aten::mul": work.elementwise(N, dtype="bf16"),
    "aten::copy_": work.custom(flops=0, bytes=6 * N, dtype="bf16"),
    "aten::fill_": work.custom(flops=0, bytes=2 * N, dtype="bf16"),
    "aten::sum": work.reduction(ROWS[0], dtype="bf16", dims=[0]),
    "aten::mean": work.reduction(ROWS[0], dtype="bf16"),
    "aten::_softmax": work.softmax((4, 32, 32), dtype="bf16"),
    "aten::_softmax_backward_data": work.softmax((4, 32, 32), dtype="bf16", backward=True),
    "aten::embedding": work.embedding(128, 64, dtype="bf16"),
    "aten::cross_entropy_loss": work.cross_entropy(64, 1000, dtype="fp32"),
    "triton_poi_fused__unsafe_view_mul_silu_2": work.custom(flops=2 * N, bytes=4 * N, dtype="bf16"),
    "triton_red_fused_add_mean_0": work.custom(flops=2 * N, bytes=2 * (N + 64), dtype="bf16"),
}


def called(name, arguments):
    lists = recorded(arguments)
    return OperatorCall(
        name=name,
        dims=tuple(map(tuple, lists["Input Dims"])),
        types=tuple(lists["Input type"]),
        strides=tuple(map(tuple, lists["Input Strides"])),
        concrete=tuple(lists["Concrete Inputs"]),
    )


def test_a_recorded_call_has_the_work_of_its_family():
    assert set(EXPECTED) == set(SHAPES) - {"mine::own"}
    for name, expected in EXPECTED.items():
        amount, why = work_of(called(name, SHAPES[name]))
        assert amount is not None, (name, why)
        assert (amount.flops, amount.bytes, amount.dtype) == (expected.flops, expected.bytes, expected.dtype), name


def test_arguments_that_do_not_fit_are_a_reason_and_no_zero():
    for name in MODELS:
        amount, why = work_of(OperatorCall(name=name, dims=((),), types=("Scalar",), concrete=("1",)))
        assert amount is None, name
        assert "arguments do not fit the model" in why
        assert work_of(OperatorCall(name=name)) == (None, "the trace has no shapes: profile with record_shapes=True")
        assert category_of(name) != "other", name


@pytest.mark.parametrize("side", [-1, 1 << 63, int("1" * 400), 1.5, None])
def test_a_side_that_no_tensor_has_is_a_reason(side) -> None:
    amount, why = work_of(OperatorCall(name="aten::mm", dims=((2, side), (side, 2)), types=("float", "float")))
    assert amount is None
    assert "arguments do not fit the model" in why


@pytest.mark.parametrize("padding", [1 << 63, int("1" * 400)])
def test_an_argument_that_no_operator_takes_is_a_reason(padding) -> None:
    texts = ("", "", "", "[1, 1]", f"[1, {padding}]", "[1, 1]", "False", "[0, 0]", "1")
    dims = ((8, 16, 32, 32), (32, 16, 3, 3), (32,), *((),) * 6)
    types = (*("float",) * 3, *("ScalarList",) * 3, "Scalar", "ScalarList", "Scalar")
    amount, why = work_of(OperatorCall(name="aten::convolution", dims=dims, types=types, concrete=texts))
    assert amount is None
    assert "arguments do not fit the model" in why


def test_types_without_shapes_are_no_shapes_of_one_element() -> None:
    call = parse_call("aten::mm", (b"", b'["float", "float"]', b"[[64, 1], [256, 1]]", b""))
    assert work_of(call) == (None, "the trace has no shapes: profile with record_shapes=True")


@pytest.mark.parametrize(
    ("name", "types", "shapes", "dtype", "moved"),
    [
        ("aten::div_", ("float", "long int"), ((), ()), "fp32", 4 + 8 + 4),
        ("aten::mul", ("float", "long int"), ((10,), (10,)), "fp32", 10 * (4 + 8 + 4)),
        ("aten::mul", ("long int", "float"), ((10,), ()), "fp32", 10 * (8 + 4) + 4),
        ("aten::mul", ("float", "double"), ((10,), ()), "fp32", 10 * (4 + 4) + 8),
        ("aten::mul", ("long int", "double"), ((10,), ()), "fp32", 10 * (8 + 4) + 8),
        ("aten::mul", ("long int", "double"), ((10,), (10,)), "fp64", 10 * (8 + 8 + 8)),
        ("aten::div", ("long int", "long int"), ((10,), (10,)), "fp32", 10 * (8 + 8 + 4)),
        ("aten::div", ("long int", "long int", ""), ((10,), (10,), ()), "int64", 10 * (8 + 8 + 8)),  # rounding_mode=
        ("aten::div", ("double", "long int"), ((10,), (10,)), "fp64", 10 * (8 + 8 + 8)),
        ("aten::add_", ("c10::BFloat16", "float"), ((10,), (10,)), "fp32", 10 * (2 + 4 + 2)),
        ("aten::add", ("bool", "unsigned char"), ((10,), ()), "uint8", 10 * (1 + 1) + 1),
    ],
)
def test_operands_of_two_types_are_promoted_as_pytorch_does(name, types, shapes, dtype, moved):
    amount, why = work_of(OperatorCall(name=name, dims=shapes, types=types))
    assert (amount.dtype, amount.bytes, why) == (dtype, moved, "")


def test_work_beyond_any_number_is_a_reason() -> None:
    shape = (1 << 62,) * 40
    amount, why = work_of(OperatorCall(name="aten::add", dims=(shape, shape), types=("float", "float")))
    assert amount is None
    assert "arguments do not fit the model" in why


BF16 = "c10::BFloat16"
FLASH = "aten::_flash_attention_forward"
FOREACH = (
    "multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float> >"
)
CAT = "void CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 3, 64, 64>"


def call(name, *arguments, kernel=""):
    """A call of (shape, type) tensors, ``[shapes]`` lists of tensors, and scalars as text."""
    dims, types, concrete = [], [], []
    for argument in arguments:
        tensor, listed = isinstance(argument, tuple), isinstance(argument, list)
        dims.append(argument[0] if tensor else tuple(argument) if listed else ())
        types.append(argument[1] if tensor else "TensorList" if listed else "Scalar" if argument else "")
        concrete.append("" if tensor or listed else argument)
    return OperatorCall(name=name, dims=tuple(dims), types=tuple(types), concrete=tuple(concrete), kernel=kernel)


def packed(tokens, ends, longest, causal="False", lengths=""):
    q = ((tokens, 8, 64), BF16)
    made = call(FLASH, q, q, q, ((ends,), "int"), ((ends,), "int"), str(longest), str(longest), "0.", causal)
    concrete = list(made.concrete)
    concrete[3] = concrete[4] = lengths
    return OperatorCall(name=FLASH, dims=made.dims, types=made.types, concrete=tuple(concrete))


def test_packed_sequences_of_one_length_are_exact():
    amount, _ = work_of(packed(96, 4, 32, "True"))
    whole = work.attention(3, 8, 32, 64, dtype="bf16", causal=True, bottom_right=True)
    assert (amount.flops, amount.bytes, amount.note) == (whole.flops, whole.bytes, "")


def test_packed_sequences_of_unknown_lengths_are_a_stated_bound():
    amount, _ = work_of(packed(96, 4, 60))
    assert amount.flops == 2 * 8 * (96 * 96 // 3) * 128
    assert "a lower bound, at most 1.59 times as much: the lengths of 3 packed sequences" in amount.note


def test_recorded_lengths_are_used():
    amount, _ = work_of(packed(96, 4, 60, lengths="[0, 60, 76, 96]"))
    assert amount.flops == work.packed_attention([60, 16, 20], 8, 64, dtype="bf16").flops


def test_cross_attention_of_unknown_lengths_has_bytes_only():
    q, k = ((10, 8, 64), BF16), ((30, 8, 64), BF16)
    ends = ((4,), "int")
    amount, _ = work_of(
        call("flash_attn::_flash_attn_varlen_forward", q, k, k, ends, ends, "6", "20", "0.", "", "False")
    )
    assert amount.flops is None
    assert amount.bytes == 2 * 64 * 8 * 2 * (10 + 30)
    assert "not observable in a trace" in amount.note


def test_dense_attention_keeps_sequence_first_and_the_mask_s_number():
    q = ((2, 16, 8, 64), BF16)
    plain = [q, q, q, "", "", "", "", "", "0."]
    flash, _ = work_of(call(FLASH, *plain[:8], "True"))
    assert flash.flops == work.attention(2, 8, 16, 64, dtype="bf16", causal=True).flops
    efficient, _ = work_of(call("aten::_efficient_attention_forward", *plain, "1"))
    assert efficient.flops == flash.flops


@pytest.mark.parametrize(
    ("name", "causal"),
    [
        ("aten::_scaled_dot_product_flash_attention_backward", 11),
        ("aten::_scaled_dot_product_flash_attention_for_cpu_backward", 7),
        ("aten::_scaled_dot_product_cudnn_attention_backward", 14),
        ("flash_attn::_flash_attn_backward", 11),
        ("aten::_flash_attention_backward", 11),
    ],
)
def test_gradients_know_where_their_mask_is(name, causal):
    first = (2, 16, 8, 64) if "flash_attn" in name or name.startswith("aten::_flash") else (2, 8, 16, 64)
    tensors = [(first, BF16)] * 6
    rest = [""] * (causal - 6)
    expected = work.attention_backward(2, 8, 16, 64, dtype="bf16", causal=True)
    assert work_of(call(name, *tensors, *rest, "True"))[0].flops == expected.flops
    assert work_of(call(name, *tensors, *rest, "False"))[0].flops > expected.flops


def test_joined_tensors_are_read_and_written_once():
    amount, _ = work_of(call("aten::cat", [(4, 1, 768), (4, 196, 768)], "1", kernel=CAT))
    assert (amount.flops, amount.bytes) == (0, 2 * 2 * 4 * 197 * 768)
    assert amount.note == "element type from the kernel's name: 2 bytes"


def test_a_list_whose_element_type_nobody_says_has_no_work():
    amount, why = work_of(call("aten::cat", [(4, 1), (4, 2)], "1", kernel="Memcpy DtoD"))
    assert amount is None
    assert "records no element type" in why
    assert len(why) <= 100  # longer cells lose their middle


@pytest.mark.parametrize(
    ("name", "lists", "flops", "lanes"),
    [
        ("aten::_foreach_add_", 2, 1, 3),
        ("aten::_foreach_mul", 1, 1, 2),
        ("aten::_foreach_zero_", 1, 0, 1),
        ("aten::_foreach_addcmul_", 3, 3, 4),
        ("aten::_fused_adamw_", 4, 15, 7),
        ("aten::_fused_sgd_", 3, 4, 5),
    ],
)
def test_passes_over_lists(name, lists, flops, lanes):
    shapes = [(128, 128), (128,)]
    count = 128 * 128 + 128
    amount, _ = work_of(call(name, *[shapes] * lists, "-0.001", kernel=FOREACH))
    assert (amount.flops, amount.bytes, amount.dtype) == (flops * count, lanes * count * 4, "fp32")


def test_amsgrad_reads_and_writes_one_list_more():
    amount, _ = work_of(call("aten::_fused_adam_", *[[(64,)]] * 5, [(1,)], kernel=FOREACH))
    assert amount.bytes == 9 * 64 * 4


def test_a_copy_between_lists_has_both_types():
    kernel = "multi_tensor_apply_kernel<TensorListMetadata<2>, CopyFunctor<int, long, 2, 1, 1>, Copy<int, long> >"
    amount, _ = work_of(call("aten::_foreach_copy_", [(32,)], [(32,)], "False", kernel=kernel))
    assert (amount.flops, amount.bytes) == (0, 32 * (4 + 8))


def test_norms_of_lists_write_one_number_a_tensor():
    amount, _ = work_of(call("aten::_foreach_norm", [(32,), (8,)], "2", kernel=FOREACH))
    assert (amount.flops, amount.bytes) == (80, (40 + 2) * 4)


def test_empty_lists_have_no_work():
    assert work_of(call("aten::_foreach_add_", [], "1", kernel=FOREACH))[0] is None


def test_fused_experts_are_a_mixture():
    arguments = [((8, 64), BF16), ((16, 256, 64), BF16), ((16, 64, 128), BF16), ((8, 2), "float")]
    amount, _ = work_of(call("vllm::outplace_fused_experts", *arguments))
    assert amount.flops == work.fused_moe(8, (64, 128), 16, dtype="bf16", top=2).flops
    assert amount.note == "routing taken as uniform"


def test_rotations_turn_queries_and_keys():
    amount, _ = work_of(call("_C::rotary_embedding", ((4,), "long"), ((4, 32), BF16), ((4, 8), BF16)))
    assert (amount.flops, amount.bytes) == (3 * 160, 4 * 160)


def test_messages_are_no_missing_model():
    amount, why = work_of(call("c10d::allreduce_", ((4,), BF16)))
    assert amount is None
    assert "--view ranks" in why
    assert work_of(call("mine::own"))[1] == "no model for this operator"


def test_families_have_names():
    assert category_of("aten::cat") == "concatenation"
    assert category_of("aten::_foreach_add_", "void at::native::multi_tensor_apply") == "multi_tensor_apply"
