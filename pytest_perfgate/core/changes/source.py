"""The parser of test files: definitions, parameters, files beside."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]

Scope = Mapping[str, Sequence[ast.AST]]

Values = Mapping[str, Sequence[ast.expr]]
"""Each name with the values that it is assigned."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BRANCHES = (ast.If, ast.Try, ast.With, ast.For, ast.While, ast.Match)

_UNNAMED = (
    "setup_module", "setup_function", "setup_class", "setup_method", "setUpModule", "setUp", "setUpClass",
    "pytest_generate_tests",
)  # fmt: skip
"""Functions that pytest runs before a test without being named by it."""

_BY_TEXT = ("usefixtures", "getfixturevalue")  # functions whose arguments are names of fixtures

WIDE = "pytestmark"  # the name of the marks of a whole file or class

_SELF = {"self", "cls"}
FIXTURES = {"perfgate", "benchmark"}

ITSELF = "the test itself"
AROUND = "code around it"
LOOSE = "code that runs at import"

Parts = Mapping[str, str]
"""Each name with everything that a test means by it."""


def parts_of(text: str) -> dict[str, Parts]:
    """Return each function of a file, ``Class::test``, with its source and the meanings of its names."""
    # A file that does not parse has none.
    module = module_of(text)
    scope = defined(module.body)
    always, at_import = {"*", *_UNNAMED, *automatic_fixtures(scope)}, lines_at_import(module.body, scope)
    tests = tests_in(module.body, ())
    return {name: {**_parts(test, classes, scope, always), **at_import} for name, test, classes in tests}


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


def _body_of(function: Function) -> str:
    documented = ast.get_docstring(function) is not None
    parts = [
        part for part in ast.iter_child_nodes(function.args) if not (isinstance(part, ast.arg) and part.arg == "self")
    ]
    return "\n".join(ast.dump(part) for part in (*parts, *function.body[documented:]))


def _bare(node: ast.AST) -> None:
    """Remove docstrings, annotations of functions, and limits of calls, which another note covers."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        node.body = [line for line in node.body if not _is_constant(line)]
    if isinstance(node, FUNCTIONS):
        node.returns = None
    elif isinstance(node, ast.arg):
        node.annotation = None
    elif isinstance(node, ast.Call) and first_name(node.func) in FIXTURES:
        node.keywords = [word for word in node.keywords if word.arg != "limits"]


def first_name(node: ast.AST) -> str:
    """Return the first name, such as ``perfgate`` of ``perfgate.region("x")``."""
    while isinstance(node, (ast.Attribute, ast.Call)):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def tests_in(
    body: Iterable[ast.stmt], classes: tuple[ast.ClassDef, ...]
) -> Iterator[tuple[str, Function, tuple[ast.ClassDef, ...]]]:
    for statement in statements(body):
        if isinstance(statement, ast.ClassDef):
            yield from tests_in(statement.body, (*classes, statement))
        elif isinstance(statement, FUNCTIONS):
            yield "::".join([*(class_.name for class_ in classes), statement.name]), statement, classes


def statements(body: Iterable[ast.AST]) -> Iterator[ast.stmt]:
    """Yield the statements of one level, and those inside its branches, loops and ``with``."""
    for node in body:
        if isinstance(node, ast.stmt):
            yield node
        if isinstance(node, (*_BRANCHES, ast.ExceptHandler, ast.match_case)):
            yield from statements(ast.iter_child_nodes(node))


def lines_at_import(body: Iterable[ast.stmt], scope: Scope) -> Parts:
    """Return the statements with effects at import as one part, with all names that they reach; none without any."""
    lines = list(_with_effects(body))
    return {LOOSE: dump_of(lines) + str(sorted(meaning(used_names(lines), scope).items()))} if lines else {}


def _with_effects(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements that define no name, such as an assignment into another module, also in classes."""
    for line in body:
        if isinstance(line, ast.ClassDef):
            yield from _with_effects(line.body)
        elif any(map(_has_effect, statements([line]))) and "'__main__'" not in content_of(getattr(line, "test", line)):
            yield line


def _has_effect(line: ast.stmt) -> bool:
    """Return whether a statement does more than define names; a branch does what the statements in it do."""
    harmless = (*FUNCTIONS, *_BRANCHES, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass, ast.Raise)
    return not isinstance(line, harmless) and not _is_constant(line) and not dict(names_of(line))


