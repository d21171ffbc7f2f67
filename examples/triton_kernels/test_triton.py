"""Triton kernels, each with a limit on a rate, a fraction of the peak, or its accepted time."""

from __future__ import annotations

import pytest

from pytest_perfgate import work

torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
pytest.importorskip("triton", reason="triton is not installed", exc_type=ImportError)
if not torch.cuda.is_available():
    pytest.skip("there is no GPU that torch can use", allow_module_level=True)

import kernels  # noqa: E402 - it needs both


@pytest.mark.perfgate("bandwidth >= 1 TB/s", "slowdown <= 3%")
@pytest.mark.parametrize("rows", [1024, 8192])
def test_rmsnorm(perfgate, rows):
    x, weight = kernels.drawn(rows, 4096), kernels.drawn(4096)
    out = torch.empty_like(x)
    right = torch.nn.functional.rms_norm(x, (4096,), weight, 1e-6)
    perfgate(
        kernels.rmsnorm, x, weight, out,
        work=work.copy(x.nbytes), check=lambda found: bool(torch.allclose(found, right, atol=1e-4)),
    )  # fmt: skip


@pytest.mark.perfgate("bandwidth >= 1 TB/s", "slowdown <= 3%", cache="cold")
def test_softmax(perfgate):
    x = kernels.drawn(4096, 4096)
    out = torch.empty_like(x)
    right = torch.softmax(x, -1)
    perfgate(
        kernels.softmax, x, out,
        work=work.copy(x.nbytes), check=lambda found: bool(torch.allclose(found, right, atol=1e-5)),
    )  # fmt: skip


@pytest.mark.perfgate("mfu >= 30%", "slowdown <= 3%")
@pytest.mark.parametrize("n", [2048, 4096])
def test_matmul(perfgate, n):
    a, b = (kernels.drawn(n, n, dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty(n, n, device="cuda", dtype=torch.bfloat16)
    right = (a @ b).float()
    kernels.matmul(a, b, out)
    perfgate.note("tile", kernels.chosen_tile())  # a different tile is a different measurement
    perfgate(
        kernels.matmul, a, b, out, work=work.gemm(n, n, n, dtype="bf16"),
        check=lambda found: bool(torch.linalg.norm(found.float() - right) <= 0.02 * torch.linalg.norm(right)),
    )  # fmt: skip
