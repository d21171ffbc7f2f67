"""A sequence that nobody pays for until somebody looks at it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeVar

T = TypeVar("T")


class Later(Sequence[T]):
    """Its members are made when first asked for, and once."""

    def __init__(self, make: Callable[[], Iterable[T]]) -> None:
        self._make = make

    @cached_property
    def _members(self) -> tuple[T, ...]:
        return tuple(self._make())

    def __getitem__(self, at: Any) -> Any:
        return self._members[at]

    def __len__(self) -> int:
        return len(self._members)
