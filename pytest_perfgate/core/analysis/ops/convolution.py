"""Convolutions of any rank: forward, transposed, and the gradients that were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, TypedDict, Union

from pytest_perfgate.core.analysis.ops.dtypes import dtype_name, width
from pytest_perfgate.core.analysis.ops.exact import exact
from pytest_perfgate.model.work import Work

if TYPE_CHECKING:
    from typing_extensions import Unpack

Sizes = Union[int, Sequence[int]]


class ConvolutionOptions(TypedDict, total=False):
    """What a convolution may be told beside its shapes."""

    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int
    bias: bool
    transposed: bool
    output_padding: Sizes


@exact
def conv(x: Sequence[int], weight: Sequence[int], *, dtype: str, **options: Unpack[ConvolutionOptions]) -> Work:
    """A convolution of ``x`` (N, C, …) with ``weight`` as PyTorch lays it out.

    Options: ``stride``, ``padding``, ``dilation``, ``output_padding`` (a number or one a dimension),
    ``groups`` (for a transposed one), ``bias``, ``transposed``.
    """
    out = convolution_shape(x, weight, **options)
    flops = _forward(x, weight, out, options)
    flops += prod(out) if options.get("bias") else 0
    moved = width(dtype) * (prod(x) + prod(weight) + prod(out) + (out[1] if options.get("bias") else 0))
    return Work(flops=flops, bytes=moved, dtype=dtype_name(dtype), working_set=moved, family="convolution")


@exact
def conv_backward(
    x: Sequence[int],
    weight: Sequence[int],
    *,
    dtype: str,
    mask: tuple[bool, bool, bool] = (True, True, True),
    **options: Unpack[ConvolutionOptions],
) -> Work:
    """The gradients of input, weight and bias that ``mask`` asks for, each product as in the forward pass."""
    out = convolution_shape(x, weight, **options)
    flops = (mask[0] + mask[1]) * _forward(x, weight, out, options) + (prod(out) if mask[2] else 0)
    moved = width(dtype) * (
        prod(out)
        + (prod(weight) + prod(x) if mask[0] else 0)
        + (prod(x) + prod(weight) if mask[1] else 0)
        + (out[1] if mask[2] else 0)
    )
    return Work(flops=flops, bytes=moved, dtype=dtype_name(dtype), working_set=moved, family="convolution backward")


def convolution_shape(
    x: Sequence[int], weight: Sequence[int], **options: Unpack[ConvolutionOptions]
) -> tuple[int, ...]:
    """The shape of the result."""
    rank = len(x) - 2
    if rank < 1 or len(weight) != len(x):
        raise ValueError(f"input {tuple(x)} and weight {tuple(weight)} need the same rank of at least 3")
    stride, dilation = _each(options.get("stride", 1), rank), _each(options.get("dilation", 1), rank)
    padding, extra = _each(options.get("padding", 0), rank), _each(options.get("output_padding", 0), rank)
    spans = [d * (w - 1) + 1 for d, w in zip(dilation, weight[2:])]
    if options.get("transposed"):
        sizes = [(n - 1) * s - 2 * p + f + e for n, s, p, f, e in zip(x[2:], stride, padding, spans, extra)]
        return (x[0], weight[1] * options.get("groups", 1), *sizes)
    sizes = [(n + 2 * p - f) // s + 1 for n, s, p, f in zip(x[2:], stride, padding, spans)]
    return (x[0], weight[0], *sizes)


def _forward(x: Sequence[int], weight: Sequence[int], out: Sequence[int], options: ConvolutionOptions) -> int:
    return 2 * prod(x if options.get("transposed") else out) * prod(weight[1:])


def _each(sizes: Sizes, rank: int) -> tuple[int, ...]:
    if isinstance(sizes, int):
        return (sizes,) * rank
    return tuple(sizes) * rank if len(sizes) == 1 else tuple(sizes)
