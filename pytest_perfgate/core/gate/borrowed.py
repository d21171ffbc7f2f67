"""What gated tests take from other files: fixtures and hooks of a conftest, helpers, names in their marks."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import PurePosixPath

from pytest_perfgate.core.gate.definitions import (
    Scope,
    defined,
    everywhere,
    is_text,
    marks_in,
    meaning,
    module_of,
    names_of,
    reached,
    said_by,
    tests_in,
)

CONFTEST = "conftest.py"
LOOSE = "what it runs when it is imported"
_AMONG_TESTS = {"tests", "test", "testing"}
_HOOK = "pytest_"
_SAYING = ("pytest_addoption", "pytest_report_header", "pytest_terminal_summary")
"""Hooks that say something and measure nothing."""
_WHOLE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Texts = Mapping[str, tuple["str | None", "str | None"]]
"""Files then and now, by their paths."""
_Taken = tuple[str, int, str]
"""A module as it is named, how far above the file, and a name in it."""


def borrowed(tests: Mapping[str, tuple[str, Collection[str]]], changed: Texts) -> dict[str, tuple[str, ...]]:
    """Each of the changed files that these tests take from, with the names that stand for something else.

    ``tests`` are files, each with its text and those of its functions, ``Class::test``, that are meant.
    """
    found: dict[str, set[str]] = {}
    for path, (text, names) in tests.items():
        module = _only(module_of(text), names)
        for other in changed:
            if other in tests:
                continue
            if _above(other, path):
                found.setdefault(other, set()).update(_of_conftest(changed[other], module))
            elif _helps(other):
                given = {name.removesuffix("()") for taken in _used(module) if (name := _named(taken, path, other))}
                found.setdefault(other, set()).update(_apart(*(_held(side, given) for side in changed[other])))
            elif given := {name for taken in _taken(module) if (name := _named(taken, path, other))}:
                found.setdefault(other, set()).update(_apart(*(_meant(side, given) for side in changed[other])))
    return {path: tuple(sorted(names)) for path, names in sorted(found.items()) if names}


def _only(module: ast.Module, names: Collection[str]) -> ast.Module:
    """The file without its other tests; where one of these is made elsewhere, such as by a base class, all of it."""
    tests = {name: test for name, test, _ in tests_in(module.body, ())}
    if not tests.keys() >= {*names}:
        return module
    others = {id(test) for name, test in tests.items() if name not in names and test.name.startswith("test")}
    for node in ast.walk(module):
        if isinstance(node, (ast.Module, ast.ClassDef)):
            node.body = [line for line in node.body if id(line) not in others]
    return module


def _above(conftest: str, path: str) -> bool:
    place = PurePosixPath(conftest)
    return place.name == CONFTEST and place.parent in PurePosixPath(path).parents


def _of_conftest(sides: tuple[str | None, str | None], module: ast.Module) -> set[str]:
    """Fixtures that the tests of a file name, and what runs beside all tests."""
    named = {*reached(module.body), *_strings(module)}
    return _apart(*(_around(side, named) for side in sides))


def _around(text: str | None, named: set[str]) -> Mapping[str, str]:
    body = module_of(text or "").body
    scope = defined(body)
    functions = {name for name, nodes in scope.items() if any(isinstance(node, _WHOLE) for node in nodes)}
    hooks = {name for name in functions if name.startswith(_HOOK) and name not in _SAYING}
    return {**_roots({*(named & functions), *everywhere(scope), *hooks}, scope), LOOSE: said_by(_loose(body))}


def _roots(names: Iterable[str], scope: Scope) -> Mapping[str, str]:
    """Each name with all that it stands for, and what that names in turn."""
    return {name: str(sorted(meaning({name}, scope).items())) for name in names}


def _loose(body: Iterable[ast.stmt]) -> list[ast.stmt]:
    """Lines that name nothing, such as one that sets what another module has."""
    return [line for line in body if not isinstance(line, ast.Pass) and not is_text(line) and not dict(names_of(line))]


def _strings(module: ast.Module) -> set[str]:
    """Words of marks: ``usefixtures("quiet")`` names one by its text."""
    nodes = (node for _, marks in marks_in(module) for mark in marks for node in ast.walk(mark))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _apart(then: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    return {name for name in {**then, **now} if then.get(name) != now.get(name)}


def _meant(text: str | None, names: set[str]) -> Mapping[str, str]:
    """What names of a module stand for; a function that marks only hand on is what is measured, not how."""
    scope = defined(module_of(text or "").body)
    called = {name.removesuffix("()") for name in names if name.endswith("()")}
    values = {name for name in names & scope.keys() if not any(isinstance(node, _WHOLE) for node in scope[name])}
    return _roots({*values, *(called & scope.keys())}, scope)


def _helps(path: str) -> bool:
    """Whether a module lies among tests, where nobody keeps what is measured."""
    return not _AMONG_TESTS.isdisjoint(PurePosixPath(path).parts[:-1])


def _held(text: str | None, names: set[str]) -> Mapping[str, str]:
    """What names of a module stand for, functions too."""
    scope = defined(module_of(text or "").body)
    return _roots(names & scope.keys(), scope)


def _used(module: ast.Module) -> Iterator[_Taken]:
    """Names of other modules anywhere in a file."""
    scope = defined(module.body)
    for name, suffix in chain.from_iterable(map(_spelled, module.body)):
        first, _, rest = name.partition(".")
        yield from _imported(scope.get(first, ()), rest, suffix)


def _taken(module: ast.Module) -> Iterator[_Taken]:
    """Names of other modules in marks, and in what these stand for in this file; called ones end in ``()``."""
    scope = defined(module.body)
    nodes = list(chain.from_iterable(marks for _, marks in marks_in(module)))
    known: set[str] = set()
    while nodes:
        node = nodes.pop()
        for name, suffix in _spelled(node):
            first, _, rest = name.partition(".")
            yield from _imported(scope.get(first, ()), rest, suffix)
            if first not in known:
                known.add(first)
                nodes += [
                    one for one in scope.get(first, ()) if not isinstance(one, (*_WHOLE, ast.Import, ast.ImportFrom))
                ]


def _spelled(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Names and dotted names below a node, and ``()`` where they are called."""
    called = {id(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)}
    for one in ast.walk(node):
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load):
            yield ast.unparse(one), "()" if id(one) in called else ""


def _imported(nodes: Iterable[ast.AST], rest: str, suffix: str) -> Iterator[_Taken]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            name = node.names[0].name
            yield (node.module or "", node.level, f"{name}{'' if rest else suffix}")
            if rest:
                inner = ".".join(filter(None, [node.module, name]))
                yield (inner, node.level, f"{rest}{suffix}")
        elif isinstance(node, ast.Import) and rest:
            named = node.names[0]
            module, _, name = f"{named.name if named.asname else named.name.partition('.')[0]}.{rest}".rpartition(".")
            yield (module, 0, f"{name}{suffix}")


def _named(taken: _Taken, path: str, other: str) -> str:
    """The name where it is taken from this other file; empty where it is of another."""
    module, level, name = taken
    place = str(PurePosixPath(other).with_suffix("")).removesuffix("/__init__")
    asked = module.replace(".", "/")
    if level:
        home = PurePosixPath(path).parents[level - 1] if level <= len(PurePosixPath(path).parents) else None
        return name if home is not None and place == str(home / asked) else ""
    return name if asked and (place == asked or place.endswith(f"/{asked}")) else ""
