"""The composition root: the one file that names adapters. Everything is imported on first use."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

Part = tuple[str, ...]
"""A factory as ``module:name`` below ``pytest_perfgate.``, then the parts that it is given."""

_RUNTIMES: tuple[Part, ...] = ()
_TIMERS: tuple[Part, ...] = ()
_PROFILERS: tuple[Part, ...] = ()
_INSPECTORS: tuple[Part, ...] = (
    (
        "app.inspections.kineto:Kineto",
        "adapters.readers.kineto:read_kineto",
        "adapters.readers.kineto:looks_like_kineto",
        "adapters.devices.catalogue:DeviceCatalogue",
        "adapters.formats.replay:write_replay",
    ),
)
_DELIVERIES: tuple[Part, ...] = ()
"""The built-ins; of several that recognise a thing the first wins."""


class BuiltIns:
    """Our own instruments; they come in by the same hooks as anybody's."""

    def pytest_perfgate_runtimes(self) -> Sequence[Any]:
        return _made(_RUNTIMES)

    def pytest_perfgate_timers(self) -> Sequence[Any]:
        return _made(_TIMERS)

    def pytest_perfgate_profilers(self) -> Sequence[Any]:
        return _made(_PROFILERS)

    def pytest_perfgate_inspectors(self) -> Sequence[Any]:
        return _made(_INSPECTORS)

    def pytest_perfgate_deliveries(self) -> Sequence[Any]:
        return _made(_DELIVERIES)


def _made(parts: Sequence[Part]) -> list[Any]:
    return [made(part) for part in parts]


def made(part: Part) -> Any:
    """What a factory makes of the parts it is given: how a use case meets its adapter."""
    factory, *given = (_found(place) for place in part)
    return factory(*given)


def _found(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"pytest_perfgate.{module}"), name)
