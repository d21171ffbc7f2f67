"""The limits of the kernels. Run them with ``pytest --perfgate=full``."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import gemm, layer_norm, softmax

from pytest_perfgate import work


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.perfgate("slowdown <= 25%", "tflops >= 0.001TFLOPS")
@pytest.mark.parametrize("n", [128, 256])
def test_gemm(perfgate, rng, n):
    a, b = rng.random((n, n), dtype=np.float32), rng.random((n, n), dtype=np.float32)
    perfgate(gemm, a, b, work=work.gemm(n, n, n, dtype="fp32"))


@pytest.mark.perfgate("slowdown <= 25%")
def test_softmax(perfgate, rng):
    x = rng.random((256, 1024), dtype=np.float32)
    got = perfgate(softmax, x, work=work.softmax((256, 1024), dtype="fp32"))
    np.testing.assert_allclose(got.result.sum(axis=-1), 1.0, rtol=1e-5)


@pytest.mark.perfgate("slowdown <= 25%", "time <= 50ms")
def test_layer_norm(perfgate, rng):
    x = rng.random((256, 1024), dtype=np.float32)
    perfgate(layer_norm, x)
