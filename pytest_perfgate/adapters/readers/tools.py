"""NVIDIA's command-line tools: on PATH, or in the wheels that bring them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from pytest_perfgate.model.errors import PerfgateError

_FOLDERS = ("nvidia/*/bin", "triton/backends/nvidia/bin")
"""Of site-packages: NVIDIA's own wheels before what Triton brings along."""


def tool(name: str) -> Path:
    """Where a tool is; an error names the extra that brings it."""
    return every_tool(name)[0]


def every_tool(name: str) -> tuple[Path, ...]:
    """Each place it is in: an older toolkit on PATH may not know what the wheel beside it knows."""
    found = tuple(dict.fromkeys(_found(name)))
    if not found:
        raise PerfgateError("kernel-tool", f"{name} is neither on PATH nor among the installed wheels")
    return found


def _found(name: str) -> Iterator[Path]:
    on_path = shutil.which(name)
    if on_path:
        yield Path(on_path)
    for entry in filter(None, sys.path):
        for folder in _FOLDERS:
            for place in sorted(Path(entry).glob(folder), reverse=True):
                if (place / name).is_file():
                    yield place / name
