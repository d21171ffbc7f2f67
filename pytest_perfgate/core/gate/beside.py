"""Code beside the tests: arms take it from the head, so that what a change does there is not compared."""

from __future__ import annotations

import ast
import re

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
    """Whether a test file says the same for one of its tests: what its other tests say is no matter."""
    one, other = _said(then, test), _said(now, test)
    return one is not None and one == other


def same_program(then: str, now: str) -> bool:
    """Whether two texts are one program; comments and blank lines are none of it."""
    return then == now or same_test(then, now, "")


def _said(text: str, test: str) -> list[str] | None:
    """The statements of a file without the tests that stand beside one; nothing where it does not parse."""
    try:
        parts = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return [ast.dump(part) for part in parts if not (test and _is_another(part, test))]


def _is_another(part: ast.stmt, test: str) -> bool:
    named = isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)) and part.name.startswith("test")
    return named and getattr(part, "name", "") != test
