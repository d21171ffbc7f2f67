"""NVIDIA's command-line tools: on PATH, or in the wheels that bring them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from pytest_perfgate.model.errors import PerfgateError


def tool(name: str) -> Path:
    """Where a tool is; an error names the extra that brings it."""
    found = find_tool(name)
    if found is None:
        raise PerfgateError("kernel-tool", f"{name} is neither on PATH nor among the installed wheels")
    return found


def find_tool(name: str) -> Path | None:
    """The first of PATH and ``nvidia/*/bin`` in site-packages, newest toolkit first."""
    on_path = shutil.which(name)
    if on_path:
        return Path(on_path)
    return next((place / name for place in _wheels() if (place / name).is_file()), None)


def _wheels() -> Iterator[Path]:
    for entry in filter(None, sys.path):
        yield from sorted(Path(entry).glob("nvidia/*/bin"), reverse=True)
