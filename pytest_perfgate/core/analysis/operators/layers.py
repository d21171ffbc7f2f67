"""Layers as PyTorch and FlashAttention record them: matrix products, convolutions, norms, attention."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.work import bmm, gemm, mixed_gemm
from pytest_perfgate.core.analysis.work_layers import (
    Heads,
    Packing,
    area_bounds,
    attention,
    attention_backward,
    conv,
    conv_backward,
    fused_moe,
    grouped_gemm,
    norm,
    norm_backward,
    packed_attention,
    packed_work,
    rms_norm,
)
from pytest_perfgate.model.values import Work, value

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.operators import OperatorCall
    from pytest_perfgate.core.analysis.work_layers import ConvolutionOptions


def mm(call: OperatorCall) -> Work:
    (m, k), n = call.shape(0), call.shape(1)[1]
    return gemm(m, n, k, dtype=call.dtype(0))


def addmm(call: OperatorCall) -> Work:
    (m, k), n = call.shape(1), call.shape(2)[1]
    sizes = (1, m, n, k)
    return mixed_gemm(sizes, (call.type(1), call.type(2), call.type(1)), bias=call.type(0))


def batched(call: OperatorCall) -> Work:
    (batch, m, k), n = call.shape(0), call.shape(1)[2]
    return bmm(batch, m, n, k, dtype=call.dtype(0))


def baddbmm(call: OperatorCall) -> Work:
    (batch, m, k), n = call.shape(1), call.shape(2)[2]
    return bmm(batch, m, n, k, dtype=call.dtype(1), bias=True)


def linear(call: OperatorCall) -> Work:
    x, weight = call.shape(0), call.shape(1)
    out, k = weight if len(weight) == 2 else (1, weight[0])
    sizes = (1, prod(x[:-1]), out, k)
    bias = call.type(2) if call.tensor(2) else None
    return mixed_gemm(sizes, (call.type(0), call.type(1), call.type(0)), bias=bias)


def scaled_mm(call: OperatorCall) -> Work:
    """The result is bf16 unless both operands are wider: fp8 products are never stored as fp8 by default."""
    (m, k), n = call.shape(0), call.shape(1)[1]
    out = "bf16" if call.dtype(0) in {"fp8", "fp4", "int8"} else call.type(0)
    bias = next((call.type(at) for at in (2, 4) if call.tensor(at) and call.shape(at) == (n,) and n > 1), None)
    return mixed_gemm((1, m, n, k), (call.type(0), call.type(1), out), bias=bias)


def mv(call: OperatorCall) -> Work:
    m, k = call.shape(0)
    return gemm(m, 1, k, dtype=call.dtype(0))


def dot(call: OperatorCall) -> Work:
    return gemm(1, 1, call.shape(0)[0], dtype=call.dtype(0))


def grouped(call: OperatorCall) -> Work:
    rows, k = call.shape(0)[-2:]
    groups, first, second = call.shape(1)
    n = second if first == k else first
    return grouped_gemm(rows, n, k, groups, dtype=call.dtype(0))


def experts(call: OperatorCall) -> Work:
    """Read the tokens, both weights of every expert, the weights of each token's experts."""
    (tokens, model), (count, first, _), top = call.shape(0), call.shape(1), call.shape(3)[1]
    inner = call.shape(2)[2]
    work = fused_moe(tokens, (model, inner), count, dtype=call.dtype(1), top=top, gated=first == 2 * inner)
    return replace(work, note="routing taken as uniform")


EXPERTS = dict.fromkeys(("vllm::inplace_fused_experts", "vllm::outplace_fused_experts"), experts)

MODELS = {
    "aten::mm": mm,
    "aten::addmm": addmm,
    "aten::bmm": batched,
    "aten::baddbmm": baddbmm,
    "aten::linear": linear,
    "aten::_scaled_mm": scaled_mm,
    "aten::mv": mv,
    "aten::dot": dot,
    "aten::_grouped_mm": grouped,
    "primus_turbo::grouped_gemm": grouped,
}


