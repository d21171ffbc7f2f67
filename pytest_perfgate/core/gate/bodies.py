"""Tests that do the same under another name, told by what their functions say."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Union

_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


def same_bodies(then: str, now: str) -> dict[str, str]:
    """Each function that is gone from a file, with the one new function that does exactly the same.

    What several do is nobody's mark; a file that does not parse has no functions.
    """
    before, after = _bodies(then), _bodies(now)
    gone = {name: body for name, body in before.items() if name not in after}
    new = {name: body for name, body in after.items() if name not in before}
    times = Counter(gone.values()), Counter(new.values())
    marked = {body: name for name, body in new.items() if times[1][body] == 1}
    return {name: marked[body] for name, body in gone.items() if times[0][body] == 1 and body in marked}


def same_function(then: str, now: str, test: str) -> bool:
    """Whether the function of a test, parameters and calls aside, does exactly the same in two files."""
    name, _ = function_of(test)
    body = _bodies(then).get(name)
    return body is not None and body == _bodies(now).get(name)


def renamed_nodes(gone: Iterable[str], new: Iterable[str], names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Node ids that are gone, with those of the same parameters under the new name of their function."""
    known = set(new)
    for node in gone:
        path, _, test = node.partition("::")
        name, rest = function_of(test)
        twin = f"{path}::{names.get(name, '')}{rest}"
        if twin in known:
            yield node, twin


def function_of(test: str) -> tuple[str, str]:
    """``Class::test`` and what follows it: parameters, the name of a call."""
    name = test.partition("#")[0].partition("[")[0]
    return name, test.removeprefix(name)


def _bodies(text: str) -> dict[str, str]:
    """What each function says, without its name and its decorators."""
    return {name: _said(function) for name, function in _functions(_tree(text), "")}


def _tests(text: str) -> dict[str, tuple[str, list[str]]]:
    """The same, with what each is parametrised with."""
    return {name: (_said(function), _parameters(function)) for name, function in _functions(_tree(text), "")}


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _functions(node: ast.AST | None, prefix: str) -> Iterator[tuple[str, _Function]]:
    for child in ast.iter_child_nodes(node) if node is not None else ():
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}::")
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}{child.name}", child


def _said(function: _Function) -> str:
    documented = ast.get_docstring(function) is not None
    given = [
        part for part in ast.iter_child_nodes(function.args) if not (isinstance(part, ast.arg) and part.arg == "self")
    ]
    return "\n".join(ast.dump(part) for part in (*given, *function.body[documented:]))


def _parameters(function: _Function) -> list[str]:
    return [text for text in map(ast.dump, function.decorator_list) if "parametrize" in text]


def same_test(then: str, now: str, nodeid: str) -> bool:
    """Whether the function of a test, and what it is parametrised with, is the same in both versions of its file."""
    name = _test_of(nodeid)
    before, after = _tests(then), _tests(now)
    return name in after and before.get(name) == after[name]


def has_test(text: str, nodeid: str) -> bool:
    """Whether a file has the function of a test."""
    return _test_of(nodeid) in _bodies(text)


def is_new(then: str | None, now: str, nodeid: str) -> bool:
    """Whether a test came with this version of its file; one that does the same as one that went is none."""
    if then is None:
        return True
    known = {*_bodies(then), *same_bodies(then, now).values()}
    return _tree(then) is not None and _test_of(nodeid) in _bodies(now).keys() - known


def _test_of(nodeid: str) -> str:
    return function_of(nodeid.partition("::")[2])[0]