def _parts(test: Function, classes: tuple[ast.ClassDef, ...], scope: Scope, always: set[str]) -> Parts:
    """Return the test's own lines, its parameters, and each name of the file that they reach, or that always counts."""
    marked = [_mark_of(mark, scope) for mark in _decorators(test, classes, scope)]
    parametrised = [split(mark) for mark in marked if "parametrize" in content_of(mark)]
    marks = [node for frame, _ in parametrised for node in frame]
    by_id = (of for _, of in parametrised)
    values = {f"{PARAMETERS} {at} {name}": node for at, of in enumerate(by_id) for name, node in of.items()}
    inner = {f"self.{name}": nodes for class_ in classes for name, nodes in _members(class_).items()}
    fixtures = {name.removeprefix("self."): nodes for name, nodes in inner.items() if is_fixture(nodes)}
    names: Scope = {**scope, **inner, **fixtures}
    own = [test.args, *test.body]
    around = list(_other_decorators(test, classes, scope))
    always = {*always, *(f"self.{name}" for name in _UNNAMED), *automatic_fixtures({**inner, **fixtures})}
    bases = (name for class_ in classes for name in used_names(class_.bases))
    parts = meaning({*always, *used_names([*own, *marks, *around]), *bases}, names)
    separate = meaning(used_names(values.values()), names).items()
    by_value = {f"{PARAMETERS}: {name}": dumped for name, dumped in separate if name not in parts}
    dumped = {name: content_of(node) for name, node in values.items()}
    return {ITSELF: dump_of(own), AROUND: dump_of(around), PARAMETERS: dump_of(marks), **dumped, **by_value, **parts}


def _decorators(test: Function, classes: tuple[ast.ClassDef, ...], scope: Scope) -> Iterator[ast.expr]:
    """Yield the decorators of a test, then those of its classes, and the marks in ``pytestmark``."""
    yield from (mark for part in (test, *classes) for mark in part.decorator_list)
    for level in (scope, *map(_members, classes)):
        for marks in _values_of(WIDE, level):
            yield from marks.elts if isinstance(marks, (ast.List, ast.Tuple)) else (marks,)


def _values_of(name: str, scope: Scope) -> Sequence[ast.expr]:
    return assigned(statements(scope.get(name, ()))).get(name, ())


def _mark_of(mark: ast.expr, scope: Scope) -> ast.expr:
    """Return the mark that a name of the file refers to."""
    values = _values_of(mark.id, scope) if isinstance(mark, ast.Name) else ()
    return values[-1] if values else mark


def _other_decorators(test: Function, classes: tuple[ast.ClassDef, ...], scope: Scope) -> Iterator[ast.AST]:
    """Yield decorators other than marks, such as a patch, and fixtures that marks request."""
    for mark in _decorators(test, classes, scope):
        if _is_mark(mark, scope):
            calls = (node for node in ast.walk(_mark_of(mark, scope)) if isinstance(node, ast.Call))
            yield from (call for call in calls if getattr(call.func, "attr", "") in _BY_TEXT)
        else:
            yield mark


def _is_mark(decorator: ast.expr, scope: Scope) -> bool:
    """Return whether a decorator is a mark, or a name of one; limits and parameters are compared separately."""
    lines = [line for line in scope.get(first_name(decorator), ()) if not isinstance(line, FUNCTIONS)]
    return any("'mark'" in content_of(node) for node in (decorator, *lines))


def meaning(names: Iterable[str], scope: Scope) -> dict[str, str]:
    """Return the source of these names, and of every name that they reach."""
    meanings: dict[str, str] = {}
    waiting = {*names}
    while waiting:
        name = waiting.pop()
        if name in scope and name not in meanings:
            meanings[name] = dump_of(scope[name])
            waiting |= set(used_names(scope[name]))
    return meanings


def automatic_fixtures(scope: Scope) -> Iterator[str]:
    """Yield fixtures that apply without being named by a test."""
    for name, nodes in scope.items():
        marks = (mark for node in branches(nodes) for mark in getattr(node, "decorator_list", ()))
        if any("autouse" in content_of(mark) for mark in marks):
            yield name


