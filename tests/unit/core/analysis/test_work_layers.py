"""Packed attention: sums over sequences, and bounds that hold for any lengths that fit what is known."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_perfgate import work
from pytest_perfgate.core.analysis.work_layers import Heads, Packing, area_bounds, packed_work

LENGTHS = st.lists(st.integers(1, 12), min_size=1, max_size=6)


def known_of(queries, keys):
    return Packing(
        queries=sum(queries),
        keys=sum(keys),
        sequences=len(queries),
        longest_query=max(queries),
        longest_key=max(keys),
    )


def area(queries, keys, causal):
    return sum(work.kept_area(q, k, bottom_right=True) if causal else q * k for q, k in zip(queries, keys))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault
@given(LENGTHS, st.booleans())
def test_bounds_hold_for_self_attention_of_any_lengths(lengths, causal):
    least, most = area_bounds(known_of(lengths, lengths), causal=causal)
    assert 0 < least <= area(lengths, lengths, causal) <= most


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 12)), min_size=1, max_size=6), st.booleans())
def test_bounds_hold_wherever_totals_do_not_pass_for_self_attention(pairs, causal):
    queries, keys = zip(*pairs)
    packing = known_of(queries, keys)
    if (packing.queries, packing.longest_query) == (packing.keys, packing.longest_key):
        return
    least, most = area_bounds(packing, causal=causal)
    assert least <= area(queries, keys, causal) <= most


@pytest.mark.parametrize("causal", [False, True])
def test_equal_lengths_and_decoding_are_certain(causal):
    assert len(set(area_bounds(known_of([8, 8, 8], [8, 8, 8]), causal=causal))) == 1
    assert area_bounds(known_of([1, 1, 1], [5, 9, 2]), causal=causal) == (16, 16)
    assert area_bounds(known_of([3, 5], [7, 7]), causal=False) == (56, 56)


def test_lengths_that_are_known_are_summed():
    whole = work.packed_attention([4, 6], 8, 64, dtype="bf16", kv_heads=2, causal=True)
    parts = [work.attention(1, 8, n, 64, dtype="bf16", kv_heads=2, causal=True) for n in (4, 6)]
    assert whole.flops == sum(part.flops for part in parts)
    assert whole.bytes == sum(part.bytes for part in parts)


def test_gradients_of_packed_sequences_are_those_of_each():
    whole = work.packed_attention([4, 6], 8, 64, dtype="fp16", keys=[5, 6], kv_heads=4, value_dim=32, backward=True)
    parts = [
        work.attention_backward(1, 8, q, 64, dtype="fp16", keys=k, kv_heads=4, value_dim=32)
        for q, k in ((4, 5), (6, 6))
    ]
    assert whole.flops == sum(part.flops for part in parts)
    assert whole.bytes == sum(part.bytes for part in parts)


def test_without_an_area_only_bytes_are_known():
    heads = Heads(query=4, key=4, dim=8, value_dim=8)
    amount = packed_work(None, (10, 10), heads, "fp32")
    assert amount.flops is None
    assert amount.bytes == 4 * 4 * 10 * 8 * 4


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="2 query sequences meet 1"):
        work.packed_attention([1, 2], 4, 8, dtype="fp32", keys=[3])
    with pytest.raises(ValueError, match="cannot share"):
        work.packed_attention([1, 2], 4, 8, dtype="fp32", kv_heads=3)
