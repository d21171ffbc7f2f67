"""Grouped products and mixtures of experts: only the experts that were hit are read."""

from __future__ import annotations

from pytest_perfgate.core.analysis.ops.dtypes import width
from pytest_perfgate.core.analysis.ops.elementwise import streamed
from pytest_perfgate.core.analysis.ops.exact import exact
from pytest_perfgate.model.work import Work


@exact
def grouped_gemm(rows: int, n: int, k: int, groups: int, *, dtype: str) -> Work:
    """``rows`` rows, each multiplied by the matrix of its group."""
    size = width(dtype)
    moved = size * (rows * k + groups * k * n + rows * n)
    return streamed(2 * rows * n * k, moved, dtype, "grouped gemm")


@exact
def fused_moe(
    tokens: int, sizes: tuple[int, int], experts: int, *, dtype: str, top: int = 1, gated: bool = True
) -> Work:
    """A mixture of experts of ``sizes`` (model, inner), each token going to ``top`` of ``experts``.

    Routing is taken as uniform: of E experts, ``E (1 - ((E - top) / E) ** tokens)`` are read.
    """
    model, inner = sizes
    first = 2 * inner if gated else inner
    flops = 2 * tokens * top * model * (first + inner)
    read = experts * (1 - ((experts - top) / experts) ** tokens)
    moved = width(dtype) * (read * model * (first + inner) + 2 * tokens * model)
    return streamed(flops, moved, dtype, "fused moe")
