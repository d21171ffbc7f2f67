"""A verdict is final where it is made: one function makes it, and nothing amends it afterwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from ci.bench.house import PACKAGE, nodes
from pytest_perfgate.model.verdict import Verdict

OWN = {field.name for field in fields(Verdict)} - {"limit", "baseline", "metric", "interval", "rounds", "evidence"} | {
    "verdicts"
}
"""Names that ``replace`` takes for a verdict, or for the verdicts of a report, and for no other value."""


def calls(path: Path, name: str) -> Iterator[tuple[str, ast.Call]]:
    """Calls of a bare name, with the function around them."""
    syntax = nodes(path)
    if not any(isinstance(node, ast.Name) and node.id == name for node in syntax):
        return
    for around in syntax:
        if isinstance(around, ast.FunctionDef):
            for node in ast.walk(around):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                    yield around.name, node


def test_one_function_makes_a_verdict() -> None:
    makers = {
        (file.relative_to(PACKAGE).as_posix(), around)
        for file in PACKAGE.rglob("*.py")
        for around, _ in calls(file, "Verdict")
    }
    assert {around for _, around in makers} == {"verdict", "without_figures"}, (
        "return a Ruling; verdict() makes it final"
    )
    assert len(makers) == 2, makers


def test_no_module_amends_a_verdict() -> None:
    amending = [
        f"{file.relative_to(PACKAGE)}:{call.lineno}"
        for file in PACKAGE.rglob("*.py")
        for _, call in calls(file, "replace")
        if OWN & {keyword.arg for keyword in call.keywords}
    ]
    assert amending == [], (
        f"give the judge what the verdict depends on; another value's field is not named {sorted(OWN)}"
    )


def test_the_names_that_are_watched_are_those_of_a_verdict() -> None:
    assert {"outcome", "effect", "sentence", "next", "verdicts"} <= OWN
