"""Recorded calls of operators into work: packed attention, lists of tensors, experts, and what has no model."""

from __future__ import annotations

import pytest

from pytest_perfgate import work
from pytest_perfgate.core.analysis.operators import category_of, work_of
from pytest_perfgate.core.analysis.operators.call import Call

BF16 = "c10::BFloat16"
FLASH = "aten::_flash_attention_forward"
FOREACH = (
    "multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float> >"
)
CAT = "void CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 3, 64, 64>"


def call(name, *arguments, kernel=""):
    """A call of (shape, type) tensors, ``[shapes]`` lists of tensors, and scalars as text."""
    dims, types, concrete = [], [], []
    for given in arguments:
        tensor, listed = isinstance(given, tuple), isinstance(given, list)
        dims.append(given[0] if tensor else tuple(given) if listed else ())
        types.append(given[1] if tensor else "TensorList" if listed else "Scalar" if given else "")
        concrete.append("" if tensor or listed else given)
    return Call(name=name, dims=tuple(dims), types=tuple(types), concrete=tuple(concrete), kernel=kernel)


def packed(tokens, ends, longest, causal="False", lengths=""):
    q = ((tokens, 8, 64), BF16)
    made = call(FLASH, q, q, q, ((ends,), "int"), ((ends,), "int"), str(longest), str(longest), "0.", causal)
    concrete = list(made.concrete)
    concrete[3] = concrete[4] = lengths
    return Call(name=FLASH, dims=made.dims, types=made.types, concrete=tuple(concrete))


def test_packed_sequences_of_one_length_are_exact():
    found, _ = work_of(packed(96, 4, 32, "True"))
    whole = work.attention(3, 8, 32, 64, dtype="bf16", causal=True, bottom_right=True)
    assert (found.flops, found.bytes, found.note) == (whole.flops, whole.bytes, "")


def test_packed_sequences_of_unknown_lengths_are_a_stated_bound():
    found, _ = work_of(packed(96, 4, 60))
    assert found.flops == 2 * 8 * (96 * 96 // 3) * 128
    assert "a lower bound, at most 1.59 times as much: the lengths of 3 packed sequences" in found.note


def test_recorded_lengths_are_used():
    found, _ = work_of(packed(96, 4, 60, lengths="[0, 60, 76, 96]"))
    assert found.flops == work.packed_attention([60, 16, 20], 8, 64, dtype="bf16").flops


def test_cross_attention_of_unknown_lengths_has_bytes_only():
    q, k = ((10, 8, 64), BF16), ((30, 8, 64), BF16)
    ends = ((4,), "int")
    found, _ = work_of(
        call("flash_attn::_flash_attn_varlen_forward", q, k, k, ends, ends, "6", "20", "0.", "", "False")
    )
    assert found.flops is None
    assert found.bytes == 2 * 64 * 8 * 2 * (10 + 30)
    assert "not observable in a trace" in found.note


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
    found, _ = work_of(call("aten::cat", [(4, 1, 768), (4, 196, 768)], "1", kernel=CAT))
    assert (found.flops, found.bytes) == (0, 2 * 2 * 4 * 197 * 768)
    assert found.note == "element type from the kernel's name: 2 bytes"


def test_a_list_whose_element_type_nobody_says_has_no_work():
    found, why = work_of(call("aten::cat", [(4, 1), (4, 2)], "1", kernel="Memcpy DtoD"))
    assert found is None
    assert "element type is not recorded" in why


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
    found, _ = work_of(call(name, *[shapes] * lists, "-0.001", kernel=FOREACH))
    assert (found.flops, found.bytes, found.dtype) == (flops * count, lanes * count * 4, "fp32")


def test_amsgrad_reads_and_writes_one_list_more():
    found, _ = work_of(call("aten::_fused_adam_", *[[(64,)]] * 5, [(1,)], kernel=FOREACH))
    assert found.bytes == 9 * 64 * 4


def test_a_copy_between_lists_has_both_types():
    kernel = "multi_tensor_apply_kernel<TensorListMetadata<2>, CopyFunctor<int, long, 2, 1, 1>, Copy<int, long> >"
    found, _ = work_of(call("aten::_foreach_copy_", [(32,)], [(32,)], "False", kernel=kernel))
    assert (found.flops, found.bytes) == (0, 32 * (4 + 8))


def test_norms_of_lists_write_one_number_a_tensor():
    found, _ = work_of(call("aten::_foreach_norm", [(32,), (8,)], "2", kernel=FOREACH))
    assert (found.flops, found.bytes) == (80, (40 + 2) * 4)


def test_empty_lists_have_no_work():
    assert work_of(call("aten::_foreach_add_", [], "1", kernel=FOREACH))[0] is None


def test_fused_experts_are_a_mixture():
    arguments = [((8, 64), BF16), ((16, 256, 64), BF16), ((16, 64, 128), BF16), ((8, 2), "float")]
    found, _ = work_of(call("vllm::outplace_fused_experts", *arguments))
    assert found.flops == work.fused_moe(8, (64, 128), 16, dtype="bf16", top=2).flops
    assert found.note == "routing taken as uniform"


def test_rotations_turn_queries_and_keys():
    found, _ = work_of(call("_C::rotary_embedding", ((4,), "long"), ((4, 32), BF16), ((4, 8), BF16)))
    assert (found.flops, found.bytes) == (3 * 160, 4 * 160)


def test_messages_are_no_missing_model():
    found, why = work_of(call("c10d::allreduce_", ((4,), BF16)))
    assert found is None
    assert "--view ranks" in why
    assert work_of(call("mine::own"))[1] == "no model for this operator"


def test_families_have_names():
    assert category_of("aten::cat") == "concatenation"
    assert category_of("aten::_foreach_add_", "void at::native::multi_tensor_apply") == "multi_tensor_apply"