def convolution(call: OperatorCall) -> Work:
    return conv(call.shape(0), call.shape(1), dtype=call.dtype(0), **_options(call, 3, bias=call.tensor(2)))


def convolution_backward(call: OperatorCall) -> Work:
    mask = _mask(call, 10)
    return conv_backward(call.shape(1), call.shape(2), dtype=call.dtype(1), mask=mask, **_options(call, 4))


def _options(call: OperatorCall, at: int, *, bias: bool = False) -> ConvolutionOptions:
    """Return the options of a convolution, which begin at this argument."""
    return {
        "stride": call.numbers(at) or 1,
        "padding": call.numbers(at + 1) or 0,
        "dilation": call.numbers(at + 2) or 1,
        "transposed": call.flag(at + 3),
        "output_padding": call.numbers(at + 4) or 0,
        "groups": call.number(at + 5),
        "bias": bias,
    }


def library_convolution(call: OperatorCall, at: int) -> Work:
    """Return the work of a library's own convolution, whose options begin at this argument."""
    return conv(
        call.shape(0),
        call.shape(1),
        dtype=call.dtype(0),
        padding=call.numbers(at) or 0,
        stride=call.numbers(at + 1) or 1,
        dilation=call.numbers(at + 2) or 1,
        groups=call.number(at + 3),
        bias=at > 2 and call.tensor(2),
    )


CONVOLUTIONS = {
    "aten::convolution": convolution,
    "aten::_convolution": convolution,
    "aten::cudnn_convolution": partial(library_convolution, at=2),
    "aten::miopen_convolution": partial(library_convolution, at=3),
}

CONVOLUTIONS_BACKWARD = {"aten::convolution_backward": convolution_backward}


def normalisation(call: OperatorCall, *, affine: int, sizes: int = 0, training: int = 0) -> Work:
    """Return the work of a norm over channels, or over the list ``sizes``; the numbers are positions of arguments."""
    # Only a batch norm has the flag ``training``: others always compute the statistics.
    shape = call.shape(0)
    inner = prod(call.numbers(sizes)) if sizes else shape[1]
    gathers = call.flag(training) if training else True
    return norm(shape, inner, dtype=call.dtype(0), affine=call.tensor(affine), training=gathers)


def root_mean_square(call: OperatorCall) -> Work:
    return rms_norm(call.shape(0), prod(call.numbers(1)), dtype=call.dtype(0), affine=call.tensor(2))


def normalisation_backward(call: OperatorCall, *, affine: int, sizes: int = 0, mask: int = 0) -> Work:
    """Return the work of its gradients; without the position of a mask, all three are computed."""
    shape = call.shape(0)
    inner = prod(call.numbers(sizes)) if sizes else shape[1]
    computed = _mask(call, mask) if mask else (True, True, True)
    return norm_backward(shape, inner, dtype=call.dtype(0), mask=computed, affine=call.tensor(affine))


def root_mean_square_backward(call: OperatorCall) -> Work:
    shape, inner = call.shape(0), prod(call.numbers(2))
    mask = call.flags(5)
    whole = (mask[0], mask[1], False) if len(mask) == 2 else (True, True, False)
    return norm_backward(shape, inner, dtype=call.dtype(0), mask=whole, affine=call.tensor(4))


def _mask(call: OperatorCall, at: int) -> tuple[bool, bool, bool]:
    flags = call.flags(at)
    if len(flags) != 3:
        raise ValueError("the output mask was not recorded")
    return flags[0], flags[1], flags[2]


