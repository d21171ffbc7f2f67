"""A performance gate for kernels: mark, measure, judge, accept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_perfgate import model, testing, work
    from pytest_perfgate.model.errors import PerfgateError
    from pytest_perfgate.plugin.calls import View
    from pytest_perfgate.plugin.fixture import Perfgate
    from pytest_perfgate.wiring.profiling import compare, frame, frames, look, profile


__version__ = "0.1.0"

__all__ = [
    "Perfgate",
    "PerfgateError",
    "View",
    "__version__",
    "compare",
    "frame",
    "frames",
    "look",
    "model",
    "profile",
    "testing",
    "work",
]

_HOMES = {
    "model": ("pytest_perfgate.model", ""),
    "testing": ("pytest_perfgate.testing", ""),
    "work": ("pytest_perfgate.work", ""),
    "Perfgate": ("pytest_perfgate.plugin.fixture", "Perfgate"),
    "View": ("pytest_perfgate.plugin.calls", "View"),
    "PerfgateError": ("pytest_perfgate.model.errors", "PerfgateError"),
    "look": ("pytest_perfgate.wiring.profiling", "look"),
    "compare": ("pytest_perfgate.wiring.profiling", "compare"),
    "frame": ("pytest_perfgate.wiring.profiling", "frame"),
    "frames": ("pytest_perfgate.wiring.profiling", "frames"),
    "profile": ("pytest_perfgate.wiring.profiling", "profile"),
}


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that importing the package stays free."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOMES[name]
    loaded = import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


def __dir__() -> list[str]:
    return sorted(__all__)
