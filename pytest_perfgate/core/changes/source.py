"""The parser of test files: definitions, parameters, files beside."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Union

_Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]

Scope = Mapping[str, Sequence[ast.AST]]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BRANCHES = (ast.If, ast.Try, ast.With, ast.For, ast.While)

_UNNAMED = ("setup_module", "setup_function", "setup_class", "setup_method", "setUp", "setUpClass")
"""Functions that pytest runs before a test without being named by it."""

_SELF = {"self", "cls"}

_FIXTURES = {"perfgate", "benchmark"}

ITSELF = "the test itself"

AROUND = "code around it"

Parts = Mapping[str, str]
"""Each name with everything that a test means by it."""


def parts_of(text: str) -> dict[str, Parts]:
    """Return each function of a file, ``Class::test``, with its source and the meanings of its names.

    A file that does not parse has none.
    """
    module = module_of(text)
    scope = defined(module.body)
    return {name: _parts(test, classes, scope) for name, test, classes in tests_in(module.body, ())}


def marks_of(text: str, test: str) -> tuple[str, ...] | None:
    """Return all marks of a function, its classes and its file, as written; None if the function is absent."""
    marks = dict(marks_in(module_of(text)))
    return tuple(map(_content_of, marks[test])) if test in marks else None


def marks_in(module: ast.Module) -> Iterator[tuple[str, tuple[ast.AST, ...]]]:
    """Yield each function of a file with its decorators, those of its classes, and statements with file-wide marks."""
    for name, one, classes in tests_in(module.body, ()):
        bodies = (module.body, *(each.body for each in classes))
        wide = (line for body in bodies for line in body if "pytestmark" in dict(names_of(line)))
        yield name, (*wide, *(mark for part in (*classes, one) for mark in part.decorator_list))


def module_of(text: str) -> ast.Module:
    """Return the file without the parts that do not affect measurements; empty if it does not parse."""
    module = tree_of(text) or ast.Module(body=[], type_ignores=[])
    for node in ast.walk(module):
        _bare(node)
    return module


def tree_of(text: str) -> ast.Module | None:
    """Return the file; None if it does not parse."""
    try:
        return ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=8)
def bodies_of(text: str) -> Mapping[str, str]:
    """Return each function's body, without its name and its decorators; many cases ask for those of one file."""
    module = tree_of(text)
    functions = tests_in(module.body, ()) if module is not None else ()
    return {name: _body_of(function) for name, function, _ in functions}


def _body_of(function: _Function) -> str:
    documented = ast.get_docstring(function) is not None
    parts = [
        part for part in ast.iter_child_nodes(function.args) if not (isinstance(part, ast.arg) and part.arg == "self")
    ]
    return "\n".join(ast.dump(part) for part in (*parts, *function.body[documented:]))


def _bare(node: ast.AST) -> None:
    """Remove docstrings, annotations of functions, and limits of calls, which another note covers."""
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        node.body = [line for line in node.body if not is_text(line)]
    if isinstance(node, _FUNCTIONS):
        node.returns = None
    elif isinstance(node, ast.arg):
        node.annotation = None
    elif isinstance(node, ast.Call) and _first_name(node.func) in _FIXTURES:
        node.keywords = [word for word in node.keywords if word.arg != "limits"]


def _first_name(node: ast.expr) -> str:
    """Return the first name, such as ``perfgate`` of ``perfgate.region``."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def tests_in(
    body: Iterable[ast.stmt], classes: tuple[ast.ClassDef, ...]
) -> Iterator[tuple[str, _Function, tuple[ast.ClassDef, ...]]]:
    for one in body:
        if isinstance(one, ast.ClassDef):
            yield from tests_in(one.body, (*classes, one))
        elif isinstance(one, _FUNCTIONS):
            yield "::".join([*(each.name for each in classes), one.name]), one, classes
        elif isinstance(one, (ast.If, ast.Try, ast.With)):
            yield from tests_in([line for line in ast.iter_child_nodes(one) if isinstance(line, ast.stmt)], classes)


def _parts(test: _Function, classes: tuple[ast.ClassDef, ...], scope: Scope) -> Parts:
    """Return the test's own lines, its parameters, and each name of the file that they reach."""
    parametrised = [split(mark) for mark in test.decorator_list if "parametrize" in _content_of(mark)]
    marks = [node for frame, _ in parametrised for node in frame]
    values = {
        f"{PARAMETERS} {number} {name}": node
        for number, (_, of) in enumerate(parametrised)
        for name, node in of.items()
    }
    inner = {f"self.{name}": nodes for one in classes for name, nodes in defined(one.body).items()}
    names: Scope = {**scope, **inner}
    own = [test.args, *test.body]
    around = list(_around(test, classes, scope))
    always = {"*", *_UNNAMED, *(f"self.{name}" for name in _UNNAMED), *everywhere(names)}
    bases = (name for one in classes for name in reached(one.bases))
    parts = meaning({*always, *reached([*own, *marks, *around]), *bases}, names)
    apart = meaning(reached(values.values()), names).items()
    by_value = {f"{PARAMETERS}: {name}": dumped for name, dumped in apart if name not in parts}
    dumped = {name: _content_of(node) for name, node in values.items()}
    return {ITSELF: said_by(own), AROUND: said_by(around), PARAMETERS: said_by(marks), **dumped, **by_value, **parts}


