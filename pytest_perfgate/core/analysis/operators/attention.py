"""Attention as PyTorch and FlashAttention record it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.work_layers import (
    Heads,
    Packing,
    area_bounds,
    attention,
    attention_backward,
    packed_attention,
    packed_work,
)
from pytest_perfgate.model.values import Work, value

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.operators import OperatorCall


def heads_first(call: OperatorCall, at: int = 0, causal: int = 4) -> tuple[tuple[int, int, int, int], dict[str, int]]:
    """Read Q, K, V as (batch, heads, sequence, dim)."""
    (batch, heads, queries, dim), k, v = call.shape(at), call.shape(at + 1), call.shape(at + 2)
    options = {"keys": k[2], "kv_heads": k[1], "value_dim": v[3], "causal": call.flag(causal)}
    return (batch, heads, queries, dim), options


def flash(call: OperatorCall) -> Work:
    shape, options = heads_first(call, causal=4)
    return attention(*shape, dtype=call.dtype(0), **options)  # type: ignore[arg-type]


def efficient(call: OperatorCall) -> Work:
    shape, options = heads_first(call, causal=6)
    return attention(*shape, dtype=call.dtype(0), **options)  # type: ignore[arg-type]


def composite(call: OperatorCall) -> Work:
    shape, options = heads_first(call, causal=5)
    return attention(*shape, dtype=call.dtype(0), **options)  # type: ignore[arg-type]


def flash_function(call: OperatorCall) -> Work:
    q, k, v = call.shape(0), call.shape(1), call.shape(2)
    batch, queries, heads, dim = q
    causal = any(call.flag(at) for at in (5, 6))
    options = {"keys": k[1], "kv_heads": k[2], "value_dim": v[3], "causal": causal, "bottom_right": True}
    return attention(batch, heads, queries, dim, dtype=call.dtype(0), **options)  # type: ignore[arg-type]


def flash_function_backward(call: OperatorCall) -> Work:
    """Read gradient, Q, K, V, output, statistics, the three results, dropout, scale, causal."""
    (batch, queries, heads, dim), k, v = call.shape(1), call.shape(2), call.shape(3)
    options = {"keys": k[1], "kv_heads": k[2], "value_dim": v[3], "causal": call.flag(11), "bottom_right": True}
    return attention_backward(batch, heads, queries, dim, dtype=call.dtype(1), **options)  # type: ignore[arg-type]


def gradient(causal: int) -> Callable[[OperatorCall], Work]:
    """Return the model of a backward operator with its causal flag at this position."""

    def counted(call: OperatorCall) -> Work:
        shape, options = heads_first(call, at=1, causal=causal)
        return attention_backward(*shape, dtype=call.dtype(1), **options)  # type: ignore[arg-type]

    return counted


@value
class Layout:
    """The positions of an operator's arguments; tensors are sequence first, heads second to last."""

    query: int
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


PACKED_FORWARD = {
    "aten::_flash_attention_forward": Layout(query=0, lengths=3, mask=8),
    "aten::_efficient_attention_forward": Layout(query=0, lengths=4, mask=9, numbered=True),
    "flash_attn::_flash_attn_varlen_forward": Layout(query=0, lengths=3, mask=9),
    "FlashAttnVarlenFunc": Layout(query=0, lengths=3, mask=9),
}


def forward(call: OperatorCall) -> Work:
    return _counted(call, PACKED_FORWARD[call.name], backward=False)


FORWARD = {
    "aten::_scaled_dot_product_flash_attention": flash,
    "aten::_scaled_dot_product_flash_attention_for_cpu": flash,
    "aten::_scaled_dot_product_efficient_attention": efficient,
    "aten::_scaled_dot_product_cudnn_attention": efficient,
    "aten::scaled_dot_product_attention": composite,
    "FlashAttnFunc": flash_function,
    "flash_attn::_flash_attn_forward": flash_function,
    **dict.fromkeys(PACKED_FORWARD, forward),
}

_CAUSAL_AT = {"flash_attention": 11, "flash_attention_for_cpu": 7, "efficient_attention": 11, "cudnn_attention": 14}

PACKED_BACKWARD = {
    "aten::_flash_attention_backward": Layout(query=1, lengths=6, mask=11),
    "aten::_efficient_attention_backward": Layout(query=1, lengths=6, mask=14, numbered=True),
    "flash_attn::_flash_attn_varlen_backward": Layout(query=1, lengths=9, mask=15),
}


def backward(call: OperatorCall) -> Work:
    return _counted(call, PACKED_BACKWARD[call.name], backward=True)


BACKWARD = {
    **{f"aten::_scaled_dot_product_{name}_backward": gradient(at) for name, at in _CAUSAL_AT.items()},
    "flash_attn::_flash_attn_backward": flash_function_backward,
    **dict.fromkeys(PACKED_BACKWARD, backward),
}


def _counted(call: OperatorCall, layout: Layout, *, backward: bool) -> Work:
    if call.tensor(layout.lengths):
        return _packed(call, layout, backward=backward)
    (batch, queries, heads, dim), k, v = (call.shape(layout.query + at) for at in range(3))
    count = attention_backward if backward else attention
    return count(
        batch,
        heads,
        queries,
        dim,
        dtype=call.dtype(layout.query),
        keys=k[1],
        kv_heads=k[2],
        value_dim=v[3],
        causal=layout.causal(call),
        bottom_right=layout.aligned(call),
    )


def _packed(call: OperatorCall, layout: Layout, *, backward: bool) -> Work:
    q, k, v = (call.shape(layout.query + at)[-3:] for at in range(3))
    sizes = Heads(query=q[1], key=k[1], dim=q[2], value_dim=v[2])
    dtype, causal = call.dtype(layout.query), layout.causal(call)
    ends, key_ends = call.numbers(layout.lengths), call.numbers(layout.lengths + 1)
    if len(ends) > 1 and len(key_ends) == len(ends):
        return packed_attention(
            _lengths(ends),
            sizes.query,
            sizes.dim,
            dtype=dtype,
            keys=_lengths(key_ends),
            kv_heads=sizes.key,
            value_dim=sizes.value_dim,
            causal=causal,
            bottom_right=layout.aligned(call),
            backward=backward,
        )
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
    layout = PACKED_FORWARD.get(call.name) or PACKED_BACKWARD.get(call.name)
    if layout is None or not (call.tensor(layout.lengths) and call.tensor(layout.lengths + 1)):
        return {}
    ends = {}
    for at, tensor in ((layout.lengths, layout.query), (layout.lengths + 1, layout.query + 1)):
        total, count = call.shape(tensor)[-3], max(call.shape(at)[0] - 1, 1)
        ends[at] = tuple(total * number // count for number in range(count + 1))
    return ends
