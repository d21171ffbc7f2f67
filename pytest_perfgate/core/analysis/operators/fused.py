"""Kernels that Inductor fused: bytes from the traced arguments, operations from the names it fused."""

from __future__ import annotations

import re
from math import prod

from pytest_perfgate.core.analysis.operators.call import Call
from pytest_perfgate.core.analysis.ops import Work
from pytest_perfgate.core.analysis.ops.elementwise import streamed

NAME = re.compile(r"^triton_(poi|red|per)_fused_(.+?)_(\d+)$")
_FREE = {
    "view",
    "unsafe_view",
    "clone",
    "t",
    "transpose",
    "permute",
    "expand",
    "unsqueeze",
    "squeeze",
    "slice",
    "to",
    "copy",
}
_WORDS = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")


def triton(call: Call) -> Work:
    """One operation an element of each fused operator that computes, over the largest traced tensor."""
    tensors = call.tensors()
    if not tensors:
        raise ValueError("no arguments were traced")
    largest = max(prod(call.shape(at)) for at in tensors)
    moved = sum(call.size(at) for at in tensors)
    work = streamed(largest * len(fused_operators(call.name)), moved, call.dtype(tensors[0]), "fused")
    return Work(
        flops=work.flops,
        bytes=work.bytes,
        dtype=work.dtype,
        working_set=work.bytes,
        family="fused",
        note="estimated from the fused operators' names and the traced arguments",
    )


def fused_operators(name: str) -> tuple[str, ...]:
    """Operators that a fused kernel's name lists and that compute something."""
    found = NAME.match(name)
    if not found:
        return ()
    listed = found.group(2).replace("_unsafe_view", "").replace("__", "_").strip("_")
    return tuple(word for word in listed.split("_") if word and word not in _FREE and not word.isdigit())
