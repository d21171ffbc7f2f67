"""Operators that stream their tensors: elementwise, reductions, softmax, gathers."""

from __future__ import annotations

from math import prod

from pytest_perfgate.core.analysis.operators.call import Call
from pytest_perfgate.core.analysis.ops import Work, cross_entropy, embedding
from pytest_perfgate.core.analysis.ops import reduction as reduced
from pytest_perfgate.core.analysis.ops import softmax as softmaxed
from pytest_perfgate.core.analysis.ops.dtypes import width
from pytest_perfgate.core.analysis.ops.elementwise import streamed

_UNARY = (
    "abs clamp clamp_min clamp_max cos elu erf exp gelu hardswish hardtanh leaky_relu log log1p logical_not neg pow "
    "reciprocal relu round rsqrt sigmoid sign silu sin softplus sqrt tanh threshold bitwise_not isnan"
)
_BINARY = (
    "add sub rsub mul div eq ne lt le gt ge maximum minimum fmod remainder bitwise_and bitwise_or logical_and "
    "logical_or atan2 sigmoid_backward tanh_backward gelu_backward silu_backward threshold_backward mse_loss_backward"
)
_REDUCTIONS = "sum mean amax amin max min prod norm linalg_vector_norm all any argmax argmin var std logsumexp"


def unary(call: Call) -> Work:
    count = prod(call.shape(0))
    return streamed(count, 2 * call.size(0), call.dtype(0), "elementwise")


def binary(call: Call) -> Work:
    """Operands broadcast; a scalar moves nothing."""
    given = [at for at in (0, 1) if call.tensor(at)]
    shape = _broadcast([call.shape(at) for at in given])
    widest = max(given, key=lambda at: (len(call.shape(at)) > 0, width(call.type(at))))
    moved = sum(call.size(at) for at in given) + prod(shape) * width(call.type(widest))
    return streamed(prod(shape), moved, call.dtype(widest), "elementwise")


def copied(call: Call) -> Work:
    """The source is read in its dtype, the target written in its own."""
    count = prod(call.shape(0))
    return streamed(0, count * (width(call.type(0)) + width(call.type(1))), call.dtype(0), "copy")


def filled(call: Call) -> Work:
    return streamed(0, call.size(0), call.dtype(0), "fill")


def reduction(call: Call) -> Work:
    shape = call.shape(0)
    dims = call.numbers(1) if call.type(1) in {"ScalarList", "Scalar"} else ()
    usable = [d for d in dims if -len(shape) <= d < len(shape)]
    return reduced(shape, dtype=call.dtype(0), dims=usable or None)


def softmax(call: Call) -> Work:
    return softmaxed(call.shape(0), dtype=call.dtype(0))


def softmax_backward(call: Call) -> Work:
    return softmaxed(call.shape(0), dtype=call.dtype(0), backward=True)


def gathered(call: Call) -> Work:
    return embedding(prod(call.shape(1)), call.shape(0)[-1], dtype=call.dtype(0), index=call.type(1))


def loss(call: Call) -> Work:
    rows, vocabulary = call.shape(0)
    return cross_entropy(rows, vocabulary, dtype=call.dtype(0))


def rotated(call: Call) -> Work:
    """Positions, then the queries and keys that are turned in place."""
    both = [at for at in (1, 2) if call.tensor(at)]
    count = sum(prod(call.shape(at)) for at in both)
    return streamed(3 * count, 2 * sum(call.size(at) for at in both), call.dtype(1), "rope")


def _broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(0 if 0 in sizes else max(sizes) for sizes in zip(*padded))


def _named(names: str, model: object) -> dict[str, object]:
    return {f"aten::{name}{tail}": model for name in names.split() for tail in ("", "_")}


ELEMENTWISE = {
    **_named(_UNARY, unary),
    **_named(_BINARY, binary),
    "aten::copy_": copied,
    "aten::copy": copied,
    "aten::fill_": filled,
    "aten::zero_": filled,
}
REDUCTIONS = _named(_REDUCTIONS, reduction)
SOFTMAX = {
    "aten::_softmax": softmax,
    "aten::softmax": softmax,
    "aten::_log_softmax": softmax,
    "aten::_softmax_backward_data": softmax_backward,
    "aten::_log_softmax_backward_data": softmax_backward,
}
GATHERS = {"aten::embedding": gathered, "aten::index_select": gathered}
LOSSES = {"aten::cross_entropy_loss": loss}
ROTATIONS = dict.fromkeys(("_C::rotary_embedding", "vllm::rotary_embedding"), rotated)
