"""Code beside the tests: arms take it from the head, so that what a change does there is not compared."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from pytest_perfgate.core.gate.definitions import module_of
from pytest_perfgate.core.gate.parametrised import split

_BESIDE = re.compile(
    r"(^|/)\.|^docs?/"
    r"|\.(py[icxd]?|pxi|ipynb|c|cc|cpp|cxx|h|hh|hpp|hxx|inl|cuh?|hip|f|f90|for|rs|go|s|asm|mm?|cmake|build|in)$"
    r"|\.(sh|bat|ps1|md|rst|lock|png|svg|html|css)$"
    r"|(^|/)(pyproject\.toml|setup\.cfg|pytest\.ini|tox\.ini|cmakelists\.txt|makefile|dockerfile)$"
    r"|(^|/)(package(-lock)?\.json|codecov\.yml|mkdocs\.yml)$"
    r"|(^|/)(license|copying|authors|changelog|codeowners|news|changes|history)(\.[a-z]+)?$",
    re.IGNORECASE,
)
"""Code, which is the arms' own or known file by file; pages; what describes a project; what hides."""


def may_be_read(path: str, baselines: str = "baselines") -> bool:
    """Whether code may read a file that nobody imports: a table, a model."""
    return not _BESIDE.search(path) and not path.startswith(f"{baselines.rstrip('/')}/")


def same_test(then: str, now: str, test: str) -> bool:
    """Whether a test file says the same for one of its tests: what its other tests say is no matter.

    Nor are limits, docstrings, and values of ``parametrize`` that only one of the two has.
    """
    one, other = _said(then, test), _said(now, test)
    if one is None or other is None:
        return False
    return one.lines == other.lines and all(
        one.values[name] == other.values[name] for name in one.values.keys() & other.values
    )


def same_program(then: str, now: str) -> bool:
    """Whether two texts are one program; comments and blank lines are none of it."""
    return then == now or same_test(then, now, "")


class _Said(NamedTuple):
    """What a file says for one of its tests."""

    lines: list[str]
    """Its statements without the tests that stand beside that one."""
    values: dict[str, str]
    """What its tests are parametrised with, by the ids of the cases."""


def _said(text: str, test: str) -> _Said | None:
    """Nothing where the file does not parse."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    parts = [part for part in module_of(text).body if not (test and _is_another(part, test))]
    values: dict[str, str] = {}
    for part in parts:
        for node in ast.walk(part):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                values |= _bare(node)
    return _Said([ast.dump(part) for part in parts], values)


def _bare(test: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """Take its limits away, and the values that it is parametrised with: those by the ids of their cases."""
    values: dict[str, str] = {}
    for number, mark in enumerate(test.decorator_list):
        if not isinstance(mark, ast.Call) or not isinstance(mark.func, ast.Attribute):
            continue
        if mark.func.attr == "perfgate":
            mark.args = []
        elif mark.func.attr == "parametrize":
            frame, given = split(mark)
            values |= {f"{test.name} {number} {name}": ast.dump(node) for name, node in given.items()}
            test.decorator_list[number] = ast.Tuple(elts=frame, ctx=ast.Load())
    return values


def _is_another(part: ast.stmt, test: str) -> bool:
    named = isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)) and part.name.startswith("test")
    return named and getattr(part, "name", "") != test
