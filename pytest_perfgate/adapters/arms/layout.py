"""Layouts: where a checkout keeps its modules and its tests."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

_COMPILED = {
    ".c",
    ".cc",
    ".cpp",
    ".cxx",
    ".cu",
    ".cuh",
    ".h",
    ".hpp",
    ".hip",
    ".f",
    ".f90",
    ".f95",
    ".m",
    ".mm",
    ".zig",
}
_CODE = _COMPILED | {".py", ".pyx", ".pyd", ".so", ".rs", ".go", ".jl", ".metal", ".cl", ".v", ".zig"}
_TESTS = {"tests", "test"}


def inside_package(root: Path, path: str) -> bool:
    """Whether pytest would import a test file through the package under test.

    It climbs while it sees ``__init__.py``; a package that is only called ``tests`` is nobody's.
    """
    folder = (root / path).parent
    top = None
    while (folder / "__init__.py").is_file() and folder != root:
        top, folder = folder, folder.parent
    return top is not None and top.name not in _TESTS


def source_modules(folder: Path) -> tuple[str, ...]:
    """Top-level names that can be imported from a checkout, in a flat or a src layout."""
    names = set()
    for place in (folder, folder / "src"):
        if place.is_dir():
            names |= {p.parent.name for p in place.glob("*/__init__.py")}
            names |= {p.stem for p in place.glob("*.py") if not p.stem.startswith(("test_", "conftest", "setup"))}
    return tuple(sorted(names - _TESTS))


def with_conftests(paths: Sequence[str]) -> tuple[str, ...]:
    """Test files and every ``conftest.py`` that applies to them."""
    found = dict.fromkeys(paths)
    for path in paths:
        found.update(dict.fromkeys(str(parent / "conftest.py") for parent in PurePosixPath(path).parents))
    return tuple(found)


def only_tests(folder: Path, paths: Sequence[str]) -> bool:
    """Whether a checkout holds no code but tests: they are the same on both sides, and nothing is left to prove."""
    known = {folder / path for path in paths}
    found = (place for place in folder.rglob("*") if place.suffix in _CODE)
    code = (place for place in found if ".perfgate" not in place.relative_to(folder).parts)  # it may lie in one itself
    return all(place in known or place.name == "conftest.py" or place.name.startswith("test_") for place in code)


def lay_over(source: Path, target: Path) -> None:
    """Put a file or a folder of the working copy where a checkout has its own."""
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    elif source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
