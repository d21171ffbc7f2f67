"""The suites of examples/ that need a GPU: collected and skipped without one, their kernels run where that can be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.corpus import corpus
from tests.plugin.forked import forked, inherited

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SUITES = ("triton_kernels", "compiled_kernels", "cuda_extension", "cupy_kernels", "planted_on_gpu", "nvbench")
REASONS = ("is not installed", "there is no GPU that", "the extension is not built", "NVBENCH names no binary")


TORCH = ("torch",) if find_spec("torch") else ()
"""It takes seconds to import, and most of these suites do."""


def run(folder: Path, *options: str, **env: str) -> tuple[int, str]:
    words = ("-m", "pytest", "-rs", "-p", "no:cacheprovider", "-p", "pytest_perfgate.plugin", *options)
    hidden = {"CUDA_VISIBLE_DEVICES": "", "NVBENCH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return forked(words, folder, {**inherited(), **hidden, **env}, children=True, also=TORCH)


@pytest.mark.parametrize("suite", SUITES)
def test_without_a_gpu_a_suite_is_collected_and_says_why_it_skips(tmp_path: Path, suite: str) -> None:
    folder = shutil.copytree(EXAMPLES / suite, tmp_path / suite)
    code, text = run(folder)
    assert code == 5, text  # nothing was collected, and nothing failed
    assert any(reason in text for reason in REASONS), text
    assert "error" not in text.lower()


KERNELS = """
import torch
import kernels

x, weight = kernels.drawn(8, 100, where="cpu"), kernels.drawn(100, where="cpu")
right = torch.nn.functional.rms_norm(x, (100,), weight, 1e-6)
assert torch.allclose(kernels.rmsnorm(x, weight, torch.empty_like(x)), right, atol=1e-4)
assert torch.allclose(kernels.softmax(x, torch.empty_like(x)), torch.softmax(x, -1), atol=1e-5)
a, b, out = kernels.drawn(70, 50, where="cpu"), kernels.drawn(50, 90, where="cpu"), torch.empty(70, 90)
tiles = {"tile_m": 64, "tile_n": 64, "tile_k": 32}
assert tiles in [config.kwargs for config in kernels.TILES]
kernels._matmul.fn[(2, 2)](a, b, out, 70, 90, 50, **tiles)
assert torch.allclose(out, a @ b, atol=1e-3)
assert kernels.chosen_tile() == "not tuned yet"
"""


ATTENTION = """
import torch
import attention
import kernels

for length, causal in ((70, True), (128, False)):
    q, k, v, upward = (kernels.drawn(1, 2, length, 32, where="cpu", seed=seed) for seed in range(4))
    right = torch.nn.functional.scaled_dot_product_attention(
        *(one.requires_grad_() for one in (q, k, v)), is_causal=causal
    )
    gradients = torch.autograd.grad(right, (q, k, v), upward)
    rows = [one.detach() for one in (q, k, v)]
    out, logs = attention.forward(*rows, causal=causal)
    assert torch.allclose(out, right, atol=1e-5)
    for ours, theirs in zip(attention.backward(*rows, out, logs, upward, causal=causal), gradients, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4)
"""

COMPILED = """
import attention
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

for kernel, warps in ((attention._forward, 4), (attention._backward_queries, 4), (attention._backward_keys, 8)):
    names = kernel.arg_names
    constants = {"causal": True, "width": 128, "tile": attention.TILE}
    kinds = {"length": "i32", "scale": "fp32", "root": "fp32", "logs": "*fp32", "dots": "*fp32"}
    signature = {name: "constexpr" if name in constants else kinds.get(name, "*bf16") for name in names}
    source = ASTSource(kernel, signature, {(names.index(name),): value for name, value in constants.items()})
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})
    assert "wgmma" in compiled.asm["ptx"] or "mma.sync" in compiled.asm["ptx"]
    assert compiled.metadata.shared <= 227 * 1024
    assert compiled.asm["cubin"]
"""


OLD_INTERPRETER = "InterpreterError: TypeError('only 0-dimensional arrays can be converted to Python scalars')"
"""What Triton 3.6 raises for the bound of a loop with numpy 2.4: it makes an integer of an array of one element."""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("script", "interpreted"),
    [(KERNELS, "1"), (ATTENTION, "1"), (COMPILED, "0")],
    ids=["kernels", "attention", "sm_90"],
)
def test_the_kernels_of_triton_are_right_and_compile_without_a_gpu(script: str, interpreted: str) -> None:
    """In Triton's interpreter, beside torch; for an H100 by Triton's own assembler."""
    if find_spec("triton") is None or find_spec("torch") is None:
        pytest.skip("triton or torch is not installed")
    places = os.pathsep.join((str(EXAMPLES / "triton_kernels"), os.environ.get("PYTHONPATH", "")))
    env = {**os.environ, "TRITON_INTERPRET": interpreted, "PYTHONPATH": places}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False)
    if OLD_INTERPRETER in done.stderr:
        pytest.skip("the interpreter of this Triton does not run with this numpy: Triton 3.9 and numpy before 2.4 do")
    assert done.returncode == 0, done.stderr


@pytest.mark.corpus
def test_a_binary_of_nvbench_is_a_case(tmp_path: Path) -> None:
    recorded = next(iter(sorted(corpus("nvbench").glob("*.json"))))
    binary = tmp_path / "bench"
    binary.write_text(f'#!/bin/sh\ncp "{recorded}" "$2"\n')
    binary.chmod(0o755)
    folder = shutil.copytree(EXAMPLES / "nvbench", tmp_path / "nvbench")
    code, text = run(folder, "--perfgate=quick", NVBENCH=str(binary))
    assert code == 0, text
    assert "1 passed" in text
