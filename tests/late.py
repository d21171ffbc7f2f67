"""A heavy library that each process imports when one of its tests uses it, and not while it collects."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


class Late:
    """The library's names, by an import at the first that is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if (name.startswith("_") and name != "__version__") or "pytest" in name:  # the collector looks at every global
            raise AttributeError(name)
        return getattr(import_module(self._name), name)


def late(name: str, reason: str) -> Any:
    """Like ``pytest.importorskip`` at the head of a module, without the import."""
    if find_spec(name) is None:
        pytest.skip(reason, allow_module_level=True)
    return Late(name)
