"""Calls of torch on a GPU, and what gets worse where ``PLANTED`` names it."""

from __future__ import annotations

import os

import torch

PLANTED = os.environ.get("PLANTED", "").split()
SIZE = 16 << 20


def rows() -> torch.Tensor:
    return torch.ones(SIZE, device="cuda")


def scaled(numbers: torch.Tensor) -> torch.Tensor:
    """Doubles the numbers. Planted: a scratch buffer of a tenth of them, which takes no time."""
    scratch = torch.empty(SIZE // 10 if "memory" in PLANTED else 0, device=numbers.device)
    doubled = numbers * 2
    return doubled[: SIZE - scratch.numel()]


def fused(numbers: torch.Tensor) -> torch.Tensor:
    """One kernel. Planted: a second one, as after a lost fusion."""
    done = torch.addcmul(numbers, numbers, numbers)
    return done.mul_(1.0) if "speedup" in PLANTED else done


def unfused(numbers: torch.Tensor) -> torch.Tensor:
    """The same in three kernels."""
    squares = numbers * numbers
    return (numbers + squares).mul_(1.0)
