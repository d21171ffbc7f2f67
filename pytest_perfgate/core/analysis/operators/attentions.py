"""Attention as PyTorch's kernels and FlashAttention record it."""

from __future__ import annotations

from collections.abc import Callable

from pytest_perfgate.core.analysis.operators import packed
from pytest_perfgate.core.analysis.operators.call import Call
from pytest_perfgate.core.analysis.ops import Work, attention, attention_backward


def heads_first(call: Call, at: int = 0, causal: int = 4) -> tuple[tuple[int, int, int, int], dict[str, int]]:
    """Q, K, V as (batch, heads, sequence, dim)."""
    (batch, heads, queries, dim), k, v = call.shape(at), call.shape(at + 1), call.shape(at + 2)
    options = {"keys": k[2], "kv_heads": k[1], "value_dim": v[3], "causal": call.flag(causal)}
    return (batch, heads, queries, dim), options


def flash(call: Call) -> Work:
    shape, options = heads_first(call, causal=4)
    return attention(*shape, dtype=call.dtype(0), **options)  # type: ignore[arg-type]


def efficient(call: Call) -> Work:
    shape, options = heads_first(call, causal=6)
    return attention(*shape, dtype=call.dtype(0), **options)  # type: ignore[arg-type]


def composite(call: Call) -> Work:
    shape, options = heads_first(call, causal=5)
    return attention(*shape, dtype=call.dtype(0), **options)  # type: ignore[arg-type]


def flash_function(call: Call) -> Work:
    q, k, v = call.shape(0), call.shape(1), call.shape(2)
    batch, queries, heads, dim = q
    causal = any(call.flag(at) for at in (5, 6))
    options = {"keys": k[1], "kv_heads": k[2], "value_dim": v[3], "causal": causal, "bottom_right": True}
    return attention(batch, heads, queries, dim, dtype=call.dtype(0), **options)  # type: ignore[arg-type]


def flash_function_backward(call: Call) -> Work:
    """Gradient, Q, K, V, output, statistics, the three results, dropout, scale, causal."""
    (batch, queries, heads, dim), k, v = call.shape(1), call.shape(2), call.shape(3)
    options = {"keys": k[1], "kv_heads": k[2], "value_dim": v[3], "causal": call.flag(11), "bottom_right": True}
    return attention_backward(batch, heads, queries, dim, dtype=call.dtype(1), **options)  # type: ignore[arg-type]


def gradient(causal: int) -> Callable[[Call], Work]:
    """The model of a backward operator that keeps its causal flag there."""

    def counted(call: Call) -> Work:
        shape, options = heads_first(call, at=1, causal=causal)
        return attention_backward(*shape, dtype=call.dtype(1), **options)  # type: ignore[arg-type]

    return counted


FORWARD = {
    "aten::_scaled_dot_product_flash_attention": flash,
    "aten::_scaled_dot_product_flash_attention_for_cpu": flash,
    "aten::_scaled_dot_product_efficient_attention": efficient,
    "aten::_scaled_dot_product_cudnn_attention": efficient,
    "aten::scaled_dot_product_attention": composite,
    "FlashAttnFunc": flash_function,
    "flash_attn::_flash_attn_forward": flash_function,
    **dict.fromkeys(packed.FORWARD, packed.forward),
}
_CAUSAL_AT = {"flash_attention": 11, "flash_attention_for_cpu": 7, "efficient_attention": 11, "cudnn_attention": 14}
BACKWARD = {
    **{f"aten::_scaled_dot_product_{name}_backward": gradient(at) for name, at in _CAUSAL_AT.items()},
    "flash_attn::_flash_attn_backward": flash_function_backward,
    **dict.fromkeys(packed.BACKWARD, packed.backward),
}
