"""Matrix products: 2MNK operations, each matrix moved once."""

from __future__ import annotations

from pytest_perfgate.core.analysis.ops.dtypes import dtype_name, width
from pytest_perfgate.core.analysis.ops.exact import exact
from pytest_perfgate.model.work import Work


@exact
def gemm(m: int, n: int, k: int, *, dtype: str, bias: bool = False, out: str | None = None) -> Work:
    """``(m, k) @ (k, n)``, with ``bias`` adding one vector of n; ``out`` is the result's dtype where it differs."""
    return bmm(1, m, n, k, dtype=dtype, bias=bias) if out is None else _product((1, m, n, k), (dtype, dtype, out), bias)


@exact
def bmm(batch: int, m: int, n: int, k: int, *, dtype: str, bias: bool = False) -> Work:
    """A batch of independent products ``(m, k) @ (k, n)``."""
    return _product((batch, m, n, k), (dtype, dtype, dtype), bias)


@exact
def mixed_gemm(sizes: tuple[int, int, int, int], dtypes: tuple[str, str, str], *, bias: str | None = None) -> Work:
    """A product of ``sizes`` (batch, m, n, k) whose operands, result and bias have dtypes of their own."""
    return _product(sizes, dtypes, bias is not None, bias)


@exact
def gemm_backward(m: int, n: int, k: int, *, dtype: str, bias: bool = False) -> Work:
    """Both gradients of ``(m, k) @ (k, n)``; ``bias`` adds the sum over m."""
    size = width(dtype)
    flops = 4 * m * n * k + (m * n if bias else 0)
    moved = size * (2 * m * n + 2 * m * k + 2 * k * n + (n if bias else 0))
    return Work(flops=flops, bytes=moved, dtype=dtype_name(dtype), working_set=moved, family="gemm backward")


def _product(
    sizes: tuple[int, int, int, int], dtypes: tuple[str, str, str], bias: bool, bias_dtype: str | None = None
) -> Work:
    batch, m, n, k = sizes
    a, b, out = map(width, dtypes)
    added = width(bias_dtype or dtypes[2]) * n if bias else 0
    flops = batch * (2 * m * n * k + (m * n if bias else 0))
    moved = batch * (m * k * a + k * n * b + m * n * out + added)
    return Work(flops=flops, bytes=moved, dtype=dtype_name(dtypes[0]), working_set=moved, family="gemm")
