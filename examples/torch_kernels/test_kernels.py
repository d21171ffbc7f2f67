"""Torch kernels, each compared with its own accepted time, on a GPU where there is one."""

from __future__ import annotations

import pytest

from pytest_perfgate import work

torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
WHERE = "cuda" if torch.cuda.is_available() else "cpu"
SIZES = (1024, 2048) if WHERE == "cuda" else (128,)
ROWS = 4096 if WHERE == "cuda" else 256


def drawn(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=WHERE, dtype=dtype, generator=torch.Generator(WHERE).manual_seed(7))


@pytest.mark.parametrize("n", SIZES)
def test_gemm(perfgate, n):
    a, b = drawn(n, n, dtype=torch.bfloat16), drawn(n, n, dtype=torch.bfloat16)
    right = (a.float() @ b.float()).to(torch.bfloat16)

    def close(found):
        return torch.linalg.norm((found - right).float()) <= 0.02 * torch.linalg.norm(right.float())

    perfgate(torch.matmul, a, b, work=work.gemm(n, n, n, dtype="bf16"), check=lambda found: bool(close(found)))


def test_softmax(perfgate):
    x = drawn(ROWS, ROWS)
    perfgate(torch.softmax, x, -1, check=lambda found: bool(torch.allclose(found.sum(-1), found.new_ones(ROWS))))


def test_copy(perfgate):
    source = drawn(ROWS, 4 * ROWS)
    target = torch.empty_like(source)
    perfgate(target.copy_, source, work=work.copy(source.nbytes), check=lambda found: bool(torch.equal(found, source)))


@pytest.mark.perfgate("time <= 1ms", timer="auto")
def test_short(perfgate):
    x = drawn(1024)
    out = torch.empty_like(x)
    perfgate(lambda: torch.add(x, 1.0, out=out))
