"""Work of matrix products and collectives, dtypes, and work as stated by the user."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

from pytest_perfgate.model.values import Work


class ElementType(Protocol):
    """The ``dtype`` of an array of NumPy, PyTorch, CuPy or JAX."""

    @property
    def itemsize(self) -> int: ...


Dtype = str | type[Any] | ElementType
"""An element type: its name, a class such as ``numpy.float32``, or the ``dtype`` of an array."""

P = ParamSpec("P")

T = TypeVar("T")

_PLAIN = frozenset({int, float, str, bool, type(None)})


def exact(count: Callable[P, T]) -> Callable[P, T]:
    """Convert arguments to Python's own numbers, which do not overflow."""

    @wraps(count)
    def counted(*args: P.args, **keywords: P.kwargs) -> T:
        if _PLAIN.issuperset(map(type, args)) and _PLAIN.issuperset(map(type, keywords.values())):
            return count(*args, **keywords)
        return count(*map(plain, args), **{name: plain(value) for name, value in keywords.items()})

    return counted


def plain(value: Any) -> Any:
    """Return numbers of numpy and the like as Python's; anything else unchanged."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, (tuple, list)):
        return tuple(map(plain, value))
    listed = getattr(value, "tolist", None)
    return listed() if callable(listed) and hasattr(value, "shape") and not isinstance(value, type) else value


@exact
def gemm(m: int, n: int, k: int, *, dtype: Dtype, bias: bool = False, out: Dtype | None = None) -> Work:
    """``(m, k) @ (k, n)``, with ``bias`` adding one vector of n; ``out`` is the result's dtype where it differs."""
    return bmm(1, m, n, k, dtype=dtype, bias=bias) if out is None else _product((1, m, n, k), (dtype, dtype, out), bias)


@exact
def bmm(batch: int, m: int, n: int, k: int, *, dtype: Dtype, bias: bool = False) -> Work:
    """A batch of independent products ``(m, k) @ (k, n)``."""
    return _product((batch, m, n, k), (dtype, dtype, dtype), bias)


@exact
def mixed_gemm(
    sizes: tuple[int, int, int, int], dtypes: tuple[Dtype, Dtype, Dtype], *, bias: Dtype | None = None
) -> Work:
    """A product of ``sizes`` (batch, m, n, k) whose operands, result and bias have dtypes of their own."""
    return _product(sizes, dtypes, bias is not None, bias)


@exact
def gemm_backward(m: int, n: int, k: int, *, dtype: Dtype, bias: bool = False) -> Work:
    """Both gradients of ``(m, k) @ (k, n)``; ``bias`` adds the sum over m."""
    size = width(dtype)
    flops = 4 * m * n * k + (m * n if bias else 0)
    moved = size * (2 * m * n + 2 * m * k + 2 * k * n + (n if bias else 0))
    return Work(flops=flops, bytes=moved, dtype=dtype_name(dtype), working_set=moved, family="gemm backward")


def _product(
    sizes: tuple[int, int, int, int], dtypes: tuple[Dtype, Dtype, Dtype], bias: bool, bias_dtype: Dtype | None = None
) -> Work:
    batch, m, n, k = sizes
    a, b, out = map(width, dtypes)
    added = width(bias_dtype or dtypes[2]) * n if bias else 0
    flops = batch * (2 * m * n * k + (m * n if bias else 0))
    moved = batch * (m * k * a + k * n * b + m * n * out + added)
    return Work(flops=flops, bytes=moved, dtype=dtype_name(dtypes[0]), working_set=moved, family="gemm")


WIDTHS = {
    "fp64": 8.0,
    "fp32": 4.0,
    "tf32": 4.0,
    "fp16": 2.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "fp6": 0.75,
    "fp4": 0.5,
    "fp64_tc": 8.0,
    "fp32_tc": 4.0,
    "fp16_acc16": 2.0,
    "fp8_acc32": 1.0,
    "int64": 8.0,
    "int32": 4.0,
    "int16": 2.0,
    "int8": 1.0,
    "int4": 0.5,
    "uint8": 1.0,
    "bool": 1.0,
    "complex64": 8.0,
    "complex128": 16.0,
}
"""Bytes an element takes, by canonical name; rates of their own within a type have names after an underscore."""

_CLASSES = {float: "fp64", int: "int64", complex: "complex128"}
"""Python's own classes, as NumPy and PyTorch take them."""

_NAMES = {
    "fp64": ("float64", "f64", "double"),
    "fp32": ("float32", "f32", "float"),
    "fp16": ("float16", "f16", "half", "c10::half"),
    "bf16": ("bfloat16", "c10::bfloat16"),
    "fp8": tuple(
        f"{space}float8_{form}" for space in ("", "c10::") for form in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")
    ),
    "fp4": ("float4_e2m1fn_x2", "c10::float4_e2m1fn_x2"),
    "int64": ("long", "long int", "long long", "uint64"),
    "int32": ("int", "uint32"),
    "int16": ("short", "short int", "uint16"),
    "int8": ("char", "signed char", "c10::qint8"),
    "uint8": ("unsigned char", "c10::quint8"),
    "complex64": ("c10::complex<float>",),
    "complex128": ("c10::complex<double>",),
}

_ALIASES = {name: dtype for dtype, names in _NAMES.items() for name in names}


