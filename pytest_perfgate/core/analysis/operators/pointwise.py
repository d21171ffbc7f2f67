"""Elementwise operators, operators on lists, fused operators."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from pytest_perfgate.core.analysis.work import known_dtype, rate_noun, width
from pytest_perfgate.core.analysis.work_layers import cross_entropy, embedding, streamed
from pytest_perfgate.core.analysis.work_layers import reduction as reduced
from pytest_perfgate.core.analysis.work_layers import softmax as softmaxed
from pytest_perfgate.model.values import Work, regex, value

if TYPE_CHECKING:
    from pytest_perfgate.core.analysis.operators import OperatorCall

_UNARY = (
    "abs clamp clamp_min clamp_max cos elu erf exp gelu hardswish hardtanh leaky_relu log log1p logical_not neg pow "
    "reciprocal relu round rsqrt sigmoid sign silu sin softplus sqrt tanh threshold bitwise_not isnan"
)

_BINARY = (
    "add sub rsub mul div eq ne lt le gt ge maximum minimum fmod remainder bitwise_and bitwise_or logical_and "
    "logical_or atan2 sigmoid_backward tanh_backward gelu_backward silu_backward threshold_backward"
)

_REDUCTIONS = "sum mean amax amin max min prod norm linalg_vector_norm all any argmax argmin var std logsumexp"

_OF_BOOLEANS = "eq ne lt le gt ge logical_and logical_or logical_not isnan"
"""Operators that write booleans; in place they write the operand's type."""


def _written(call: OperatorCall, dtype: str) -> float:
    """Return the bytes of an element of the result, for operands of this type."""
    return width("bool" if call.name.removeprefix("aten::") in _OF_BOOLEANS.split() else dtype)


def unary(call: OperatorCall) -> Work:
    count = prod(call.shape(0))
    return streamed(count, call.size(0) + count * _written(call, call.type(0)), call.dtype(0), "elementwise")


def binary(call: OperatorCall, operands: int = 2) -> Work:
    """Operands broadcast; a scalar moves nothing."""
    tensors = [at for at in range(operands) if call.tensor(at)]
    if not tensors:
        raise ValueError(f"neither operand of {call.name} is a tensor")
    shape = _broadcast([call.shape(at) for at in tensors])
    widest = max(tensors, key=lambda at: _promotion(call, at))
    number = bool(shape) and not call.shape(widest) and call.type(widest) == "double"
    ratio = call.name == "aten::div" and len(call.types) == operands and _promotion(call, widest)[0] < _FLOATS
    dtype = "fp32" if number or ratio else call.dtype(widest)  # 2.0 of Python beside integers, and their ratio
    written = call.type(0) if call.name.endswith("_") else dtype
    moved = sum(call.size(at) for at in tensors) + prod(shape) * _written(call, written)
    return streamed(prod(shape), moved, dtype, "elementwise")


def _promotion(call: OperatorCall, at: int) -> tuple[int, bool, float]:
    """Order operands as PyTorch promotes types: floats before integers, then shapes before scalars, then width."""
    dtype = call.dtype(at)
    return 0 if dtype == "bool" else 1 if rate_noun(dtype) else _FLOATS, len(call.shape(at)) > 0, width(dtype)


_FLOATS = 2


def ternary(call: OperatorCall) -> Work:
    return binary(call, operands=3)


def copied(call: OperatorCall) -> Work:
    """The source is read in its shape and dtype, the target written in its own."""
    read = prod(call.shape(1)) * width(call.type(1))
    return streamed(0, call.size(0) + read, call.dtype(0), "copy")


def filled(call: OperatorCall) -> Work:
    return streamed(0, call.size(0), call.dtype(0), "fill")


def reduction(call: OperatorCall) -> Work:
    shape, at = call.shape(0), 2 if "norm" in call.name else 1  # a norm has its order before the dimensions
    dims = call.numbers(at) if call.type(at) in {"ScalarList", "Scalar"} else ()
    usable = [d for d in dims if -len(shape) <= d < len(shape)]
    return reduced(shape, dtype=call.dtype(0), dims=usable or None)


def softmax(call: OperatorCall) -> Work:
    return softmaxed(call.shape(0), dtype=call.dtype(0))


def softmax_backward(call: OperatorCall) -> Work:
    return softmaxed(call.shape(0), dtype=call.dtype(0), backward=True)


def gathered(call: OperatorCall) -> Work:
    return embedding(prod(call.shape(1)), call.shape(0)[-1], dtype=call.dtype(0), index=call.type(1))


def selected(call: OperatorCall) -> Work:
    """Entries along one dimension; that of a vector is its only one, recorded or not."""
    shape = call.shape(0)
    dim = 0 if len(shape) == 1 else call.number(1)
    others = prod(size for at, size in enumerate(shape) if at != dim % len(shape))
    return embedding(prod(call.shape(2)), others, dtype=call.dtype(0), index=call.type(2))


def loss(call: OperatorCall) -> Work:
    rows, vocabulary = call.shape(0)
    return cross_entropy(rows, vocabulary, dtype=call.dtype(0))


def rotated(call: OperatorCall) -> Work:
    """Read positions, then the queries and keys that are rotated in place."""
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
    "aten::mse_loss_backward": ternary,
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

GATHERS = {"aten::embedding": gathered, "aten::index_select": selected}

LOSSES = {"aten::cross_entropy_loss": loss}

ROTATIONS = dict.fromkeys(("_C::rotary_embedding", "vllm::rotary_embedding"), rotated)

_EACH = regex(r"^aten::_foreach_([a-z0-9_]+?)(_?)$")

_FUSED = regex(r"^aten::_fused_(adamw|adam|sgd)_?$")

_OPAQUE = regex(r"OpaqueType<(\d+)u?>")

