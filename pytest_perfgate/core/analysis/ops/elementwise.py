"""Elementwise operators, reductions and what is made of them: bytes decide, operations are counted."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Union

from pytest_perfgate.core.analysis.ops.dtypes import dtype_name, width
from pytest_perfgate.core.analysis.ops.exact import exact
from pytest_perfgate.core.analysis.ops.stated import stated
from pytest_perfgate.model.work import Work

Shape = Union[int, Sequence[int]]


@exact
def elementwise(shape: Shape, *, dtype: str, inputs: int = 1, outputs: int = 1, flops_per_element: float = 1.0) -> Work:
    """``inputs`` tensors of one shape read, ``outputs`` written."""
    count = elements(shape)
    return streamed(flops_per_element * count, (inputs + outputs) * count * width(dtype), dtype, "elementwise")


@exact
def reduction(shape: Shape, *, dtype: str, dims: Sequence[int] | None = None, out: str | None = None) -> Work:
    """A reduction of ``shape`` over ``dims`` (all of them when not given)."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    gone = set(range(len(sizes))) if dims is None else {d % max(len(sizes), 1) for d in dims}
    left = prod(size for at, size in enumerate(sizes) if at not in gone)
    count = prod(sizes)
    return streamed(count, count * width(dtype) + left * width(out or dtype), dtype, "reduction")


@exact
def softmax(shape: Shape, *, dtype: str, backward: bool = False) -> Work:
    """Softmax over the last dimension; its gradient reads two tensors."""
    count = elements(shape)
    tensors = 3 if backward else 2
    return streamed(3 * count, tensors * count * width(dtype), dtype, "softmax")


@exact
def cross_entropy(batch: int, vocabulary: int, *, dtype: str, targets: str = "int64") -> Work:
    """The loss over logits, one target a row."""
    moved = batch * vocabulary * width(dtype) + batch * width(targets)
    return streamed(5 * batch * vocabulary, moved, dtype, "cross entropy")


@exact
def rope(shape: Shape, *, dtype: str) -> Work:
    """Rotary position embedding of one tensor."""
    count = elements(shape)
    return streamed(3 * count, 2 * count * width(dtype), dtype, "rope")


@exact
def embedding(rows: int, dim: int, *, dtype: str, index: str = "int64") -> Work:
    """Rows gathered from a table: indices and rows read, rows written, no arithmetic."""
    return streamed(0, rows * width(index) + 2 * rows * dim * width(dtype), dtype, "embedding")


@exact
def copy(moved: float) -> Work:
    """``moved`` bytes read and as many written."""
    return streamed(0, 2 * stated("moved", moved), "", "copy")


def elements(shape: Shape) -> int:
    """How many elements a shape holds; a number stands for itself."""
    return shape if isinstance(shape, int) else prod(shape)


def streamed(flops: float, moved: float, dtype: str, family: str) -> Work:
    """Work whose working set is what it moves."""
    return Work(flops=flops, bytes=moved, dtype=dtype_name(dtype) if dtype else "", working_set=moved, family=family)
