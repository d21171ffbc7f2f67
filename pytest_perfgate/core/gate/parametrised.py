"""What tests are parametrised with, value by value: one that comes or goes changes no other."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

PARAMETERS = "its parameters"
_PLAIN = (str, int, float, bool, type(None))
"""Values whose text is the id that pytest gives them."""


def split(mark: ast.expr) -> tuple[list[ast.expr], dict[str, ast.expr]]:
    """A ``parametrize`` mark without its values, and each of those by the id of its case.

    Where ids are given apart, or follow the places of the values, all of it is one.
    """
    values = _listed(mark)
    ids = [name for one in values if (name := _id(one)) is not None]
    if not isinstance(mark, ast.Call) or not values or len({*ids}) < len(values):
        return [mark], {}
    return [mark.func, mark.args[0]], dict(zip(ids, values))


def other_parameters(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Whether cases that both have are parametrised with something else."""
    shared = (name for name in before if name.startswith(PARAMETERS) and name in after)
    return any(before[name] != after[name] for name in shared)


def _listed(mark: ast.expr) -> Sequence[ast.expr]:
    """The values of ``parametrize("n", [1, 2])``; none where something else names them, or their ids."""
    if not isinstance(mark, ast.Call) or mark.keywords or len(mark.args) != 2:
        return ()
    return mark.args[1].elts if isinstance(mark.args[1], (ast.List, ast.Tuple)) else ()


def _id(node: ast.expr) -> str | None:
    """The id of a value that is written out, or given one; nothing where pytest would make one up by its place."""
    if isinstance(node, ast.Call):
        given = [word.value for word in node.keywords if word.arg == "id"]
        return str(given[0].value) if given and isinstance(given[0], ast.Constant) and given[0].value else None
    try:
        parts = list(_parts(ast.literal_eval(node)))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return "-".join(map(str, parts)) if all(isinstance(part, _PLAIN) for part in parts) else None


def _parts(value: object) -> Iterator[object]:
    yield from value if isinstance(value, tuple) else (value,)
