"""Values of the model as compact JSON and back: defaults left out, what repeats written once."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.limit import Limit
from pytest_perfgate.model.measurement import Environment, Identity
from pytest_perfgate.model.metric import Absent
from pytest_perfgate.model.work import Work

T = TypeVar("T")
SHARED = (Absent, Device, Environment, Identity, Limit, Work, Baseline)
"""Written once in the list ``shared``; ``{"shared": 3}`` stands where one is used."""


def packed(value: Any) -> tuple[Any, list[Any]]:
    """(tree of plain values, list of what was written once)."""
    shared: list[Any] = []
    places: dict[Any, int] = {}

    def pack(value: Any) -> Any:
        if isinstance(value, enum.Enum):
            return value.value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, (tuple, list)):
            return [pack(child) for child in value]
        if not dataclasses.is_dataclass(value):
            return value
        if not isinstance(value, SHARED):
            return fields(value)
        if value not in places:
            body = fields(value)
            places[value] = len(shared)
            shared.append(body)
        return {"shared": places[value]}

    def fields(value: Any) -> dict[str, Any]:
        pairs = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {field.name: pack(given) for field, given in pairs if given != field.default or _kept(field)}

    return pack(value), shared


def _kept(field: dataclasses.Field[Any]) -> bool:
    return field.name == "schema"


def unpacked(tree: Any, shared: list[Any], kind: type[T]) -> T:
    """The value of this kind again; a wrong tree raises ``msgspec.ValidationError``."""
    resolved: list[Any] = []

    def resolve(node: Any) -> Any:
        if isinstance(node, Mapping):
            if set(node) == {"shared"}:
                return resolved[node["shared"]]
            if set(node) == {"float"}:
                return float(node["float"])
            return {key: resolve(child) for key, child in node.items()}
        return [resolve(child) for child in node] if isinstance(node, list) else node

    for body in shared:
        resolved.append(resolve(body))  # noqa: PERF401 - a body may point at an earlier one
    return msgspec.convert(resolve(tree), type=kind)