_BATCH_NORMS = ("batch_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "instance_norm")

NORMS = {
    **{f"aten::{name}": partial(normalisation, affine=1, training=5) for name in _BATCH_NORMS},
    "aten::layer_norm": partial(normalisation, affine=2, sizes=1),
    "aten::native_layer_norm": partial(normalisation, affine=2, sizes=1),
    "aten::group_norm": partial(normalisation, affine=2),
    "aten::native_group_norm": partial(normalisation, affine=1),
    "aten::_fused_rms_norm": root_mean_square,
    "aten::rms_norm": root_mean_square,
}

NORMS_BACKWARD = {
    "aten::native_batch_norm_backward": partial(normalisation_backward, affine=2, mask=9),
    "aten::miopen_batch_norm_backward": partial(normalisation_backward, affine=2),
    "aten::cudnn_batch_norm_backward": partial(normalisation_backward, affine=2),
    "aten::native_layer_norm_backward": partial(normalisation_backward, affine=5, sizes=2, mask=7),
    "aten::native_group_norm_backward": partial(normalisation_backward, affine=4, mask=9),
    "aten::_fused_rms_norm_backward": root_mean_square_backward,
}


def heads_first(call: OperatorCall, causal: int, at: int = 0) -> Work:
    """Read Q, K, V as (batch, heads, sequence, dim), in a backward operator after the gradient."""
    (batch, heads, queries, dim), k, v = call.shape(at), call.shape(at + 1), call.shape(at + 2)
    count = attention_backward if at else attention
    return count(
        batch, heads, queries, dim, dtype=call.dtype(at), keys=k[2], kv_heads=k[1], value_dim=v[3],
        causal=call.flag(causal),
    )  # fmt: skip


def _sequence_first(call: OperatorCall, at: int, *, causal: bool, bottom_right: bool = True) -> Work:
    """Read Q, K, V as (batch, sequence, heads, dim), in a backward operator after the gradient."""
    (batch, queries, heads, dim), k, v = call.shape(at), call.shape(at + 1), call.shape(at + 2)
    count = attention_backward if at else attention
    return count(
        batch, heads, queries, dim, dtype=call.dtype(at), keys=k[1], kv_heads=k[2], value_dim=v[3],
        causal=causal, bottom_right=bottom_right,
    )  # fmt: skip


def flash_function(call: OperatorCall) -> Work:
    return _sequence_first(call, 0, causal=call.flag(5) or call.flag(6))


def flash_function_backward(call: OperatorCall) -> Work:
    """Read gradient, Q, K, V, output, statistics, the three results, dropout, scale, causal."""
    return _sequence_first(call, 1, causal=call.flag(11))


@value
class Layout:
    """The positions of an operator's arguments; tensors are sequence first, heads second to last."""

    query: int
    """In a backward operator after the gradient."""
    lengths: int
    """Running sums of the queries' lengths, followed by the keys', then the longest of both."""
    mask: int
    numbered: bool = False
    """Whether the mask is a number: 1 from the top left, 2 from the bottom right."""

    def causal(self, call: OperatorCall) -> bool:
        return call.text(self.mask) in {"1", "2"} if self.numbered else call.flag(self.mask)

    def aligned(self, call: OperatorCall) -> bool:
        """Return whether the causal diagonal ends at the last key."""
        return not (self.numbered and call.text(self.mask) == "1")


_PACKED_FORWARD = {
    "aten::_flash_attention_forward": Layout(query=0, lengths=3, mask=8),
    "aten::_efficient_attention_forward": Layout(query=0, lengths=4, mask=9, numbered=True),
    "flash_attn::_flash_attn_varlen_forward": Layout(query=0, lengths=3, mask=9),
    "FlashAttnVarlenFunc": Layout(query=0, lengths=3, mask=9),
}

_PACKED_BACKWARD = {
    "aten::_flash_attention_backward": Layout(query=1, lengths=6, mask=11),
    "aten::_efficient_attention_backward": Layout(query=1, lengths=6, mask=14, numbered=True),
    "flash_attn::_flash_attn_varlen_backward": Layout(query=1, lengths=9, mask=15),
}

_PACKED = {**_PACKED_FORWARD, **_PACKED_BACKWARD}


def packed(call: OperatorCall) -> Work:
    """Return the work of an operator whose sequences may be of several lengths, one behind the other."""
    layout = _PACKED[call.name]
    if call.tensor(layout.lengths):
        return _of_lengths(call, layout)
    return _sequence_first(call, layout.query, causal=layout.causal(call), bottom_right=layout.aligned(call))


ATTENTION = {
    "aten::_scaled_dot_product_flash_attention": partial(heads_first, causal=4),
    "aten::_scaled_dot_product_flash_attention_for_cpu": partial(heads_first, causal=4),
    "aten::_scaled_dot_product_efficient_attention": partial(heads_first, causal=6),
    "aten::_scaled_dot_product_cudnn_attention": partial(heads_first, causal=6),
    "aten::scaled_dot_product_attention": partial(heads_first, causal=5),
    "FlashAttnFunc": flash_function,
    "flash_attn::_flash_attn_forward": flash_function,
    **dict.fromkeys(_PACKED_FORWARD, packed),
}

ATTENTION_BACKWARD = {
    "aten::_scaled_dot_product_flash_attention_backward": partial(heads_first, causal=11, at=1),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": partial(heads_first, causal=7, at=1),
    "aten::_scaled_dot_product_efficient_attention_backward": partial(heads_first, causal=11, at=1),
    "aten::_scaled_dot_product_cudnn_attention_backward": partial(heads_first, causal=14, at=1),
    "flash_attn::_flash_attn_backward": flash_function_backward,
    **dict.fromkeys(_PACKED_BACKWARD, packed),
}


def _of_lengths(call: OperatorCall, layout: Layout) -> Work:
    q, k, v = (call.shape(layout.query + at)[-3:] for at in range(3))
    sizes = Heads(query=q[1], key=k[1], dim=q[2], value_dim=v[2])
    dtype, causal, backward = call.dtype(layout.query), layout.causal(call), layout.query > 0
    ends, key_ends = call.numbers(layout.lengths), call.numbers(layout.lengths + 1)
    if len(ends) > 1 and len(key_ends) == len(ends):
        return packed_attention(
            _lengths(ends), sizes.query, sizes.dim, dtype=dtype, keys=_lengths(key_ends), kv_heads=sizes.key,
            value_dim=sizes.value_dim, causal=causal, bottom_right=layout.aligned(call), backward=backward,
        )  # fmt: skip
    packing = Packing(
        queries=q[0],
        keys=k[0],
        sequences=max(call.shape(layout.lengths)[0] - 1, 1),
        longest_query=_longest(call, layout.lengths + 2, q[0]),
        longest_key=_longest(call, layout.lengths + 3, k[0]),
    )
    least, most = area_bounds(packing, causal=causal)
    if not most:
        raise ValueError("the packed sequences are empty")
    work = packed_work(least or None, (packing.queries, packing.keys), sizes, dtype, backward=backward)
    return replace(work, note=_note(packing, least, most))


def _lengths(ends: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(after - before for before, after in pairwise(ends))


def _longest(call: OperatorCall, at: int, total: int) -> int:
    """Return the recorded longest, at most the total."""
    numbers = call.numbers(at)
    return min(numbers[0], total) if numbers and numbers[0] > 0 else total


def _note(packing: Packing, least: int, most: int) -> str:
    if least == most:
        return ""
    if not least:
        return "operations not observable in a trace: the lengths of packed sequences are not recorded"
    return (
        f"a lower bound, at most {most / least:.3g} times as much: "
        f"the lengths of {packing.sequences:,} packed sequences are not recorded"
    )


def packed_ends(call: OperatorCall) -> dict[int, tuple[int, ...]]:
    """Return running sums that replace unrecorded lengths of packed sequences, as equal as possible."""
    layout = _PACKED.get(call.name)
    if layout is None or not (call.tensor(layout.lengths) and call.tensor(layout.lengths + 1)):
        return {}
    ends = {}
    for at, tensor in ((layout.lengths, layout.query), (layout.lengths + 1, layout.query + 1)):
        total, count = call.shape(tensor)[-3], max(call.shape(at)[0] - 1, 1)
        ends[at] = tuple(total * number // count for number in range(count + 1))
    return ends
