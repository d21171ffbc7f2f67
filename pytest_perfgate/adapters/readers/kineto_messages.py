"""What the profiler says of a collective."""

from __future__ import annotations

from typing import Any

from pytest_perfgate.adapters.readers.kineto_events import Arguments
from pytest_perfgate.model.trace import Message

_WIDTHS = {
    "float": 4,
    "double": 8,
    "half": 2,
    "bfloat16": 2,
    "long": 8,
    "int": 4,
    "byte": 1,
    "char": 1,
    "bool": 1,
    "short": 2,
    "float8": 1,
}


def message(args: Arguments) -> Message:
    """The recorded collective, its element counts as bytes where the dtype is known."""
    dtype = str(args.dtype or "")
    size = _width(dtype)
    ranks = _number(args.group_size)
    return Message(
        collective=args.collective or "",
        group=str(args.group if args.group is not None else ""),
        ranks=int(ranks) if ranks is not None else None,
        sent=_bytes(args.sent, size),
        received=_bytes(args.received, size),
        dtype=dtype,
    )


def _width(dtype: str) -> int | None:
    plain = dtype.lower().removeprefix("c10::").removeprefix("torch.")
    return _WIDTHS.get(plain) or next((w for name, w in _WIDTHS.items() if plain.startswith(name)), None)


def _number(given: Any) -> float | None:
    return float(given) if isinstance(given, (int, float)) and not isinstance(given, bool) else None


def _bytes(count: Any, size: int | None) -> float | None:
    number = _number(count)
    return number * size if number is not None and size is not None else None
