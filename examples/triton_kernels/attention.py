"""Attention in Triton, forward and backward, tile by tile. It never writes the matrix of all scores."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

TILE = 64
LOG2_E = 1.4426950408889634
"""Weights are powers of two, which the hardware computes directly."""


@triton.jit
def _rows(at, head, length, width: tl.constexpr, tile: tl.constexpr):
    """The offsets of a tile's rows in a head, their numbers, and the mask of existing rows."""
    rows = at * tile + tl.arange(0, tile)
    return head * width + rows[:, None] * width + tl.arange(0, width)[None, :], rows, (rows < length)[:, None]


@triton.jit
def _scores(queries, keys, rows, columns, length, scale, causal: tl.constexpr):
    scores = tl.dot(queries, tl.trans(keys)) * scale
    seen = (columns < length)[None, :]
    if causal:
        seen = seen & (columns[None, :] <= rows[:, None])
    return tl.where(seen, scores, -float("inf"))


@triton.jit
def _forward(q, k, v, out, logs, length, scale, causal: tl.constexpr, width: tl.constexpr, tile: tl.constexpr):
    at, head = tl.program_id(0), tl.program_id(1).to(tl.int64) * length
    here, rows, inside = _rows(at, head, length, width, tile)
    queries = tl.load(q + here, mask=inside, other=0.0)
    highest = tl.full([tile], -float("inf"), tl.float32)
    total = tl.zeros([tile], tl.float32)
    mixed = tl.zeros([tile, width], tl.float32)
    last = (at + 1) * tile if causal else length
    for start in range(tl.cdiv(tl.minimum(last, length), tile)):
        there, columns, real = _rows(start, head, length, width, tile)
        keys, values = tl.load(k + there, mask=real, other=0.0), tl.load(v + there, mask=real, other=0.0)
        scores = _scores(queries, keys, rows, columns, length, scale, causal)
        higher = tl.maximum(highest, tl.max(scores, 1))
        weights, faded = tl.exp2(scores - higher[:, None]), tl.exp2(highest - higher)
        mixed = mixed * faded[:, None] + tl.dot(weights.to(values.dtype), values)
        total = total * faded + tl.sum(weights, 1)
        highest = higher
    tl.store(out + here, mixed / total[:, None], mask=inside)
    tl.store(logs + head + rows, highest + tl.log2(total), mask=rows < length)


@triton.jit
def _backward_queries(
    q, k, v, out, upward, logs, dots, dq, length, scale, root,
    causal: tl.constexpr, width: tl.constexpr, tile: tl.constexpr,
):  # fmt: skip
    """The gradient of a tile of queries. It stores in ``dots`` what the keys' gradients need of each row."""
    at, head = tl.program_id(0), tl.program_id(1).to(tl.int64) * length
    here, rows, inside = _rows(at, head, length, width, tile)
    queries, up = tl.load(q + here, mask=inside, other=0.0), tl.load(upward + here, mask=inside, other=0.0)
    dot = tl.sum(tl.load(out + here, mask=inside, other=0.0).to(tl.float32) * up.to(tl.float32), 1)
    tl.store(dots + head + rows, dot, mask=rows < length)
    log = tl.load(logs + head + rows, mask=rows < length, other=0.0)
    gradient = tl.zeros([tile, width], tl.float32)
    last = (at + 1) * tile if causal else length
    for start in range(tl.cdiv(tl.minimum(last, length), tile)):
        there, columns, real = _rows(start, head, length, width, tile)
        keys, values = tl.load(k + there, mask=real, other=0.0), tl.load(v + there, mask=real, other=0.0)
        weights = tl.exp2(_scores(queries, keys, rows, columns, length, scale, causal) - log[:, None])
        change = weights * (tl.dot(up, tl.trans(values)) - dot[:, None])
        gradient += tl.dot(change.to(keys.dtype), keys)
    tl.store(dq + here, gradient * root, mask=inside)


@triton.jit
def _backward_keys(
    q, k, v, upward, logs, dots, dk, dv, length, scale, root,
    causal: tl.constexpr, width: tl.constexpr, tile: tl.constexpr,
):  # fmt: skip
    at, head = tl.program_id(0), tl.program_id(1).to(tl.int64) * length
    there, columns, real = _rows(at, head, length, width, tile)
    keys, values = tl.load(k + there, mask=real, other=0.0), tl.load(v + there, mask=real, other=0.0)
    of_keys = tl.zeros([tile, width], tl.float32)
    of_values = tl.zeros([tile, width], tl.float32)
    for start in range(at if causal else 0, tl.cdiv(length, tile)):
        here, rows, inside = _rows(start, head, length, width, tile)
        queries, up = tl.load(q + here, mask=inside, other=0.0), tl.load(upward + here, mask=inside, other=0.0)
        log = tl.load(logs + head + rows, mask=rows < length, other=float("inf"))
        dot = tl.load(dots + head + rows, mask=rows < length, other=0.0)
        weights = tl.exp2(_scores(queries, keys, rows, columns, length, scale, causal) - log[:, None])
        of_values += tl.dot(tl.trans(weights).to(up.dtype), up)
        change = weights * (tl.dot(up, tl.trans(values)) - dot[:, None])
        of_keys += tl.dot(tl.trans(change).to(queries.dtype), queries)
    tl.store(dk + there, of_keys * root, mask=real)
    tl.store(dv + there, of_values, mask=real)


def shape_of(q, causal):
    """The grid, and the arguments of every kernel (batch, heads, length, width)."""
    batch, heads, length, width = q.shape
    root = 1 / math.sqrt(width)
    return (triton.cdiv(length, TILE), batch * heads), (length, LOG2_E * root), root, (causal, width, TILE)


def forward(q, k, v, causal=True):
    """The output, and the logarithm of each row's total, which the backward pass needs."""
    out, logs = torch.empty_like(q), torch.empty(q.shape[:3], device=q.device, dtype=torch.float32)
    grid, sizes, _, constants = shape_of(q, causal)
    _forward[grid](q, k, v, out, logs, *sizes, *constants)
    return out, logs


def backward(q, k, v, out, logs, upward, causal=True):
    """The gradients of queries, keys and values."""
    dq, dk, dv, dots = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v), torch.empty_like(logs)
    grid, sizes, root, constants = shape_of(q, causal)
    _backward_queries[grid](q, k, v, out, upward, logs, dots, dq, *sizes, root, *constants)
    _backward_keys[grid](q, k, v, upward, logs, dots, dk, dv, *sizes, root, *constants, num_warps=8)
    return dq, dk, dv
