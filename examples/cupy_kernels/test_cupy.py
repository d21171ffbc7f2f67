"""A raw CuPy kernel, compiled on its first call. It does not need torch."""

from __future__ import annotations

import pytest

from pytest_perfgate import work

cupy = pytest.importorskip("cupy", reason="CuPy is not installed", exc_type=ImportError)
if not cupy.cuda.is_available():
    pytest.skip("there is no GPU that CuPy can use", allow_module_level=True)

SOURCE = r"""
extern "C" __global__ void row_sums(const float *x, float *out, int columns) {
    __shared__ float part[256];
    float total = 0;
    for (int at = threadIdx.x; at < columns; at += 256) total += x[blockIdx.x * (long long)columns + at];
    part[threadIdx.x] = total;
    for (int half = 128; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (!threadIdx.x) out[blockIdx.x] = part[0];
}
"""


@pytest.mark.perfgate("bandwidth >= 1 TB/s", "slowdown <= 3%", cache="cold")
def test_row_sums(perfgate):
    kernel = cupy.RawKernel(SOURCE, "row_sums")
    x = cupy.random.default_rng(7).standard_normal((8192, 8192), dtype=cupy.float32)
    out = cupy.empty(8192, dtype=cupy.float32)

    def row_sums():
        kernel((8192,), (256,), (x, out, 8192))
        return out

    perfgate(
        row_sums, work=work.custom(bytes=x.nbytes + out.nbytes),
        check=lambda found: bool(cupy.allclose(found, x.sum(axis=1), atol=1e-2)),
    )  # fmt: skip