def branches(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield definitions, and those that an ``if`` or ``try`` among them holds."""
    return chain.from_iterable(_definitions(node) if isinstance(node, _BRANCHES) else (node,) for node in nodes)


@lru_cache(maxsize=64)
def _definitions(branch: ast.stmt) -> Sequence[ast.AST]:
    return [node for node in ast.walk(branch) if isinstance(node, (*FUNCTIONS, ast.ClassDef))]


def used_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield names that these lines use: of the file, of the class, and of fixtures."""
    for node in (inner for one in nodes for inner in ast.walk(one)):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in _SELF:
            yield f"self.{node.attr}"
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _BY_TEXT:
            yield from (str(one.value) for one in node.args if isinstance(one, ast.Constant))


def defined(body: Iterable[ast.stmt]) -> Scope:
    """Return names defined at one level, with the lines that define each."""
    definitions: dict[str, list[ast.AST]] = defaultdict(list)
    for statement in body:
        for name, node in names_of(statement):
            definitions[name].append(node)
    return definitions


@lru_cache(maxsize=64)
def _members(class_: ast.ClassDef) -> Scope:
    return defined(class_.body)


def names_of(line: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names that a line defines; an import yields each of its names separately."""
    if isinstance(line, (*FUNCTIONS, ast.ClassDef)):
        yield from ((name, line) for name in (line.name, *_fixture_names(line)))
    elif isinstance(line, ast.Import):
        yield from ((a.asname or a.name.partition(".")[0], ast.Import(names=[a])) for a in line.names)
    elif isinstance(line, ast.ImportFrom):
        yield from (
            (a.asname or a.name, ast.ImportFrom(module=line.module, names=[a], level=line.level)) for a in line.names
        )
    elif isinstance(line, _BRANCHES):
        inside = {node.id for node in ast.walk(line) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        yield from (
            (name, line) for name in {*inside, *(name for part in ast.walk(line) for name, _ in _names_of_line(part))}
        )
    else:
        stored = (n.id for n in ast.walk(line) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        yield from ((name, line) for name in dict.fromkeys(stored))


def _fixture_names(statement: ast.stmt) -> Iterator[str]:
    """Yield the name that ``@pytest.fixture(name="data")`` gives to a function."""
    marks = (mark for mark in getattr(statement, "decorator_list", ()) if "'fixture'" in content_of(mark))
    named = (word.value for mark in marks for word in getattr(mark, "keywords", ()) if word.arg == "name")
    yield from (str(name.value) for name in named if isinstance(name, ast.Constant))


def is_fixture(nodes: Iterable[ast.AST]) -> bool:
    """Return whether these definitions of one name are of a fixture."""
    return any("'fixture'" in dump_of(getattr(node, "decorator_list", ())) for node in branches(nodes))


def assigned(lines: Iterable[ast.stmt]) -> Values:
    """Return each assigned name with its values in order; of imports, the names that come from pytest."""
    values: dict[str, list[ast.expr]] = defaultdict(list)
    for target, value in chain.from_iterable(map(_assignments, lines)):
        if isinstance(target, ast.Name):
            values[target.id].append(value)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for name, part in zip(target.elts, value.elts):
                values[ast.unparse(name)].append(part)
    return values


def _assignments(line: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(line, ast.ImportFrom) and line.module == "pytest":
        yield from ((ast.Name(a.asname or a.name), ast.Attribute(ast.Name("pytest"), a.name)) for a in line.names)
    elif isinstance(line, ast.Assign):
        yield from ((target, line.value) for target in line.targets)
    elif isinstance(line, (ast.AnnAssign, ast.AugAssign)) and line.value is not None:
        yield line.target, line.value


def _names_of_line(line: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield names of a line without nested statements."""
    if isinstance(line, (*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)):
        yield from names_of(line)


def dump_of(nodes: Iterable[ast.AST]) -> str:
    return "\n".join(map(content_of, nodes))


@lru_cache(maxsize=4096)
def content_of(node: ast.AST) -> str:
    """Return the content of a line; of one nested too deep, its parts one after another."""
    try:
        return ast.dump(node)
    except RecursionError:
        return "\n".join(str([type(one), *(_plain(one))]) for one in ast.walk(node))


def _plain(node: ast.AST) -> Iterator[object]:
    yield from (text for _, text in ast.iter_fields(node) if not isinstance(text, (ast.AST, list)))


def _is_constant(node: ast.AST) -> bool:
    """Return whether a statement is a docstring, ``...``, or another constant without effect."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


PARAMETERS = "its parameters"

_PLAIN = (str, int, float, bool, type(None))
"""Types whose values give ids by their text in pytest."""


def split(mark: ast.expr) -> tuple[list[ast.expr], dict[str, ast.expr]]:
    """Return a ``parametrize`` mark without its values, and the values by the ids of their cases."""
    # If ids are given separately, or depend on positions, the mark stays whole.
    values = _parametrize_values(mark)
    ids = [name for expression in values if (name := _id(expression)) is not None]
    if not values or len({*ids}) < len(values):
        return [mark], {}
    assert isinstance(mark, ast.Call)
    return [mark.func, mark.args[0]], dict(zip(ids, values))


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
