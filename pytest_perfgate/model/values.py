"""How a value of the model is declared: frozen, slotted, keyword-only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> object:
        return lambda decorator: decorator


@dataclass_transform(kw_only_default=True, frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """Declare a value that is compared by what it holds."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
def array_value(cls: type[T]) -> type[T]:
    """Declare a value that holds arrays and is therefore compared by identity."""
    return dataclass(frozen=True, slots=True, kw_only=True, eq=False)(cls)
