"""Work of attention, convolutions, norms, elementwise operations and experts."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, TypedDict, Union

from pytest_perfgate.core.analysis.work import Dtype, dtype_name, exact, stated, width
from pytest_perfgate.model.values import Work, value

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AttentionOptions(TypedDict, total=False):
    """Options of attention beyond its square, single-group form."""

    keys: int
    kv_heads: int
    value_dim: int
    causal: bool
    bottom_right: bool


@exact
def attention(
    batch: int, heads: int, queries: int, head_dim: int, *, dtype: Dtype, **options: Unpack[AttentionOptions]
) -> Work:
    """Scaled dot-product attention, forward.

    Options: ``keys`` (sequence length of K and V), ``kv_heads`` (grouped-query attention), ``value_dim``,
    ``causal``, and ``bottom_right`` where the causal diagonal ends at the last key (FlashAttention's
    alignment) rather than starting at the first (PyTorch's).
    """
    return _dense((batch, heads, queries, head_dim), dtype, options, backward=False)


@exact
def attention_backward(
    batch: int, heads: int, queries: int, head_dim: int, *, dtype: Dtype, **options: Unpack[AttentionOptions]
) -> Work:
    """Its gradients: Q, K, V and dO read, dQ, dK and dV written, the scores computed again."""
    return _dense((batch, heads, queries, head_dim), dtype, options, backward=True)


def kept_area(queries: int, keys: int, *, bottom_right: bool = False) -> int:
    """Return the scores that a causal mask keeps of ``queries`` x ``keys``."""
    shift = keys - queries if bottom_right else 0
    first, last = shift + 1, shift + queries
    full = max(0, last - keys) if last > keys else 0
    low, high = max(first, 1), min(last, keys)
    ramp = (low + high) * (high - low + 1) // 2 if high >= low else 0
    return ramp + min(full, queries) * keys


def _dense(sizes: tuple[int, int, int, int], dtype: Dtype, options: AttentionOptions, *, backward: bool) -> Work:
    batch, heads, queries, dim = sizes
    keys = options.get("keys", queries)
    aligned = options.get("bottom_right", False)
    area = kept_area(queries, keys, bottom_right=aligned) if options.get("causal") else queries * keys
    both = Heads(query=heads, key=options.get("kv_heads", heads), dim=dim, value_dim=options.get("value_dim", dim))
    return packed_work(batch * area, (batch * queries, batch * keys), both, dtype, backward=backward)


class PackedOptions(TypedDict, total=False):
    """Options of packed attention beyond its single-group form."""

    keys: Sequence[int]
    kv_heads: int
    value_dim: int
    causal: bool
    bottom_right: bool
    backward: bool


@value
class Packing:
    """The known facts of packed sequences without their lengths: totals, number, the longest."""

    queries: int
    keys: int
    sequences: int
    longest_query: int
    longest_key: int


@value
class Heads:
    """The other sizes of an attention."""

    query: int
    key: int
    dim: int
    value_dim: int


@exact
def packed_attention(
    lengths: Sequence[int], heads: int, head_dim: int, *, dtype: Dtype, **options: Unpack[PackedOptions]
) -> Work:
    """Attention over packed sequences of these lengths, summed over the sequences.

    Options: ``keys`` (the lengths of K and V), ``kv_heads``, ``value_dim``, ``causal``, ``bottom_right`` (true unless
    said otherwise: FlashAttention's alignment) and ``backward`` for the gradients.
    """
    keys = options.get("keys", lengths)
    if len(keys) != len(lengths):
        raise ValueError(f"{len(lengths)} query sequences meet {len(keys)} key sequences")
    sizes = Heads(
        query=heads,
        key=options.get("kv_heads", heads),
        dim=head_dim,
        value_dim=options.get("value_dim", head_dim),
    )
    aligned = options.get("bottom_right", True)
    area = sum(kept_area(q, k, bottom_right=aligned) if options.get("causal") else q * k for q, k in zip(lengths, keys))
    return packed_work(area, (sum(lengths), sum(keys)), sizes, dtype, backward=options.get("backward", False))


def packed_work(
    area: int | None, tokens: tuple[int, int], heads: Heads, dtype: Dtype, *, backward: bool = False
) -> Work:
    """Return the work of an area of scores over so many tokens; without an area, only the bytes."""
    if heads.key < 1 or heads.query % heads.key:
        raise ValueError(f"{heads.query} query heads cannot share {heads.key} key heads")
    queries, keys = tokens
    both = heads.dim + heads.value_dim
    if backward:
        scores, added = 6 * heads.dim + 4 * heads.value_dim, (heads.query - heads.key) * keys * both
        elements = heads.query * queries * (2 * heads.dim + heads.value_dim) + 2 * heads.key * keys * both
    else:
        scores, added = 2 * both, 0
        elements = heads.query * queries * both + heads.key * keys * both
    moved = elements * width(dtype)
    return Work(
        flops=heads.query * area * scores + added if area is not None else None,
        bytes=moved,
        dtype=dtype_name(dtype),
        working_set=moved,
        family="attention backward" if backward else "attention",
    )


def area_bounds(packing: Packing, *, causal: bool) -> tuple[int, int]:
    """Return the least and most scores that sequences of unknown length can keep; equal if they are certain.

    Equal totals and equal longest are taken as self-attention: a sequence has as many keys as queries.
    """
    queries, keys, count = packing.queries, packing.keys, packing.sequences
    longest, longest_key = packing.longest_query, packing.longest_key
    if queries == count * longest:
        return _equal_queries(packing, causal)
    if keys == count * longest_key and not causal:
        return queries * longest_key, queries * longest_key
    if queries == keys and longest == longest_key:
        least, most = -(-queries * queries // count), _most_squares(queries, longest)
        return ((least + queries) // 2, (most + queries) // 2) if causal else (least, most)
    return 0, min(queries * longest_key, keys * longest)


def _equal_queries(packing: Packing, causal: bool) -> tuple[int, int]:
    """Return the bounds if every sequence has the longest's number of queries."""
    each, count, keys = packing.longest_query, packing.sequences, packing.keys
    whole = each * keys
    if not causal or each == 1:
        return whole, whole
    if keys == count * packing.longest_key:
        area = count * kept_area(each, packing.longest_key, bottom_right=True)
        return area, area
    return max(0, whole - count * each * (each - 1) // 2), whole


def _most_squares(total: int, longest: int) -> int:
    """Return the largest sum of squares of lengths up to the longest that sum to the total."""
    full, rest = divmod(total, max(longest, 1))
    return full * longest * longest + rest * rest


Sizes = Union[int, Sequence[int]]


class ConvolutionOptions(TypedDict, total=False):
    """Options of a convolution beyond its shapes."""

    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int
    bias: bool
    transposed: bool
    output_padding: Sizes


@exact
def conv(x: Sequence[int], weight: Sequence[int], *, dtype: Dtype, **options: Unpack[ConvolutionOptions]) -> Work:
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
    dtype: Dtype,
    mask: tuple[bool, bool, bool] = (True, True, True),
    **options: Unpack[ConvolutionOptions],
) -> Work:
    """The gradients of input, weight and bias selected by ``mask``, each product as in the forward pass."""
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
    """Return the shape of the result."""
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
def norm(shape: Shape, channels: int, *, dtype: Dtype, affine: bool = True, training: bool = False) -> Work:
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
def rms_norm(shape: Shape, channels: int, *, dtype: Dtype, affine: bool = True) -> Work:
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
    dtype: Dtype,
    mask: tuple[bool, bool, bool] = (True, True, True),
    affine: bool = True,
) -> Work:
    """The gradients of input, weight and bias selected by ``mask``."""
    count, size = elements(shape), width(dtype)
    per_channel = count / channels
    flops = channels * (
        4 * per_channel + sum((5 * per_channel * mask[0], 2 * per_channel * mask[1], per_channel * mask[2]))
    )
    moved = count * size * (2 + mask[0]) + channels * size * (2 + affine + mask[1] + mask[2])
    return streamed(flops, moved, dtype, "normalization backward")


Shape = Union[int, Sequence[int]]


@exact
def elementwise(
    shape: Shape, *, dtype: Dtype, inputs: int = 1, outputs: int = 1, flops_per_element: float = 1.0
) -> Work:
    """``inputs`` tensors of one shape read, ``outputs`` written."""
    count = elements(shape)
    return streamed(flops_per_element * count, (inputs + outputs) * count * width(dtype), dtype, "elementwise")


@exact
def reduction(shape: Shape, *, dtype: Dtype, dims: Sequence[int] | None = None, out: Dtype | None = None) -> Work:
    """A reduction of ``shape`` over ``dims`` (all of them when not given)."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    gone = set(range(len(sizes))) if dims is None else {d % max(len(sizes), 1) for d in dims}
    kept_size = prod(size for at, size in enumerate(sizes) if at not in gone)
    count = prod(sizes)
    return streamed(count, count * width(dtype) + kept_size * width(out or dtype), dtype, "reduction")


@exact
def softmax(shape: Shape, *, dtype: Dtype, backward: bool = False) -> Work:
    """Softmax over the last dimension; its gradient reads two tensors."""
    count = elements(shape)
    tensors = 3 if backward else 2
    return streamed(3 * count, tensors * count * width(dtype), dtype, "softmax")


@exact
def cross_entropy(batch: int, vocabulary: int, *, dtype: Dtype, targets: Dtype = "int64") -> Work:
    """The loss over logits, one target a row."""
    moved = batch * vocabulary * width(dtype) + batch * width(targets)
    return streamed(5 * batch * vocabulary, moved, dtype, "cross entropy")


@exact
def rope(shape: Shape, *, dtype: Dtype) -> Work:
    """Rotary position embedding of one tensor."""
    count = elements(shape)
    return streamed(3 * count, 2 * count * width(dtype), dtype, "rope")


@exact
def embedding(rows: int, dim: int, *, dtype: Dtype, index: Dtype = "int64") -> Work:
    """Rows gathered from a table: indices and rows read, rows written, no arithmetic."""
    return streamed(0, rows * width(index) + 2 * rows * dim * width(dtype), dtype, "embedding")


@exact
def copy(moved: float) -> Work:
    """``moved`` bytes read and as many written."""
    return streamed(0, 2 * stated("moved", moved), "", "copy")


def elements(shape: Shape) -> int:
    """Return the number of elements of a shape; a number is its own."""
    return shape if isinstance(shape, int) else prod(shape)


def streamed(flops: float, moved: float, dtype: Dtype, family: str) -> Work:
    """Return work whose working set is what it moves."""
    return Work(flops=flops, bytes=moved, dtype=dtype_name(dtype) if dtype else "", working_set=moved, family=family)


@exact
def grouped_gemm(rows: int, n: int, k: int, groups: int, *, dtype: Dtype) -> Work:
    """``rows`` rows, each multiplied by the matrix of its group."""
    size = width(dtype)
    moved = size * (rows * k + groups * k * n + rows * n)
    return streamed(2 * rows * n * k, moved, dtype, "grouped gemm")


@exact
def fused_moe(
    tokens: int, sizes: tuple[int, int], experts: int, *, dtype: Dtype, top: int = 1, gated: bool = True
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
