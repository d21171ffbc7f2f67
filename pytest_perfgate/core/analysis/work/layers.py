"""Work of convolutions, norms, elementwise, experts."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, TypedDict, Union

from pytest_perfgate.core.analysis.work.products import dtype_name, exact, stated, width
from pytest_perfgate.model.values import Work

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


@exact
def norm(shape: Shape, channels: int, *, dtype: str, affine: bool = True, training: bool = False) -> Work:
    """Layer, batch, group or instance normalisation over ``channels`` statistics.

    Two operations an element normalise and, in training, three more gather the statistics; six a channel
    prepare scale and shift. Statistics and affine parameters are moved only where present.
    """
    count, size = elements(shape), width(dtype)
    flops = 6 * channels + 2 * count + (3 * count if training else 0)
    moved = 2 * count * size + 2 * channels * size * (training + affine)
    return streamed(flops, moved, dtype, "normalization")


layer_norm = batch_norm = group_norm = norm


@exact
def rms_norm(shape: Shape, channels: int, *, dtype: str, affine: bool = True) -> Work:
    """Root-mean-square normalisation of rows of ``channels`` elements."""
    count, size = elements(shape), width(dtype)
    rows = count // channels
    flops = rows * (2 * channels + 2) + count * (2 if affine else 1)
    moved = 2 * count * size + (channels * size if affine else 0)
    return streamed(flops, moved, dtype, "normalization")


@exact
def norm_backward(
    shape: Shape,
    channels: int,
    *,
    dtype: str,
    mask: tuple[bool, bool, bool] = (True, True, True),
    affine: bool = True,
) -> Work:
    """The gradients of input, weight and bias that ``mask`` asks for."""
    count, size = elements(shape), width(dtype)
    per_channel = count / channels
    flops = channels * (
        4 * per_channel + sum((5 * per_channel * mask[0], 2 * per_channel * mask[1], per_channel * mask[2]))
    )
    moved = count * size * (2 + mask[0]) + channels * size * (2 + affine + mask[1] + mask[2])
    return streamed(flops, moved, dtype, "normalization backward")


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
    kept_size = prod(size for at, size in enumerate(sizes) if at not in gone)
    count = prod(sizes)
    return streamed(count, count * width(dtype) + kept_size * width(out or dtype), dtype, "reduction")


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


@exact
def grouped_gemm(rows: int, n: int, k: int, groups: int, *, dtype: str) -> Work:
    """``rows`` rows, each multiplied by the matrix of its group."""
    size = width(dtype)
    moved = size * (rows * k + groups * k * n + rows * n)
    return streamed(2 * rows * n * k, moved, dtype, "grouped gemm")


@exact
def fused_moe(
    tokens: int, sizes: tuple[int, int], experts: int, *, dtype: str, top: int = 1, gated: bool = True
) -> Work:
    """A mixture of experts of ``sizes`` (model, inner), each token going to ``top`` of ``experts``.

    Routing is taken as uniform: of E experts, ``E (1 - ((E - top) / E) ** tokens)`` are read.
    """
    model, inner = sizes
    first = 2 * inner if gated else inner
    flops = 2 * tokens * top * model * (first + inner)
    read = experts * (1 - ((experts - top) / experts) ** tokens)
    moved = width(dtype) * (read * model * (first + inner) + 2 * tokens * model)
    return streamed(flops, moved, dtype, "fused moe")
