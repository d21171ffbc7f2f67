"""Plain functions under torch.compile: attention forward and backward, and a fused activation."""

from __future__ import annotations

import pytest

from pytest_perfgate import work

torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
if not torch.cuda.is_available():
    pytest.skip("there is no GPU that torch can use", allow_module_level=True)

BATCH, HEADS, LENGTH, WIDTH = 4, 16, 2048, 128


def drawn(*shape, dtype=torch.bfloat16, **more):
    made = torch.randn(*shape, device="cuda", dtype=dtype, generator=torch.Generator("cuda").manual_seed(7))
    return made.requires_grad_(more.get("grad", False))


@torch.compile
def gated(x, gate):
    return torch.nn.functional.silu(gate) * x


def attend(query, key, value):
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)


@pytest.mark.perfgate("bandwidth >= 1 TB/s", "slowdown <= 3%")
def test_gated(perfgate):
    x, gate = drawn(8192, 8192), drawn(8192, 8192)
    right = torch.nn.functional.silu(gate) * x
    perfgate(
        gated, x, gate, work=work.custom(bytes=3 * x.nbytes),
        check=lambda found: bool(torch.allclose(found, right, rtol=0.02, atol=0.02)),  # bf16 rounds to 0.4 %
    )  # fmt: skip


@pytest.mark.perfgate("mfu >= 30%", "slowdown <= 3%", capture="torch")
@pytest.mark.parametrize("way", ["forward", "backward"])
def test_attention(perfgate, way):
    inputs = [drawn(BATCH, HEADS, LENGTH, WIDTH, grad=way == "backward") for _ in range(3)]
    sizes = (BATCH, HEADS, LENGTH, WIDTH)
    if way == "forward":
        perfgate(attend, *inputs, work=work.attention(*sizes, dtype="bf16", causal=True))
        return
    found = attend(*inputs)
    upward = torch.randn_like(found)
    perfgate(
        lambda: torch.autograd.grad(found, inputs, upward, retain_graph=True),
        work=work.attention_backward(*sizes, dtype="bf16", causal=True),
    )
