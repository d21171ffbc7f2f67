"""What runs around a test without being named by it: of a conftest, a package of tests, a plugin of the project."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from pytest_perfgate.core.gate.definitions import (
    Scope,
    defined,
    everywhere,
    is_text,
    meaning,
    module_of,
    names_of,
    reached,
    said_by,
)

CONFTEST, PACKAGE = "conftest.py", "__init__.py"
LOOSE = "what it runs when it is imported"
WHOLE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
PLUGINS = "pytest_plugins"
_IMPORT = "import "
_NAMING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Import, ast.ImportFrom, ast.Pass)
EVERY = "*"
_HOOK = "pytest_"
_SAYING = ("pytest_addoption", "pytest_report_header", "pytest_terminal_summary")
"""Hooks that say something and measure nothing."""
Meanings = Mapping[str, str]
"""Each name with all that it stands for."""


def around(text: str | None, named: set[str]) -> Meanings:
    """Fixtures that are named, those that need not be, hooks, plugins that it loads, and lines that name nothing."""
    body = module_of(text or "").body
    scope = defined(body)
    functions = {name for name, nodes in scope.items() if any(isinstance(node, WHOLE) for node in nodes)}
    always = {*everywhere(scope), *_hooks(functions), *(scope.keys() & {PLUGINS})}
    return {**roots({*(named & functions), *always}, scope), **loose(text)}


def handed_on(text: str | None, taken: set[str], named: set[str]) -> Meanings:
    """What a conftest has of a module that it imports names from: fixtures and hooks, and the module's own lines."""
    scope = defined(module_of(text or "").body)
    every = EVERY in taken
    fixtures = {name for name, nodes in scope.items() if "'fixture'" in _decorators(nodes) and (every or name in taken)}
    hooks = {name for name in _hooks(scope) if every or name in taken}
    if not fixtures and not hooks:
        return {}
    used = {*(fixtures & named), *(fixtures & {*everywhere(scope)}), *hooks}
    return {**roots(used, scope), **loose(text)}


def loose(text: str | None) -> Meanings:
    """Lines that do something when the file is imported, with all that they name in turn; what calls give a name to.

    Imports too, each by itself: empty where the file uses it.
    """
    body = module_of(text or "").body
    scope = defined(body)
    lines = list(_acting(body))
    said = {LOOSE: said_by(lines) + str(sorted(meaning(reached(lines), scope).items()))} if lines else {}
    return {**said, **roots(_made(body), scope), **dict(_imported(body))}


def apart(then: Meanings, now: Meanings) -> set[str]:
    """Names that stand for something else; an import counts where it comes or goes, and nobody uses it."""
    names = (name for name in {**then, **now} if then.get(name) != now.get(name))
    differ = {name for name in names if not name.startswith(_IMPORT) or _side_effect(then.get(name), now.get(name))}
    return {LOOSE if name.startswith(_IMPORT) else name for name in differ}


def roots(names: Iterable[str], scope: Scope) -> Meanings:
    """Each name with all that it stands for, and what that names in turn."""
    return {name: str(sorted(meaning({name}, scope).items())) for name in names}


def loaded(module: ast.Module) -> Iterator[str]:
    """Modules that a file names as plugins of pytest."""
    for node in defined(module.body).get(PLUGINS, ()):
        for word in ast.walk(node):
            if isinstance(word, ast.Constant) and isinstance(word.value, str):
                yield word.value


def imports(module: ast.Module) -> Iterator[tuple[str, int, str]]:
    """Every module that a file imports, how far above the file, and the name that is taken; empty for all of it."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from ((one.name, 0, "") for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", node.level, one.name) for one in node.names)
            yield from ((".".join(filter(None, [node.module, one.name])), node.level, "") for one in node.names)


def _acting(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Lines that name nothing, such as one that sets what another module has; those of a class too."""
    for line in body:
        if isinstance(line, ast.ClassDef):
            yield from _acting(line.body)
        elif not isinstance(line, _NAMING) and not is_text(line) and _acts(line):
            yield line


def _acts(line: ast.stmt) -> bool:
    """Whether it does more than to name something; a branch may do both."""
    inner = [one for one in ast.iter_child_nodes(line) if isinstance(one, (ast.stmt, ast.ExceptHandler))]
    if not inner:
        return not dict(names_of(line)) and not isinstance(line, ast.Raise)
    return any(
        _acts(one) for one in _lines(inner) if not isinstance(one, (*_NAMING, ast.ClassDef)) and not is_text(one)
    )


def _lines(nodes: Iterable[ast.AST]) -> Iterator[ast.stmt]:
    for node in nodes:
        if isinstance(node, ast.ExceptHandler):
            yield from node.body
        elif isinstance(node, ast.stmt):
            yield node


def _made(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Names that a call gives what they stand for: it may do more."""
    for line in body:
        if isinstance(line, (ast.Assign, ast.AnnAssign)) and any(isinstance(one, ast.Call) for one in ast.walk(line)):
            yield from dict(names_of(line))


def _imported(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    lines = [line for line in body if isinstance(line, (ast.Import, ast.ImportFrom))]
    used = set(reached(line for line in body if line not in lines))
    for name, node in (found for line in lines if not _of_python(line) for found in names_of(line)):
        said = said_by([node])
        yield f"{_IMPORT}{said}", "" if name in used else said


def _side_effect(then: str | None, now: str | None) -> bool:
    return bool((then is None and now) or (now is None and then))


def _of_python(node: ast.AST) -> bool:
    """An import that only tells how the file is read."""
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _hooks(names: Iterable[str]) -> set[str]:
    return {name for name in names if name.startswith(_HOOK) and name not in {*_SAYING, PLUGINS}}


def _decorators(nodes: Iterable[ast.AST]) -> str:
    return said_by(mark for node in nodes for mark in getattr(node, "decorator_list", ()))
