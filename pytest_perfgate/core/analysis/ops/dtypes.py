"""Widths of element types, under the names that data sheets, PyTorch and NumPy use."""

from __future__ import annotations

WIDTHS = {
    "fp64": 8.0,
    "fp32": 4.0,
    "tf32": 4.0,
    "fp16": 2.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "fp4": 0.5,
    "int64": 8.0,
    "int32": 4.0,
    "int16": 2.0,
    "int8": 1.0,
    "uint8": 1.0,
    "bool": 1.0,
    "complex64": 8.0,
    "complex128": 16.0,
}
"""Bytes an element takes, by canonical name."""

_ALIASES = {
    "float64": "fp64",
    "double": "fp64",
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "c10::half": "fp16",
    "bfloat16": "bf16",
    "c10::bfloat16": "bf16",
    "c10::float8_e4m3fn": "fp8",
    "c10::float8_e4m3fnuz": "fp8",
    "c10::float8_e5m2": "fp8",
    "c10::float8_e5m2fnuz": "fp8",
    "float8_e4m3fn": "fp8",
    "float8_e4m3fnuz": "fp8",
    "float8_e5m2": "fp8",
    "float8_e5m2fnuz": "fp8",
    "c10::float4_e2m1fn_x2": "fp4",
    "long": "int64",
    "long int": "int64",
    "long long": "int64",
    "int": "int32",
    "short": "int16",
    "short int": "int16",
    "signed char": "int8",
    "char": "int8",
    "unsigned char": "uint8",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "c10::quint8": "uint8",
    "c10::qint8": "int8",
    "uint16": "int16",
    "uint32": "int32",
    "uint64": "int64",
}


def known_dtype(name: str) -> str | None:
    """The canonical name of an element type, or ``None`` where it is no element type."""
    plain = name.strip().lower().removeprefix("torch.").removeprefix("numpy.")
    canonical = _ALIASES.get(plain, plain)
    return canonical if canonical in WIDTHS else None


def dtype_name(name: str) -> str:
    """The canonical name of an element type: ``c10::BFloat16`` and ``torch.bfloat16`` are ``bf16``."""
    canonical = known_dtype(name)
    if canonical is None:
        known = ", ".join(sorted(WIDTHS))
        raise ValueError(f"unknown dtype {name!r}; known are {known}")
    return canonical


def width(name: str) -> float:
    """Bytes an element of this type takes."""
    return WIDTHS[dtype_name(name)]
