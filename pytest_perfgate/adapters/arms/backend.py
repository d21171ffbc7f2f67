"""Build backends: what a project wants to be built with, and whether the caller's environment has it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

_PROGRAMS = {"mesonpy": (("meson",), ("ninja",)), "scikit_build_core": (("cmake",), ("ninja", "make"))}
"""What a backend starts: one name of each group is enough. Such requirements stand in no pyproject.toml."""

_NAMING = ("packages", "py_modules", "ext_modules")
_NOT = ("test", "tests", "setup", "conftest", "docs", "examples", "benchmarks", "scripts", "tools", "build")
"""Names that setuptools leaves out by itself, as far as they are usual."""


def is_buildable(folder: Path) -> bool:
    """Whether a folder is there for building: tool tables alone make no project."""
    table = _pyproject(folder)
    poetry = isinstance(table.get("tool"), dict) and "poetry" in table["tool"]
    return (folder / "setup.py").is_file() or "build-system" in table or "project" in table or poetry


def missing_tools(folder: Path) -> tuple[str, ...]:
    """What pip would have to download to build here: requirements that this environment does not meet."""
    system = _pyproject(folder).get("build-system")
    system = system if isinstance(system, dict) else {}
    wanted = [str(one) for one in system.get("requires", ["setuptools"])]
    backend = str(system.get("build-backend", "setuptools")).partition(":")[0].partition(".")[0]
    wheel = ["wheel"] if backend == "setuptools" and not _is_met("setuptools>=70.1") else []
    lacking = [one for one in dict.fromkeys((*wanted, *wheel)) if not _is_met(one)]
    return (*lacking, *_lacking_programs(backend))


def scripts_first() -> str:
    """``PATH`` with this environment's own programs in front: a build finds its meson though nothing is activated."""
    return os.pathsep.join(part for part in (str(Path(sys.executable).parent), os.environ.get("PATH", "")) if part)


def _lacking_programs(backend: str) -> Iterator[str]:
    for names in _PROGRAMS.get(backend, ()):
        if not any(shutil.which(name, path=scripts_first()) or _is_met(name) for name in names):
            yield names[0]


def _is_met(text: str) -> bool:
    """Whether an installed distribution meets a requirement; what cannot be read is left to pip."""
    rules = import_module("packaging.requirements")
    try:
        wanted = rules.Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate():
            return True
        return bool(wanted.specifier.contains(metadata.version(wanted.name), prereleases=True))
    except (rules.InvalidRequirement, metadata.PackageNotFoundError):
        return False


def _pyproject(folder: Path) -> dict[str, Any]:
    """The tables of a ``pyproject.toml``; none where there is no such file, or pip will say what is wrong with it."""
    reader = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        found: dict[str, Any] = reader.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def taken_for_package(folder: Path, name: str) -> str:
    """What to write into ``pyproject.toml`` where setuptools finds packages by itself, and takes this folder for one.

    Of a flat layout any folder with a Python name is a package then; of two it makes none and ends.
    """
    table = _pyproject(folder)
    system, tool = table.get("build-system", {}), table.get("tool", {}).get("setuptools", {})
    if not is_buildable(folder) or not str(system.get("build-backend", "setuptools")).startswith("setuptools"):
        return ""
    if not name.isidentifier() or "packages" in tool or "py-modules" in tool or (folder / "src").is_dir():
        return ""
    if any(word in _read(folder / file) for file in ("setup.py", "setup.cfg") for word in _NAMING):
        return ""
    found = sorted(
        place.parent.name for place in folder.glob("*/__init__.py") if place.parent.name not in {name, *_NOT}
    )
    if found:
        return f"[tool.setuptools.packages.find] include = {json.dumps([f'{one}*' for one in found])} in pyproject.toml"
    files = sorted(place.stem for place in folder.glob("*.py") if not place.stem.startswith(("test_", *_NOT)))
    return f"[tool.setuptools] py-modules = {json.dumps(files)} in pyproject.toml"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
