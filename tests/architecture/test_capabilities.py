"""Capabilities are protocols: nothing asks for them by the name of a method, and each is on the page."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

from ci.bench.house import PACKAGE, ROOT, nodes
from pytest_perfgate.model import device

PROTOCOLS = {name: kind for name, kind in inspect.getmembers(device, inspect.isclass) if name[:8] == "Supports"}


def members(protocol: type) -> set[str]:
    """What a class must have for a capability."""
    return {name for name in (*vars(protocol), *protocol.__annotations__) if not name.startswith("_")}


def probes(syntax: list[ast.AST], names: set[str]) -> Iterator[ast.Call]:
    """Calls that ask an object for one of these names."""
    for node in syntax:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"hasattr", "getattr"}:
            attribute = node.args[1]
            if isinstance(attribute, ast.Constant) and attribute.value in names:
                yield node


def test_a_capability_is_asked_for_by_its_protocol() -> None:
    names = set().union(*map(members, PROTOCOLS.values()))
    assert {"wait", "touches", "cuda", "operators"} <= names
    faults = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in probes(nodes(path), names)
    ]
    assert not faults, "\n".join(faults)
    assert list(probes(list(ast.walk(ast.parse("hasattr(runtime, 'wait')"))), names))


def test_each_capability_is_on_the_page_of_plugins_with_its_members() -> None:
    rows = [line for line in (ROOT / "docs" / "plugins.md").read_text("utf-8").splitlines() if line.startswith("|")]
    for name, protocol in PROTOCOLS.items():
        (row,) = (row for row in rows if row.startswith(f"| `{name}` |"))
        assert all(f".{member}" in row for member in members(protocol)), row
