"""The proof of an arm: which files the modules of the package under test came from."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection
from pathlib import Path


def loaded_modules(names: Collection[str]) -> tuple[tuple[str, str], ...]:
    """(file, hash) of every loaded module below these top-level names, sorted by file."""
    wanted = set(names)
    files = {
        str(Path(file).resolve())
        for name, module in list(sys.modules.items())
        if name.split(".", 1)[0] in wanted and isinstance(file := getattr(module, "__file__", None), str)
    }
    return tuple((file, _digest(Path(file))) for file in sorted(files))


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except OSError:
        return "unreadable"
