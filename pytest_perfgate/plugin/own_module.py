"""A test file of another version than the one on the disk, collected in its place."""

from __future__ import annotations

import ast
import linecache
import sys
import types
from typing import TYPE_CHECKING

import pytest
from _pytest.assertion.rewrite import rewrite_asserts

if TYPE_CHECKING:
    from pathlib import Path


class OwnModule(pytest.Module):
    """Runs its own text under the name of the file, asserts rewritten as pytest does."""

    text = ""

    def _getobj(self) -> types.ModuleType:
        place = str(self.path)
        linecache.cache[place] = (len(self.text), None, self.text.splitlines(keepends=True), place)
        tree = ast.parse(self.text, place)
        if self.config.getoption("assertmode", "rewrite") == "rewrite":
            rewrite_asserts(tree, self.text.encode(), place, self.config)
        module = _module(self.path, self.config.rootpath)
        exec(compile(tree, place, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - a test file of the project
        return module


def own_module(parent: pytest.Collector, path: Path, text: str) -> pytest.Module:
    """A collector of that text at the place of the file."""
    found: OwnModule = OwnModule.from_parent(parent, path=path)
    found.text = text
    return found


def _module(path: Path, root: Path) -> types.ModuleType:
    """An empty one, named as the file lies below the root."""
    inside = path.relative_to(root) if path.is_relative_to(root) else path
    module = types.ModuleType(".".join(inside.with_suffix("").parts))
    module.__file__ = str(path)
    if (path.parent / "__init__.py").is_file():
        module.__package__ = module.__name__.rpartition(".")[0]
    sys.modules[module.__name__] = module
    return module