def _around(test: _Function, classes: tuple[ast.ClassDef, ...], scope: Scope) -> Iterator[ast.AST]:
    """Yield decorators other than marks, such as a patch, and fixtures that marks request."""
    wide = (node for one in classes for node in defined(one.body).get("pytestmark", ()))
    listed = [*scope.get("pytestmark", ()), *wide]
    for mark in (mark for part in (*classes, test) for mark in part.decorator_list):
        if _is_mark(mark, scope):
            listed.append(mark)
        else:
            yield mark
    yield from (node for one in listed for node in ast.walk(one) if isinstance(node, ast.Call) and _uses(node))


def _is_mark(decorator: ast.expr, scope: Scope) -> bool:
    """Return whether a decorator is a mark, or a name of one; limits and parameters are compared separately."""
    words = _content_of(decorator)
    named = scope.get(decorator.id, ()) if isinstance(decorator, ast.Name) else ()
    return "'mark'" in words or any("'mark'" in _content_of(node) for node in named)


def _uses(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "usefixtures"


def meaning(names: Iterable[str], scope: Scope) -> dict[str, str]:
    """Return the source of these names, and of every name that they reach."""
    meanings: dict[str, str] = {}
    waiting = {*names}
    while waiting:
        name = waiting.pop()
        if name in scope and name not in meanings:
            meanings[name] = said_by(scope[name])
            waiting |= set(reached(scope[name]))
    return meanings


def everywhere(scope: Scope) -> Iterator[str]:
    """Yield fixtures that apply without being named by a test."""
    for name, nodes in scope.items():
        if any(
            "autouse" in _content_of(mark) for node in branches(nodes) for mark in getattr(node, "decorator_list", ())
        ):
            yield name


def branches(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield definitions, and those that an ``if`` or ``try`` among them holds."""
    for node in nodes:
        yield from ast.walk(node) if isinstance(node, _BRANCHES) else (node,)


def reached(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield names that these lines use: of the file, of the class, and of fixtures."""
    for node in (inner for one in nodes for inner in ast.walk(one)):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in _SELF:
            yield f"self.{node.attr}"


def defined(body: Iterable[ast.stmt]) -> Scope:
    """Return names defined at one level, with the lines that define each."""
    definitions: dict[str, list[ast.AST]] = defaultdict(list)
    for one in body:
        for name, node in names_of(one):
            definitions[name].append(node)
    return definitions


def names_of(one: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names that a line defines; an import yields each of its names separately."""
    if isinstance(one, (*_FUNCTIONS, ast.ClassDef)):
        yield one.name, one
    elif isinstance(one, ast.Import):
        yield from ((a.asname or a.name.partition(".")[0], ast.Import(names=[a])) for a in one.names)
    elif isinstance(one, ast.ImportFrom):
        yield from (
            (a.asname or a.name, ast.ImportFrom(module=one.module, names=[a], level=one.level)) for a in one.names
        )
    elif isinstance(one, _BRANCHES):
        inside = {node.id for node in ast.walk(one) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        yield from ((name, one) for name in {*inside, *(name for line in ast.walk(one) for name, _ in _flat(line))})
    else:
        stored = (n.id for n in ast.walk(one) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        yield from ((name, one) for name in dict.fromkeys(stored))


def _flat(line: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield names of a line without nested statements."""
    if isinstance(line, (*_FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)):
        yield from names_of(line)


def said_by(nodes: Iterable[ast.AST]) -> str:
    return "\n".join(map(_content_of, nodes))


def _content_of(node: ast.AST) -> str:
    """Return the content of a line; of one nested too deep, its parts one after another."""
    try:
        return ast.dump(node)
    except RecursionError:
        return "\n".join(str([type(one), *(_plain(one))]) for one in ast.walk(node))


def _plain(node: ast.AST) -> Iterator[object]:
    yield from (text for _, text in ast.iter_fields(node) if not isinstance(text, (ast.AST, list)))


def is_text(node: ast.AST) -> bool:
    """Return whether a statement is a docstring, or another text without effect."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


PARAMETERS = "its parameters"

_PLAIN = (str, int, float, bool, type(None))
"""Types whose values give ids by their text in pytest."""


def split(mark: ast.expr) -> tuple[list[ast.expr], dict[str, ast.expr]]:
    """Return a ``parametrize`` mark without its values, and the values by the ids of their cases.

    If ids are given separately, or depend on positions, the mark stays whole.
    """
    values = _parametrize_values(mark)
    ids = [name for one in values if (name := _id(one)) is not None]
    if not values or len({*ids}) < len(values):
        return [mark], {}
    assert isinstance(mark, ast.Call)
    return [mark.func, mark.args[0]], dict(zip(ids, values))


def other_parameters(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Return whether cases that both versions have are parametrised differently."""
    shared = (name for name in before if name.startswith(PARAMETERS) and name in after)
    return any(before[name] != after[name] for name in shared)


def _parametrize_values(mark: ast.expr) -> Sequence[ast.expr]:
    """Return the values of ``parametrize("n", [1, 2])``; none if they, or their ids, are not written out."""
    if not isinstance(mark, ast.Call) or mark.keywords or len(mark.args) != 2:
        return ()
    return mark.args[1].elts if isinstance(mark.args[1], (ast.List, ast.Tuple)) else ()


def _id(node: ast.expr) -> str | None:
    """Return the id of a literal value or a given one; None if pytest would number it by position."""
    if isinstance(node, ast.Call):
        ids = [word.value for word in node.keywords if word.arg == "id"]
        return str(ids[0].value) if ids and isinstance(ids[0], ast.Constant) and ids[0].value else None
    try:
        parts = list(_parameter_parts(ast.literal_eval(node)))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return "-".join(map(str, parts)) if all(isinstance(part, _PLAIN) for part in parts) else None


def _parameter_parts(value: object) -> Iterator[object]:
    yield from value if isinstance(value, tuple) else (value,)


_BESIDE = re.compile(
    r"(^|/)\.|^docs?/"
    r"|\.(py[icxd]?|pxi|ipynb|c|cc|cpp|cxx|h|hh|hpp|hxx|inl|cuh?|hip|f|f90|for|rs|go|s|asm|mm?|cmake|build|in)$"
    r"|\.(sh|bat|ps1|md|rst|lock|png|svg|html|css)$"
    r"|(^|/)(pyproject\.toml|setup\.cfg|pytest\.ini|tox\.ini|cmakelists\.txt|makefile|dockerfile)$"
    r"|(^|/)(package(-lock)?\.json|codecov\.yml|mkdocs\.yml)$"
    r"|(^|/)(license|copying|authors|changelog|codeowners|news|changes|history)(\.[a-z]+)?$",
    re.IGNORECASE,
)
"""Suffixes of code, which arms load or compare by file, of pages, of project files and of hidden files."""


def may_be_read(path: str, baselines: str = "baselines") -> bool:
    """Return whether code may read a file that is not imported, such as a table or a model."""
    return not _BESIDE.search(path) and not path.startswith(f"{baselines.rstrip('/')}/")


def same_test(then: str, now: str, test: str) -> bool:
    """Return whether a test file is the same for one of its tests, whatever its other tests.

    Limits, docstrings, and values of ``parametrize`` that only one version has are ignored.
    """
    one, other = _source_of_test(then, test), _source_of_test(now, test)
    if one is None or other is None:
        return False
    return one.lines == other.lines and all(
        one.values[name] == other.values[name] for name in one.values.keys() & other.values
    )


def same_program(then: str, now: str) -> bool:
    """Return whether two texts are the same program, apart from comments and blank lines."""
    return then == now or same_test(then, now, "")


class _TestSource(NamedTuple):
    """The content of a file for one of its tests."""

    lines: list[str]
    """Its statements without the file's other tests."""
    values: dict[str, str]
    """The parameters of its tests, by the ids of the cases."""


def _source_of_test(text: str, test: str) -> _TestSource | None:
    """Return the content of a file for one test; None if the file does not parse."""
    if tree_of(text) is None:
        return None
    parts = [part for part in module_of(text).body if not (test and _is_another(part, test))]
    values: dict[str, str] = {}
    for part in parts:
        for node in ast.walk(part):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                values |= _bare_name(node)
    return _TestSource([ast.dump(part) for part in parts], values)


def _bare_name(test: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """Remove a test's limits and parameter values, and return the values by the ids of their cases."""
    values: dict[str, str] = {}
    for number, mark in enumerate(test.decorator_list):
        if not isinstance(mark, ast.Call) or not isinstance(mark.func, ast.Attribute):
            continue
        if mark.func.attr == "perfgate":
            mark.args = []
        elif mark.func.attr == "parametrize":
            frame, arguments = split(mark)
            values |= {f"{test.name} {number} {name}": ast.dump(node) for name, node in arguments.items()}
            test.decorator_list[number] = ast.Tuple(elts=frame, ctx=ast.Load())
    return values


def _is_another(part: ast.stmt, test: str) -> bool:
    named = isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)) and part.name.startswith("test")
    return named and getattr(part, "name", "") != test
