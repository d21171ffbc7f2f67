"""Mutants of what a module does when it is imported: each tried with a fresh import of the package."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.abc
import importlib.machinery
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ci.mutation.mutants import ROOT, Mutant
from ci.mutation.trial import ENDLESS, FAILED, OPTIONS, PASSED, PROPERTIES, TESTS, UNTRIED, forked, keep, say

SECONDS = 120
"""Of processor time, for each part of the tests."""
WAY = "afresh"
OWN = ("pytest_perfgate", "tests", "ci")
NAMED = ("pytest_perfgate.wiring", "pytest_perfgate.cli.dispatch")
"""They import by names in tables: what imports one of them may reach anything."""


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module its mutated source."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> Any:
        if name != self.mutant.module:
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=str(self.mutant.path))

    def create_module(self, _spec: object) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        exec(compile(self.mutant.tree(), str(self.mutant.path), "exec"), vars(module))


# which tests can notice a module


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """Return the names of modules, and of what is in them, that a file imports anywhere."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.ImportFrom):
            names.add("*")  # none of ours is written so: whoever does may reach anything
    return frozenset(names)


@functools.cache
def modules() -> dict[str, Path]:
    return {module_of(p): p for place in ("pytest_perfgate", "tests") for p in (ROOT / place).rglob("*.py")}


@functools.cache
def everything_from(path: Path) -> frozenset[str]:
    """Return all modules of ours that a file reaches by its imports."""
    reached: set[str] = set()
    pending = [*imports(path)]
    while pending:
        name = pending.pop()
        if name in {"*", "pytest_perfgate", *NAMED}:
            return frozenset(modules())
        if name not in reached and name in modules():
            reached.add(name)
            pending += imports(modules()[name])
    return frozenset(reached)


def test_files() -> list[Path]:
    files = [p for t in (*TESTS, *PROPERTIES) for p in ([ROOT / t] if t.endswith(".py") else (ROOT / t).rglob("*.py"))]
    return sorted((p for p in files if p.name.startswith("test_")), key=str)


def leading_to(modules: set[str]) -> list[Path]:
    """Return the tests that can notice a change of one of these modules."""
    return [path for path in test_files() if modules & everything_from(path)]


def stages(mutant: Mutant, reach: dict[str, list[str]]) -> Iterator[list[Path]]:
    """Yield the tests of a mutant in three parts: those that name its module, those that run it, and all others.

    Tests of properties, the slowest, come last in each.
    """
    running = {Path(p) for p in reach.get(str(mutant.path), [])}
    candidates = {*leading_to({mutant.module}), *running}
    speaking = {p for p in candidates if mutant.module in imports(p) or p.stem == f"test_{mutant.path.stem}"}
    for files in (speaking, running - speaking, candidates - running - speaking):
        yield sorted(files, key=lambda p: (str(p.relative_to(ROOT)) in PROPERTIES, str(p)))


# trying them


def prepare(loaded: list[str]) -> None:
    """Import foreign packages once for all mutants."""
    for name in loaded:
        if name.split(".")[0] not in OWN and name != "__main__" and not name.startswith(("test_", "conftest")):
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def tested(mutant: Mutant | None, files: list[Path], folder: Path) -> str:
    """Return how the tests end if everything is imported with the mutant in it."""

    def attempt() -> bool:
        import pytest

        if mutant:
            sys.meta_path.insert(0, Mutated(mutant))
        return pytest.main([*OPTIONS, f"--basetemp={folder}/tests", *map(str, files)]) == 0

    return forked(SECONDS, attempt) if files else PASSED


def afresh(mutants: list[Mutant], folder: Path) -> bool:
    """Try mutants one by one, each with a fresh import; return False if the tests fail without any change."""
    prepare(json.loads((folder / "loaded.json").read_text(encoding="utf-8")))
    if mutants and tested(None, leading_to({m.module for m in mutants}), folder) != PASSED:
        return False
    reach = json.loads((folder / "reach.json").read_text(encoding="utf-8"))["files"]
    begun, sound = time.monotonic(), ""
    for at, mutant in enumerate(mutants, 1):
        parts = list(stages(mutant, reach))
        if mutant.module != sound and tested(None, parts[0], folder) != PASSED:
            return False
        sound, how = mutant.module, PASSED
        for files in parts:
            how = tested(mutant, files, folder) if how == PASSED else how
        if how != UNTRIED:
            keep(mutant, how, WAY)
        word = {PASSED: "survived", FAILED: "killed", ENDLESS: "killed, endless"}.get(how, how)
        say(f"{at} of {len(mutants)} afresh, {time.monotonic() - begun:.0f} s: {word}  {mutant}")
    return True
