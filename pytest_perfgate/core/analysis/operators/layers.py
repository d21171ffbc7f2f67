"""Matrix products, convolutions, norms as PyTorch records them."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.work import bmm, gemm, mixed_gemm
from pytest_perfgate.core.analysis.work_layers import (
    conv,
    conv_backward,
    fused_moe,
    grouped_gemm,
    norm,
    norm_backward,
    rms_norm,
)

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.operators import OperatorCall
    from pytest_perfgate.model.values import Work


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
    return conv(
        call.shape(0),
        call.shape(1),
        dtype=call.dtype(0),
        stride=call.numbers(3) or 1,
        padding=call.numbers(4) or 0,
        dilation=call.numbers(5) or 1,
        transposed=call.flag(6),
        output_padding=call.numbers(7) or 0,
        groups=call.number(8),
        bias=call.tensor(2),
    )


def cudnn(call: OperatorCall) -> Work:
    return _of_library(call, 2)


def miopen(call: OperatorCall) -> Work:
    return _of_library(call, 3, bias=call.tensor(2))


def _of_library(call: OperatorCall, at: int, *, bias: bool = False) -> Work:
    """Return the work of a library's own convolution, whose options begin at this argument."""
    return conv(
        call.shape(0),
        call.shape(1),
        dtype=call.dtype(0),
        padding=call.numbers(at) or 0,
        stride=call.numbers(at + 1) or 1,
        dilation=call.numbers(at + 2) or 1,
        groups=call.number(at + 3),
        bias=bias,
    )


def backward(call: OperatorCall) -> Work:
    mask = call.flags(10)
    if len(mask) != 3:
        raise ValueError("the output mask was not recorded")
    return conv_backward(
        call.shape(1),
        call.shape(2),
        dtype=call.dtype(1),
        mask=(mask[0], mask[1], mask[2]),
        stride=call.numbers(4) or 1,
        padding=call.numbers(5) or 0,
        dilation=call.numbers(6) or 1,
        transposed=call.flag(7),
        output_padding=call.numbers(8) or 0,
        groups=call.number(9),
    )


FORWARD = {
    "aten::convolution": convolution,
    "aten::_convolution": convolution,
    "aten::cudnn_convolution": cudnn,
    "aten::miopen_convolution": miopen,
}

BACKWARD = {"aten::convolution_backward": backward}


def batch(call: OperatorCall) -> Work:
    shape = call.shape(0)
    return norm(shape, shape[1], dtype=call.dtype(0), affine=call.tensor(1), training=call.flag(5))


def layer(call: OperatorCall) -> Work:
    """Statistics are always computed, since a row is normalised by its own."""
    shape, inner = call.shape(0), prod(call.numbers(1))
    return norm(shape, inner, dtype=call.dtype(0), affine=call.tensor(2), training=True)


def group(call: OperatorCall) -> Work:
    shape = call.shape(0)
    return norm(shape, shape[1], dtype=call.dtype(0), affine=call.tensor(2), training=True)


def native_group(call: OperatorCall) -> Work:
    shape = call.shape(0)
    return norm(shape, shape[1], dtype=call.dtype(0), affine=call.tensor(1), training=True)


def root_mean_square(call: OperatorCall) -> Work:
    return rms_norm(call.shape(0), prod(call.numbers(1)), dtype=call.dtype(0), affine=call.tensor(2))


def batch_backward(call: OperatorCall) -> Work:
    shape = call.shape(0)
    return norm_backward(shape, shape[1], dtype=call.dtype(0), mask=_mask(call, 9), affine=call.tensor(2))


def miopen_backward(call: OperatorCall) -> Work:
    shape = call.shape(0)
    return norm_backward(shape, shape[1], dtype=call.dtype(0), affine=call.tensor(2))


def layer_backward(call: OperatorCall) -> Work:
    shape, inner = call.shape(0), prod(call.numbers(2))
    return norm_backward(shape, inner, dtype=call.dtype(0), mask=_mask(call, 7), affine=call.tensor(5))


def group_backward(call: OperatorCall) -> Work:
    shape = call.shape(0)
    return norm_backward(shape, shape[1], dtype=call.dtype(0), mask=_mask(call, 9), affine=call.tensor(4))


def rms_backward(call: OperatorCall) -> Work:
    shape, inner = call.shape(0), prod(call.numbers(2))
    mask = call.flags(5)
    whole = (mask[0], mask[1], False) if len(mask) == 2 else (True, True, False)
    return norm_backward(shape, inner, dtype=call.dtype(0), mask=whole, affine=call.tensor(4))


def _mask(call: OperatorCall, at: int) -> tuple[bool, bool, bool]:
    flags = call.flags(at)
    if len(flags) != 3:
        raise ValueError("the output mask was not recorded")
    return flags[0], flags[1], flags[2]


NORM_FORWARD = {
    **{f"aten::{name}_norm": batch for name in ("batch", "native_batch", "cudnn_batch", "miopen_batch", "instance")},
    "aten::layer_norm": layer,
    "aten::native_layer_norm": layer,
    "aten::group_norm": group,
    "aten::native_group_norm": native_group,
    "aten::_fused_rms_norm": root_mean_square,
    "aten::rms_norm": root_mean_square,
}

NORM_BACKWARD = {
    "aten::native_batch_norm_backward": batch_backward,
    "aten::miopen_batch_norm_backward": miopen_backward,
    "aten::cudnn_batch_norm_backward": miopen_backward,
    "aten::native_layer_norm_backward": layer_backward,
    "aten::native_group_norm_backward": group_backward,
    "aten::_fused_rms_norm_backward": rms_backward,
}
