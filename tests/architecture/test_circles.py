"""No circle of imports between the modules of the package: what two of them share lies below both."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "pytest_perfgate"


def statements(body: list[ast.stmt]) -> Iterator[ast.ImportFrom | ast.Import]:
    """Imports that run when the module is imported: neither those inside functions nor those for types alone."""
    for node in body:
        if isinstance(node, (ast.ImportFrom, ast.Import)):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from statements([*node.body, *node.orelse])
        elif isinstance(node, (ast.Try, ast.With)):
            yield from statements(node.body)


def imports() -> dict[str, set[str]]:
    """Each module of the package with the modules that it imports when it is imported."""
    files = {}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        files[name] = path
    arrows: dict[str, set[str]] = {}
    for name, path in files.items():
        targets = set()
        for node in statements(ast.parse(path.read_text(encoding="utf-8")).body):
            if isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
            else:
                dotted = ((node.module or "", f"{node.module}.{alias.name}") for alias in node.names)
                targets |= {whole if whole in files else module for module, whole in dotted}
        arrows[name] = targets & set(files) - {name}
    return arrows


def circle(arrows: dict[str, set[str]]) -> set[str]:
    """Modules that remain when those that import none of the rest are taken away, again and again."""
    remaining = dict(arrows)
    while free := {name for name, below in remaining.items() if not below & set(remaining)}:
        remaining = {name: below for name, below in remaining.items() if name not in free}
    return set(remaining)


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circle({"a": {"b"}, "b": {"a"}, "c": {"a"}, "d": set()}) == {"a", "b", "c"}
    assert circle(imports()) == set()
