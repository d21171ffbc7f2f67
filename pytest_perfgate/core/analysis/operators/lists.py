"""Operators on lists of tensors: a trace has the lists' shapes, and the kernel's name has their element type."""

from __future__ import annotations

import re
from math import prod

from pytest_perfgate.core.analysis.operators.call import Call
from pytest_perfgate.core.analysis.ops import Work
from pytest_perfgate.core.analysis.ops.dtypes import known_dtype, width
from pytest_perfgate.model.values import value

_EACH = re.compile(r"^aten::_foreach_([a-z0-9_]+?)(_?)$")
_FUSED = re.compile(r"^aten::_fused_(adamw|adam|sgd)_?$")
_OPAQUE = re.compile(r"OpaqueType<(\d+)u?>")
_ELEMENT = re.compile(r"(?:CatArrayBatchedCopy\w*|\w*Functor\w*)<([\w: ]+)(?:, ([\w: ]+))?")
_FLOPS = {"zero": 0, "copy": 0, "norm": 2, "addcmul": 3, "addcdiv": 3, "lerp": 3}
"""Operations an element; one where nothing is said."""


@value
class Passes:
    """Which lists an operator reads and writes, by their number among its lists, and what it computes."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    flops: int


_OPTIMISERS = {
    "adam": Passes(reads=(0, 1, 2, 3), writes=(0, 2, 3), flops=13),
    "adamw": Passes(reads=(0, 1, 2, 3), writes=(0, 2, 3), flops=15),
    "sgd": Passes(reads=(0, 1, 2), writes=(0, 2), flops=4),
}
"""Parameters, gradients, then the moments; the largest second moments of amsgrad are read and written too."""


def known(name: str) -> bool:
    """Whether this is an operator on lists of tensors."""
    return bool(_EACH.match(name) or _FUSED.match(name))


def each(call: Call) -> Work:
    """One pass over lists of tensors."""
    lists = [at for at in range(len(call.types)) if call.type(at) == "TensorList"]
    sizes = [elements(call, at) for at in lists]
    if not any(sizes):
        raise ValueError(f"{call.name} has no shapes of its lists")
    sorts = element_types(call.kernel)
    passes = _passes(call.name, [n for n in sizes if n])
    kept = [n for n in sizes if n]
    moved = sum(kept[at] * _width(sorts, at) for at in (*passes.reads, *passes.writes) if at < len(kept))
    if passes.writes == ():
        moved += len(call.dims[lists[0]]) * _width(sorts, 0)
    return _listed(passes.flops * kept[0], moved, sorts)


def joined(call: Call) -> Work:
    """Tensors put one behind the other: each read once and written once."""
    if call.type(0) != "TensorList":
        raise ValueError(f"argument 0 of {call.name} is no list of tensors")
    return _listed(0, 2 * elements(call, 0) * _width(element_types(call.kernel), 0), element_types(call.kernel))


def elements(call: Call, at: int) -> int:
    """Elements of all tensors of a list; an optional tensor that is absent has none."""
    shapes = call.dims[at] if at < len(call.dims) else ()
    return sum(prod(shape) for shape in shapes if shape and all(isinstance(n, int) for n in shape))


def element_types(kernel: str) -> tuple[str, ...]:
    """Element types, or ``N bytes``, that a kernel was compiled for, as its name says."""
    opaque = _OPAQUE.search(kernel)
    if opaque:
        return (f"{opaque.group(1)} bytes",)
    found = _ELEMENT.search(kernel)
    if found is None:
        return ()
    names = [part.strip() for part in found.groups() if part and known_dtype(part)]
    return tuple(names if "CopyFunctor" in kernel else names[:1])


def _passes(name: str, sizes: list[int]) -> Passes:
    """The lists that hold as many elements as the first take part; step counters and the like do not."""
    fused = _FUSED.match(name)
    if fused:
        plan = _OPTIMISERS[fused.group(1)]
        more = (4,) if len(sizes) > 4 and sizes[4] == sizes[0] else ()
        return Passes(reads=(*plan.reads, *more), writes=(*plan.writes, *more), flops=plan.flops)
    found = _EACH.match(name)
    stem, in_place = (found.group(1), bool(found.group(2))) if found else ("", False)
    whole = tuple(at for at, size in enumerate(sizes) if size == sizes[0])
    flops = _FLOPS.get(stem, 1)
    if stem == "zero":
        return Passes(reads=(), writes=(0,), flops=flops)
    if stem == "copy":
        return Passes(reads=(1,) if in_place else (0,), writes=(0,), flops=flops)
    return Passes(reads=whole, writes=() if stem == "norm" else (0,), flops=flops)


def _width(sorts: tuple[str, ...], at: int) -> float:
    """Bytes of an element of one list; two types are those of target and source."""
    if not sorts:
        raise ValueError("a list's element type is not recorded, and the kernel's name does not say it")
    sort = sorts[min(at, len(sorts) - 1)]
    return float(sort.partition(" ")[0]) if sort.endswith(" bytes") else width(sort)


def _listed(flops: float, moved: float, sorts: tuple[str, ...]) -> Work:
    return Work(
        flops=flops,
        bytes=moved,
        dtype=known_dtype(sorts[0]) or "" if sorts else "",
        working_set=moved,
        family="lists",
        note=f"element type from the kernel's name: {', '.join(sorts)}",
    )


JOINED = dict.fromkeys(("aten::cat", "aten::_cat", "aten::concat", "aten::stack"), joined)
