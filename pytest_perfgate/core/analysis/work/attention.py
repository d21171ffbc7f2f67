"""Work of attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from pytest_perfgate.core.analysis.work.products import dtype_name, exact, width
from pytest_perfgate.model.values import Work, value

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


class PackedOptions(TypedDict, total=False):
    """What packed attention may be told beside its single-group form."""

    keys: Sequence[int]
    kv_heads: int
    value_dim: int
    causal: bool
    bottom_right: bool
    backward: bool


@value
class Packing:
    """What is known of packed sequences without their lengths: totals, how many, the longest."""

    queries: int
    keys: int
    sequences: int
    longest_query: int
    longest_key: int


@value
class Heads:
    """The other sizes of an attention."""

    query: int
    key: int
    dim: int
    value_dim: int


@exact
def packed_attention(
    lengths: Sequence[int], heads: int, head_dim: int, *, dtype: str, **options: Unpack[PackedOptions]
) -> Work:
    """Attention over packed sequences of these lengths, summed over the sequences.

    Options: ``keys`` (the lengths of K and V), ``kv_heads``, ``value_dim``, ``causal``, ``bottom_right`` (true unless
    said otherwise: FlashAttention's alignment) and ``backward`` for the gradients.
    """
    keys = options.get("keys", lengths)
    if len(keys) != len(lengths):
        raise ValueError(f"{len(lengths)} query sequences meet {len(keys)} key sequences")
    sizes = Heads(
        query=heads,
        key=options.get("kv_heads", heads),
        dim=head_dim,
        value_dim=options.get("value_dim", head_dim),
    )
    aligned = options.get("bottom_right", True)
    area = sum(kept_area(q, k, bottom_right=aligned) if options.get("causal") else q * k for q, k in zip(lengths, keys))
    return packed_work(area, (sum(lengths), sum(keys)), sizes, dtype, backward=options.get("backward", False))


def packed_work(area: int | None, tokens: tuple[int, int], heads: Heads, dtype: str, *, backward: bool = False) -> Work:
    """The work of an area of scores over so many tokens; without an area only the bytes are known."""
    if heads.key < 1 or heads.query % heads.key:
        raise ValueError(f"{heads.query} query heads cannot share {heads.key} key heads")
    queries, keys = tokens
    both = heads.dim + heads.value_dim
    if backward:
        scores, added = 6 * heads.dim + 4 * heads.value_dim, (heads.query - heads.key) * keys * both
        elements = heads.query * queries * (2 * heads.dim + heads.value_dim) + 2 * heads.key * keys * both
    else:
        scores, added = 2 * both, 0
        elements = heads.query * queries * both + heads.key * keys * both
    moved = elements * width(dtype)
    return Work(
        flops=heads.query * area * scores + added if area is not None else None,
        bytes=moved,
        dtype=dtype_name(dtype),
        working_set=moved,
        family="attention backward" if backward else "attention",
    )


def area_bounds(packing: Packing, *, causal: bool) -> tuple[int, int]:
    """The least and most scores that sequences of unknown length can keep; equal where they are certain.

    Equal totals and equal longest are taken as self-attention: a sequence has as many keys as queries.
    """
    queries, keys, count = packing.queries, packing.keys, packing.sequences
    longest, longest_key = packing.longest_query, packing.longest_key
    if queries == count * longest:
        return _equal_queries(packing, causal)
    if keys == count * longest_key and not causal:
        return queries * longest_key, queries * longest_key
    if queries == keys and longest == longest_key:
        least, most = -(-queries * queries // count), _most_squares(queries, longest)
        return ((least + queries) // 2, (most + queries) // 2) if causal else (least, most)
    return 0, min(queries * longest_key, keys * longest)


def _equal_queries(packing: Packing, causal: bool) -> tuple[int, int]:
    """Every sequence has the longest's queries."""
    each, count, keys = packing.longest_query, packing.sequences, packing.keys
    whole = each * keys
    if not causal or each == 1:
        return whole, whole
    if keys == count * packing.longest_key:
        area = count * kept_area(each, packing.longest_key, bottom_right=True)
        return area, area
    return max(0, whole - count * each * (each - 1) // 2), whole


def _most_squares(total: int, longest: int) -> int:
    """The largest sum of squares of lengths up to the longest that sum to the total."""
    full, rest = divmod(total, max(longest, 1))
    return full * longest * longest + rest * rest
