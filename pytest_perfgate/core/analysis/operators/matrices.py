"""Matrix products as PyTorch and its extensions record them."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from pytest_perfgate.core.analysis.operators.call import Call
from pytest_perfgate.core.analysis.ops import Work, bmm, fused_moe, gemm, grouped_gemm, mixed_gemm


def mm(call: Call) -> Work:
    (m, k), n = call.shape(0), call.shape(1)[1]
    return gemm(m, n, k, dtype=call.dtype(0))


def addmm(call: Call) -> Work:
    (m, k), n = call.shape(1), call.shape(2)[1]
    sizes = (1, m, n, k)
    return mixed_gemm(sizes, (call.type(1), call.type(2), call.type(1)), bias=call.type(0))


def batched(call: Call) -> Work:
    (batch, m, k), n = call.shape(0), call.shape(1)[2]
    return bmm(batch, m, n, k, dtype=call.dtype(0))


def baddbmm(call: Call) -> Work:
    (batch, m, k), n = call.shape(1), call.shape(2)[2]
    return bmm(batch, m, n, k, dtype=call.dtype(1), bias=True)


def linear(call: Call) -> Work:
    x, weight = call.shape(0), call.shape(1)
    out, k = weight if len(weight) == 2 else (1, weight[0])
    sizes = (1, prod(x[:-1]), out, k)
    bias = call.type(2) if call.tensor(2) else None
    return mixed_gemm(sizes, (call.type(0), call.type(1), call.type(0)), bias=bias)


def scaled_mm(call: Call) -> Work:
    """The result is bf16 unless both operands are wider: fp8 products are never stored as fp8 by default."""
    (m, k), n = call.shape(0), call.shape(1)[1]
    out = "bf16" if call.dtype(0) in {"fp8", "fp4", "int8"} else call.type(0)
    bias = next((call.type(at) for at in (2, 4) if call.tensor(at) and call.shape(at) == (n,) and n > 1), None)
    return mixed_gemm((1, m, n, k), (call.type(0), call.type(1), out), bias=bias)


def mv(call: Call) -> Work:
    m, k = call.shape(0)
    return gemm(m, 1, k, dtype=call.dtype(0))


def dot(call: Call) -> Work:
    return gemm(1, 1, call.shape(0)[0], dtype=call.dtype(0))


def grouped(call: Call) -> Work:
    rows, k = call.shape(0)[-2:]
    groups, first, second = call.shape(1)
    n = second if first == k else first
    return grouped_gemm(rows, n, k, groups, dtype=call.dtype(0))


def experts(call: Call) -> Work:
    """Tokens, both weights of every expert, the weights of the experts that each token goes to."""
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
CATEGORY = "GEMM"
