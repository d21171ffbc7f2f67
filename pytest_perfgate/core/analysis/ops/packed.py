"""Attention over sequences packed one behind the other: exact where lengths are known, bounds where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from pytest_perfgate.core.analysis.ops.attention import kept_area
from pytest_perfgate.core.analysis.ops.dtypes import dtype_name, width
from pytest_perfgate.core.analysis.ops.exact import exact
from pytest_perfgate.model.values import value
from pytest_perfgate.model.work import Work

if TYPE_CHECKING:
    from typing_extensions import Unpack


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
