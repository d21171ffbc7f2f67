"""Typical Triton kernels: a normalisation, a softmax, a product with autotuning."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _rmsnorm(x, weight, out, columns, eps, block: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, block)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(values * values) / columns + eps)
    scaled = values * scale * tl.load(weight + at, mask=inside, other=0.0)
    tl.store(out + row * columns + at, scaled, mask=inside)


def rmsnorm(x, weight, out, eps=1e-6):
    rows, columns = x.shape
    _rmsnorm[(rows,)](x, weight, out, columns, eps, block=triton.next_power_of_2(columns))
    return out


@triton.jit
def _softmax(x, out, columns, block: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, block)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values))
    tl.store(out + row * columns + at, powers / tl.sum(powers), mask=inside)


def softmax(x, out):
    rows, columns = x.shape
    _softmax[(rows,)](x, out, columns, block=triton.next_power_of_2(columns))
    return out


TILES = [
    triton.Config({"tile_m": 128, "tile_n": 128, "tile_k": 64}, num_stages=3, num_warps=8),
    triton.Config({"tile_m": 128, "tile_n": 64, "tile_k": 64}, num_stages=4, num_warps=4),
    triton.Config({"tile_m": 64, "tile_n": 64, "tile_k": 32}, num_stages=4, num_warps=4),
]


@triton.autotune(configs=TILES, key=["m", "n", "k"])
@triton.jit
def _matmul(a, b, out, m, n, k, tile_m: tl.constexpr, tile_n: tl.constexpr, tile_k: tl.constexpr):
    rows = tl.program_id(0) * tile_m + tl.arange(0, tile_m)
    columns = tl.program_id(1) * tile_n + tl.arange(0, tile_n)
    total = tl.zeros((tile_m, tile_n), dtype=tl.float32)
    for start in range(0, k, tile_k):
        inner = start + tl.arange(0, tile_k)
        left = tl.load(
            a + rows[:, None] * k + inner[None, :], mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0
        )
        right = tl.load(
            b + inner[:, None] * n + columns[None, :], mask=(inner[:, None] < k) & (columns[None, :] < n), other=0.0
        )
        total += tl.dot(left, right)
    tl.store(out + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))


def matmul(a, b, out):
    (m, k), n = a.shape, b.shape[1]
    _matmul[lambda tile: (triton.cdiv(m, tile["tile_m"]), triton.cdiv(n, tile["tile_n"]))](a, b, out, m, n, k)
    return out


def chosen_tile():
    """The autotuner's choice for the last product, for the record."""
    best = getattr(_matmul, "best_config", None)
    return str(best) if best is not None else "not tuned yet"


def drawn(*shape, dtype=torch.float32, where="cuda", seed=7):
    return torch.randn(*shape, device=where, dtype=dtype, generator=torch.Generator(where).manual_seed(seed))
