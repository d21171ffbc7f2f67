"""Three small kernels on the host, to try the gate on any machine."""

from __future__ import annotations

import numpy as np


def gemm(a, b):
    """A matrix product."""
    return a @ b


def softmax(x):
    """Softmax over the last axis, stable."""
    shifted = x - x.max(axis=-1, keepdims=True)
    powers = np.exp(shifted)
    return powers / powers.sum(axis=-1, keepdims=True)


def layer_norm(x, eps=1e-5):
    """Layer normalisation over the last axis."""
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps)
