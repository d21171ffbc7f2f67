"""No circle of imports in the plugin, lazy ones and those for types among them: what is shared lies lower."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "pytest_perfgate"


def imports() -> dict[str, set[str]]:
    """Modules of the plugin to the modules of the plugin that they name anywhere."""
    files = {f"pytest_perfgate.plugin.{path.stem}": path for path in (PACKAGE / "plugin").glob("*.py")}
    files["pytest_perfgate.plugin"] = files.pop("pytest_perfgate.plugin.__init__")
    found: dict[str, set[str]] = {}
    for name, path in files.items():
        nodes = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.ImportFrom)]
        pairs = [(node.module or "", f"{node.module}.{alias.name}") for node in nodes for alias in node.names]
        found[name] = {whole if whole in files else module for module, whole in pairs} & set(files) - {name}
    return found


def circle(house: dict[str, set[str]]) -> set[str]:
    """Modules that are left when those that import none of the rest are taken away, again and again."""
    left = dict(house)
    while free := {name for name, below in left.items() if not below & set(left)}:
        left = {name: below for name, below in left.items() if name not in free}
    return set(left)


def test_the_plugin_has_floors() -> None:
    assert circle({"a": {"b"}, "b": {"a"}, "c": {"a"}, "d": set()}) == {"a", "b", "c"}
    assert circle(imports()) == set()
