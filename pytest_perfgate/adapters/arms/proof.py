"""The proof of an arm: which files the modules of the package under test came from, and what they hold."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection
from pathlib import Path

_LEFT = frozenset({".git", ".perfgate", "__pycache__", "bin", "build", ".pytest_cache"})
_MARKS = frozenset({".pyc", ".pth"})


def loaded_modules(names: Collection[str]) -> tuple[tuple[str, str], ...]:
    """(file, hash) of every loaded module below these top-level names, sorted by file."""
    wanted = set(names)
    files = {
        str(Path(file).resolve())
        for name, module in list(sys.modules.items())
        if name.split(".", 1)[0] in wanted and isinstance(file := getattr(module, "__file__", None), str)
    }
    return tuple((file, _digest(Path(file))) for file in sorted(files))


def content_of(folder: Path) -> str:
    """A hash of every file below a folder that code may load or read; what builds and Python leave is none."""
    said = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if not _LEFT.intersection(inside.parts) and path.suffix not in _MARKS and path.is_file():
            if any(part.endswith((".dist-info", ".egg-info")) for part in inside.parts):
                continue
            said.update(f"{inside.as_posix()}\0{_digest(path)}\0".encode())
    return said.hexdigest()[:20]


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except OSError:
        return "unreadable"
