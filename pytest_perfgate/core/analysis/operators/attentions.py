"""Attention as PyTorch's kernels and FlashAttention record it."""

from __future__ import annotations

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


def flash_leaf(call: Call) -> Work:
    """Sequence before heads; lengths of packed sequences are not in a trace, so those say nothing here."""
    q, k, v = call.shape(0), call.shape(1), call.shape(2)
    if len(q) != 4:
        raise ValueError("packed sequences: their lengths are not recorded")
    batch, queries, heads, dim = q
    return attention(
        batch,
        heads,
        queries,
        dim,
        dtype=call.dtype(0),
        keys=k[1],
        kv_heads=k[2],
        value_dim=v[3],
        causal=call.flag(8),
        bottom_right=True,
    )


def flash_function(call: Call) -> Work:
    q, k, v = call.shape(0), call.shape(1), call.shape(2)
    batch, queries, heads, dim = q
    causal = any(call.flag(at) for at in (5, 6))
    options = {"keys": k[1], "kv_heads": k[2], "value_dim": v[3], "causal": causal, "bottom_right": True}
    return attention(batch, heads, queries, dim, dtype=call.dtype(0), **options)  # type: ignore[arg-type]


def flash_backward(call: Call) -> Work:
    shape, options = heads_first(call, at=1, causal=11)
    return attention_backward(*shape, dtype=call.dtype(1), **options)  # type: ignore[arg-type]


def efficient_backward(call: Call) -> Work:
    shape, options = heads_first(call, at=1, causal=11)
    return attention_backward(*shape, dtype=call.dtype(1), **options)  # type: ignore[arg-type]


FORWARD = {
    "aten::_scaled_dot_product_flash_attention": flash,
    "aten::_scaled_dot_product_flash_attention_for_cpu": flash,
    "aten::_scaled_dot_product_efficient_attention": efficient,
    "aten::_scaled_dot_product_cudnn_attention": efficient,
    "aten::scaled_dot_product_attention": composite,
    "aten::_flash_attention_forward": flash_leaf,
    "FlashAttnFunc": flash_function,
    "flash_attn::_flash_attn_forward": flash_function,
}
BACKWARD = {
    "aten::_scaled_dot_product_flash_attention_backward": flash_backward,
    "aten::_scaled_dot_product_efficient_attention_backward": efficient_backward,
}
