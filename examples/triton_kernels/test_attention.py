"""Attention forward and backward: limits on the fraction of the peak, bandwidth and time, and one capture."""

from __future__ import annotations

import pytest

from pytest_perfgate import work

torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
pytest.importorskip("triton", reason="triton is not installed", exc_type=ImportError)
if not torch.cuda.is_available():
    pytest.skip("there is no GPU that torch can use", allow_module_level=True)

import attention  # noqa: E402 - it needs both
import kernels  # noqa: E402

BATCH, HEADS, WIDTH = 4, 16, 128


def drawn(length):
    return tuple(kernels.drawn(BATCH, HEADS, length, WIDTH, dtype=torch.bfloat16, seed=seed) for seed in range(4))


def close(found, right):
    return torch.linalg.norm((found - right).float()) <= 0.02 * torch.linalg.norm(right.float())


@pytest.mark.perfgate("mfu >= 20%", "bandwidth >= 100 GB/s", "slowdown <= 3%", capture="torch")
@pytest.mark.parametrize("length", [1024, 4096])
def test_forward(perfgate, length):
    q, k, v, _ = drawn(length)
    right = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    perfgate(
        attention.forward, q, k, v, work=work.attention(BATCH, HEADS, length, WIDTH, dtype="bf16", causal=True),
        check=lambda found: bool(close(found[0], right)),
    )  # fmt: skip


@pytest.mark.perfgate("mfu >= 15%", "bandwidth >= 100 GB/s", "slowdown <= 3%")
def test_backward(perfgate):
    q, k, v, upward = (rows.requires_grad_() for rows in drawn(2048))
    right = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    gradients = torch.autograd.grad(right, (q, k, v), upward)
    rows = [one.detach() for one in (q, k, v)]
    perfgate(
        attention.backward, *rows, *attention.forward(*rows), upward.detach(),
        work=work.attention_backward(BATCH, HEADS, 2048, WIDTH, dtype="bf16", causal=True),
        check=lambda found: all(map(close, found, gradients)),
    )  # fmt: skip
