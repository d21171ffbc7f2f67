"""Attention: two products over the kept area, for grouped heads and any mask geometry that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from pytest_perfgate.core.analysis.ops.dtypes import dtype_name, width
from pytest_perfgate.core.analysis.ops.exact import exact
from pytest_perfgate.model.work import Work

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AttentionOptions(TypedDict, total=False):
    """What attention may be told beside its square, single-group form."""

    keys: int
    kv_heads: int
    value_dim: int
    causal: bool
    bottom_right: bool


@exact
def attention(
    batch: int, heads: int, queries: int, head_dim: int, *, dtype: str, **options: Unpack[AttentionOptions]
) -> Work:
    """Scaled dot-product attention, forward.

    Options: ``keys`` (sequence length of K and V), ``kv_heads`` (grouped-query attention), ``value_dim``,
    ``causal``, and ``bottom_right`` where the causal diagonal ends at the last key (FlashAttention's
    alignment) rather than starting at the first (PyTorch's).
    """
    keys, kv_heads, value_dim, area = _geometry(heads, queries, head_dim, options)
    flops = 2 * batch * heads * area * (head_dim + value_dim)
    elements = batch * (heads * queries * (head_dim + value_dim) + kv_heads * keys * (head_dim + value_dim))
    moved = elements * width(dtype)
    return Work(flops=flops, bytes=moved, dtype=dtype_name(dtype), working_set=moved, family="attention")


@exact
def attention_backward(
    batch: int, heads: int, queries: int, head_dim: int, *, dtype: str, **options: Unpack[AttentionOptions]
) -> Work:
    """Its gradients: Q, K, V and dO read, dQ, dK and dV written, the scores computed again."""
    keys, kv_heads, value_dim, area = _geometry(heads, queries, head_dim, options)
    flops = batch * heads * area * (6 * head_dim + 4 * value_dim)
    group_sum = batch * (heads - kv_heads) * keys * (head_dim + value_dim)
    queries_side = heads * queries * (2 * head_dim + value_dim)
    keys_side = 2 * kv_heads * keys * (head_dim + value_dim)
    moved = batch * (queries_side + keys_side) * width(dtype)
    return Work(
        flops=flops + group_sum,
        bytes=moved,
        dtype=dtype_name(dtype),
        working_set=moved,
        family="attention backward",
    )


def kept_area(queries: int, keys: int, *, bottom_right: bool = False) -> int:
    """Scores that a causal mask keeps of ``queries`` x ``keys``."""
    shift = keys - queries if bottom_right else 0
    first, last = shift + 1, shift + queries
    full = max(0, last - keys) if last > keys else 0
    low, high = max(first, 1), min(last, keys)
    ramp = (low + high) * (high - low + 1) // 2 if high >= low else 0
    return ramp + min(full, queries) * keys


def _geometry(heads: int, queries: int, head_dim: int, options: AttentionOptions) -> tuple[int, int, int, int]:
    keys = options.get("keys", queries)
    kv_heads = options.get("kv_heads", heads)
    if kv_heads < 1 or heads % kv_heads:
        raise ValueError(f"{heads} query heads cannot share {kv_heads} key heads")
    causal, aligned = options.get("causal", False), options.get("bottom_right", False)
    area = kept_area(queries, keys, bottom_right=aligned) if causal else queries * keys
    return keys, kv_heads, options.get("value_dim", head_dim), area