OF_INSTRUCTIONS = {
    "IMMA": ("int8", "uint8", "int4"), "HMMA": ("fp16", "bf16", "tf32", "fp16_acc16"), "FFMA": ("fp32",),
    "QMMA": ("fp8", "fp8_acc32", "fp6"), "DMMA": ("fp64", "fp64_tc"), "DFMA": ("fp64",), "HFMA2": ("fp16", "bf16"),
}  # fmt: skip
"""The types that machine instructions compute in."""


def known_dtype(dtype: Dtype) -> str | None:
    """Return the canonical name of an element type, or ``None`` if it is not one."""
    plain = _name(dtype).strip().lower().removeprefix("torch.").removeprefix("numpy.")
    canonical = _ALIASES.get(plain, plain)
    return canonical if canonical in WIDTHS else None


def _name(dtype: Dtype) -> str:
    if isinstance(dtype, str):
        return dtype
    if isinstance(dtype, type):
        return _CLASSES.get(dtype, dtype.__name__)
    return str(getattr(dtype, "name", dtype))


def dtype_name(dtype: Dtype) -> str:
    """The canonical name of an element type: ``c10::BFloat16`` and ``torch.bfloat16`` are ``bf16``."""
    canonical = known_dtype(dtype)
    if canonical is None:
        known = ", ".join(sorted(WIDTHS))
        raise ValueError(f"unknown dtype {_name(dtype)!r}; known are {known}")
    return canonical


class NamedRate(float):
    """A rate that brings what it counts: texts show 2 Mtokens/s or 5 TOPS, JSON and CSV the plain number."""

    noun = ""


def named(rate: float, noun: str) -> NamedRate:
    made = NamedRate(rate)
    made.noun = noun
    return made


def rate_noun(dtype: str) -> str:
    """Return the unit of a rate of operations if their type is an integer, else ""."""
    return "OPS" if dtype.lstrip("u").startswith("int") else ""


def typed_rate(rate: float | None, dtype: str) -> float | None:
    """Return a rate of operations that brings its unit if their type is an integer."""
    noun = rate_noun(dtype)
    return named(rate, noun) if rate is not None and noun else rate


def width(dtype: Dtype) -> float:
    """Bytes an element of this type takes."""
    return WIDTHS[dtype_name(dtype)]


_FACTORS = {"allreduce": 2, "allgather": 1, "reducescatter": 1, "alltoall": 1, "gather": 1, "scatter": 1}
"""How many times (n - 1) / n of the message crosses each link."""


def collective(kind: str, message: float, ranks: int) -> Work:
    """The bytes that each link of the bus carries; ``message`` is the larger of what a rank sends and receives."""
    moved = message * bus_factor(kind, ranks)
    return Work(flops=0, bytes=moved, working_set=message, family="collective", note=kind)


def bus_factor(kind: str, ranks: int) -> float:
    """Return bus bandwidth over algorithm bandwidth of a collective among ``ranks``."""
    plain = "".join(char for char in kind.lower() if char.isalpha()).removesuffix("base").removesuffix("v")
    factor = next((f for name, f in _FACTORS.items() if name in plain), None)
    return factor * (ranks - 1) / ranks if factor and ranks > 0 else 1.0


@exact
def items(count: float, unit: str = "items", *, of: Work | None = None) -> Work:
    """``count`` items as the unit of throughput: tokens, images, requests; ``of`` a work with operations and bytes."""
    return replace(of or Work(family="items"), items=stated("count", count), unit=unit)


@exact
def custom(
    *,
    flops: float | None = None,
    bytes: float | None = None,  # noqa: A002 - the name that users expect
    dtype: Dtype = "",
    working_set: float | None = None,
    note: str = "",
) -> Work:
    """Operations and bytes as the user counts them; at least one of the two."""
    if flops is None and bytes is None:
        raise ValueError("custom work states flops=, bytes= or both")
    for name, count in (("flops", flops), ("bytes", bytes), ("working_set", working_set)):
        if count is not None:
            stated(name, count)
    return Work(
        flops=flops,
        bytes=bytes,
        dtype=dtype_name(dtype) if dtype else "",
        working_set=bytes if working_set is None else working_set,
        note=note,
    )


_FIGURES = ("flops", "bytes", "items", "working_set")


def stated(name: str, count: Any) -> Any:
    """Return the count; refuse a negative or infinite one, and anything that is not a number."""
    fault = count_fault(count)
    if fault:
        raise ValueError(f"{name}={count!r:.60} {fault}")
    return count


def count_fault(count: Any) -> str:
    """Return why something is not a count; "" if it is one."""
    if isinstance(count, int) and not isinstance(count, bool):
        return "is negative" if count < 0 else ""
    try:
        number = float(count) if not isinstance(count, (str, bytes, bool)) else None
    except (TypeError, ValueError):
        number = None
    if number is None:
        return "is not a number"
    if not math.isfinite(number):
        return "is not finite"
    return "is negative" if number < 0 else ""


def work_fault(work: Work) -> str:
    """Return what is wrong with an operator's work, such as a negative size; "" if nothing is."""
    counts = ((name, getattr(work, name)) for name in _FIGURES)
    faults = ((name, count, count_fault(count)) for name, count in counts if count is not None)
    return next((f"its {name} {fault}: {count!r:.60}" for name, count, fault in faults if fault), "")