_ELEMENT = regex(r"(?:CatArrayBatchedCopy\w*|\w*Functor\w*)<([\w: ]+)(?:, ([\w: ]+))?")

_FLOPS = {"zero": 0, "copy": 0, "norm": 2, "addcmul": 3, "addcdiv": 3, "lerp": 3}
"""Operations an element; by default one."""


@value
class ElementPasses:
    """The lists that an operator reads and writes, by their number, and its operations."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    flops: int


_OPTIMISERS = {
    "adam": ElementPasses(reads=(0, 1, 2, 3), writes=(0, 2, 3), flops=13),
    "adamw": ElementPasses(reads=(0, 1, 2, 3), writes=(0, 2, 3), flops=15),
    "sgd": ElementPasses(reads=(0, 1, 2), writes=(0, 2), flops=4),
}
"""Parameters, gradients, then the moments; the largest second moments of amsgrad are read and written too."""


def is_list_operator(name: str) -> bool:
    return bool(_EACH.match(name) or _FUSED.match(name))


def each(call: OperatorCall) -> Work:
    """One pass over lists of tensors."""
    lists = [at for at in range(len(call.types)) if call.type(at) == "TensorList"]
    sizes = [size for size in (elements(call, at) for at in lists) if size]
    if not sizes:
        raise ValueError(f"{call.name} has no shapes of its lists")
    sorts = element_types(call.kernel)
    passes = _passes(call.name, sizes)
    moved = sum(sizes[at] * _width(sorts, at) for at in (*passes.reads, *passes.writes) if at < len(sizes))
    if not passes.writes:  # a norm writes one number for each tensor
        moved += len(call.dims[lists[0]]) * _width(sorts, 0)
    return _listed(passes.flops * sizes[0], moved, sorts)


def joined(call: OperatorCall) -> Work:
    """Concatenated tensors: each is read once and written once."""
    if call.type(0) != "TensorList":
        raise ValueError(f"argument 0 of {call.name} is not a list of tensors")
    return _listed(0, 2 * elements(call, 0) * _width(element_types(call.kernel), 0), element_types(call.kernel))


def elements(call: OperatorCall, at: int) -> int:
    """Return the elements of all tensors of a list; an absent optional tensor has none."""
    shapes = call.dims[at] if at < len(call.dims) else ()
    return sum(prod(shape) for shape in shapes if shape and all(isinstance(n, int) for n in shape))


def element_types(kernel: str) -> tuple[str, ...]:
    """Return the element types, or ``N bytes``, in a kernel's name."""
    opaque = _OPAQUE.search(kernel)
    if opaque:
        return (f"{opaque.group(1)} bytes",)
    match = _ELEMENT.search(kernel)
    if match is None:
        return ()
    names = [part.strip() for part in match.groups() if part and known_dtype(part)]
    return tuple(names if "CopyFunctor" in kernel else names[:1])


def _passes(name: str, sizes: list[int]) -> ElementPasses:
    """Return the passes over lists as long as the first; step counters and the like are ignored."""
    fused = _FUSED.match(name)
    if fused:
        plan = _OPTIMISERS[fused.group(1)]
        more = (4,) if len(sizes) > 4 and sizes[4] == sizes[0] else ()
        return ElementPasses(reads=(*plan.reads, *more), writes=(*plan.writes, *more), flops=plan.flops)
    match = _EACH.match(name)
    stem, in_place = (match.group(1), bool(match.group(2))) if match else ("", False)
    whole = tuple(at for at, size in enumerate(sizes) if size == sizes[0])
    flops = _FLOPS.get(stem, 1)
    if stem == "zero":
        return ElementPasses(reads=(), writes=(0,), flops=flops)
    if stem == "copy":
        return ElementPasses(reads=(1,) if in_place else (0,), writes=(0,), flops=flops)
    return ElementPasses(reads=whole, writes=() if stem == "norm" else (0,), flops=flops)


def _width(sorts: tuple[str, ...], at: int) -> float:
    """Return the bytes of an element of one list; two types are those of target and source."""
    if not sorts:
        raise ValueError("a list records no element type, and no kernel's name states it")
    sort = sorts[min(at, len(sorts) - 1)]
    return float(sort.partition(" ")[0]) if sort.endswith(" bytes") else width(sort)


def _listed(flops: float, moved: float, sorts: tuple[str, ...]) -> Work:
    dtype = known_dtype(sorts[0]) or "" if sorts else ""
    return replace(
        streamed(flops, moved, dtype, "lists"), note=f"element type from the kernel's name: {', '.join(sorts)}"
    )


JOINED = dict.fromkeys(("aten::cat", "aten::_cat", "aten::concat", "aten::stack"), joined)

NAME = regex(r"^triton_(poi|red|per)_fused_(.+?)_(\d+)$")

_FREE = "view unsafe_view clone t transpose permute expand unsqueeze squeeze slice to copy"
"""Operators that compute nothing."""


def triton(call: OperatorCall) -> Work:
    """One operation an element of each computing fused operator, over the largest traced tensor."""
    tensors = call.tensors()
    if not tensors:
        raise ValueError("no arguments were traced")
    largest = max(prod(call.shape(at)) for at in tensors)
    moved = sum(call.size(at) for at in tensors)
    work = streamed(largest * len(fused_operators(call.name)), moved, call.dtype(tensors[0]), "fused")
    return replace(work, note="estimated from the fused operators' names and the traced arguments")


def fused_operators(name: str) -> tuple[str, ...]:
    """Return the computing operators that a fused kernel's name lists."""
    match = NAME.match(name)
    if not match:
        return ()
    listed = match.group(2).replace("_unsafe_view", "").replace("__", "_").strip("_")
    return tuple(word for word in listed.split("_") if word and word not in _FREE.split() and not word.isdigit())
