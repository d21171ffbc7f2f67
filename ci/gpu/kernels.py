"""The Triton kernel of the check; importing it fails where Triton is not installed."""

# ruff: noqa: N803 - a kernel's constants

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit
def softmax_kernel(target, source, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(source + row * width + at, mask=at < width, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(target + row * width + at, e / tl.sum(e, axis=0), mask=at < width)


def softmax_rows(out: Any, rows: Any) -> Any:
    """Return the softmax of each row, and what was launched, with its compiled forms."""
    width = rows.shape[1]
    return softmax_kernel[(rows.shape[0],)](out, rows, width, BLOCK=triton.next_power_of_2(width))
