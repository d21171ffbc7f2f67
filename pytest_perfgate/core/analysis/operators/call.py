"""One recorded call of an operator: its shapes, types, strides and scalars, read without evaluating anything."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from math import prod
from typing import Any

from pytest_perfgate.core.analysis.work.products import known_dtype, width
from pytest_perfgate.model.values import value

_NUMBER = re.compile(r"-?\d+")


@value
class Call:
    """Arguments by position. An absent tensor is ``[]`` with an empty type."""

    name: str
    dims: tuple[Any, ...] = ()
    types: tuple[str, ...] = ()
    strides: tuple[Any, ...] = ()
    concrete: tuple[Any, ...] = ()
    kernel: str = ""
    """The name of its longest kernel, which says what a list of tensors does not: the element type."""

    @property
    def recorded(self) -> bool:
        return bool(self.types)

    def type(self, at: int) -> str:
        return str(self.types[at]) if at < len(self.types) else ""

    def tensor(self, at: int) -> bool:
        """Whether a tensor was given there: an element type, whatever its shape."""
        return known_dtype(self.type(at)) is not None

    def shape(self, at: int) -> tuple[int, ...]:
        """The shape of a tensor that must be there."""
        if not self.tensor(at):
            raise ValueError(f"argument {at} of {self.name} is not a tensor")
        shape = tuple(self.dims[at])
        if any(type(side) is not int or not 0 <= side < 1 << 63 for side in shape):
            raise ValueError(f"argument {at} has the shape {list(shape)}")
        return shape

    def dtype(self, at: int = 0) -> str:
        dtype = known_dtype(self.type(at))
        if dtype is None:
            raise ValueError(f"argument {at} of {self.name} is not a tensor")
        return dtype

    def size(self, at: int) -> float:
        """Bytes of the tensor there; none when it is absent."""
        return prod(self.shape(at)) * width(self.type(at)) if self.tensor(at) else 0.0

    def text(self, at: int) -> str:
        return str(self.concrete[at]) if at < len(self.concrete) else ""

    def numbers(self, at: int) -> tuple[int, ...]:
        """A recorded list of integers."""
        return tuple(int(n) for n in _NUMBER.findall(self.text(at)))

    def number(self, at: int) -> int:
        numbers = self.numbers(at)
        if not numbers:
            raise ValueError(f"argument {at} of {self.name} was not recorded")
        return numbers[0]

    def flag(self, at: int) -> bool:
        """A recorded truth value: ``False`` arrives as text."""
        return self.text(at) in {"True", "true", "1"}

    def flags(self, at: int) -> tuple[bool, ...]:
        return tuple(word == "True" for word in re.findall(r"True|False", self.text(at)))

    def tensors(self) -> tuple[int, ...]:
        """Positions of tensors."""
        return tuple(at for at in range(len(self.types)) if self.tensor(at))


def parse_call(name: str, arguments: Sequence[bytes]) -> Call:
    """The call whose recorded JSON this is; what does not parse was not recorded."""
    dims, types, strides, concrete = (_parsed(text) for text in arguments)
    shaped = tuple(sizes if isinstance(sizes, tuple) else () for sizes in dims)
    return Call(
        name=name,
        dims=shaped + ((),) * (len(types) - len(shaped)),
        types=tuple(map(str, types)),
        strides=tuple(steps if isinstance(steps, tuple) else () for steps in strides),
        concrete=concrete,
    )


def _parsed(text: bytes) -> tuple[Any, ...]:
    try:
        value = json.loads(text) if text else []
        return _frozen(value) if isinstance(value, list) else ()
    except (ValueError, RecursionError):
        return ()


def _frozen(found: list[Any]) -> tuple[Any, ...]:
    return tuple(_frozen(item) if isinstance(item, list) else item for item in found)
