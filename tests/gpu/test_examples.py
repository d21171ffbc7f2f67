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

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SUITES = ("triton_kernels", "compiled_kernels", "cuda_extension", "cupy_kernels", "nvbench")
REASONS = ("is not installed", "there is no GPU that", "the extension is not built", "NVBENCH names no binary")


def run(folder: Path, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", *options]
    hidden = {"CUDA_VISIBLE_DEVICES": "", "NVBENCH": "", "CI": "", "PYTEST_ADDOPTS": ""}
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **hidden, **env}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("suite", SUITES)
def test_without_a_gpu_a_suite_is_collected_and_says_why_it_skips(tmp_path: Path, suite: str) -> None:
    folder = shutil.copytree(EXAMPLES / suite, tmp_path / suite)
    done = run(folder)
    assert done.returncode == 5, done.stdout + done.stderr  # nothing was collected, and nothing failed
    assert any(reason in done.stdout for reason in REASONS), done.stdout
    assert "error" not in done.stdout.lower()


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


@pytest.mark.torch
def test_the_kernels_of_triton_are_right_in_its_interpreter() -> None:
    if find_spec("triton") is None or find_spec("torch") is None:
        pytest.skip("triton or torch is not installed")
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(EXAMPLES / "triton_kernels")}
    done = subprocess.run([sys.executable, "-c", KERNELS], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.corpus
def test_a_binary_of_nvbench_is_a_case(tmp_path: Path) -> None:
    recorded = next(iter(sorted(corpus("nvbench").glob("*.json"))))
    binary = tmp_path / "bench"
    binary.write_text(f'#!/bin/sh\ncp "{recorded}" "$2"\n')
    binary.chmod(0o755)
    folder = shutil.copytree(EXAMPLES / "nvbench", tmp_path / "nvbench")
    done = run(folder, "--perfgate=quick", NVBENCH=str(binary))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
