"""Fixtures and conftests that gated tests use."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import PurePosixPath

from pytest_perfgate.core.changes.source import (
    FIXTURES,
    FUNCTIONS,
    LOOSE,
    WIDE,
    Scope,
    automatic_fixtures,
    branches,
    content_of,
    defined,
    dump_of,
    first_name,
    is_fixture,
    lines_at_import,
    meaning,
    module_of,
    names_of,
    parts_of,
    tests_in,
    tree_of,
    used_names,
)

_FILES = 64
"""The number of files whose names are cached."""

_AMONG_TESTS = {"tests", "test", "testing"}

Texts = Mapping[str, tuple["str | None", "str | None"]]
"""Files then and now, by path."""

_Taken = tuple[str, int, str]
"""A module as named, its level above the file, and a name in it."""


def fixture_sources(
    tests: Mapping[str, tuple[str, Collection[str]]],
    changed: Texts,
    confs: Mapping[str, str] | None = None,
    everywhere: Collection[str] = (),
) -> dict[str, tuple[str, ...]]:
    """Return each changed file that these tests use, with the names whose meaning changed."""
    # ``tests`` maps files to their text and the functions to check, as ``Class::test``; ``confs`` has the conftests
    # and packages above them as they are now; ``everywhere`` has fixtures that settings apply to all tests.
    parts: dict[str, set[str]] = {}
    conftests = {place: module_of(text) for place, text in (confs or {}).items()}
    for path, (text, names) in tests.items() if changed.keys() - tests.keys() else ():  # each is parsed
        module = _without_other_tests(module_of(text), names)
        module.body.append(_stated_in_calls(_without_other_tests(tree_of(text) or ast.Module([], []), names)))
        above = {place: conftest for place, conftest in conftests.items() if is_above(place, path)}
        named = _with_requested({*used_names(module.body), *everywhere}, above.values())
        for other in changed.keys() - tests.keys():
            sides = [_used_from(side, other, path, module, named) for side in changed[other]]
            elsewhere = [_by_others(side, other, {**above, path: module}, named) for side in changed[other]]
            parts.setdefault(other, set()).update(changed_names(*sides) | changed_names(*elsewhere))
    return {path: tuple(sorted(names)) for path, names in sorted(parts.items()) if names}


def another_test(test: str, file: Texts, conftests: Texts) -> bool:
    """Return whether a test means something else in two versions of its file, or by these conftests."""
    [(path, (then, now))] = file.items()
    same = then is None or parts_of(then).get(test) == parts_of(now or "").get(test)
    return not same or bool(fixture_sources({path: (now or "", [test])}, conftests))


def conftest_error(output: str, conftests: Iterable[str]) -> tuple[str, set[str]]:
    """Return the error in the last output of a pytest that ended, and those of these conftests that it names."""
    marks = "E", "(?:ERROR:|INTERNALERROR>)"
    raised, ended = (re.findall(rf"^ *{mark} +(\S.*)", output, re.MULTILINE) for mark in marks)
    message = (raised[:1] or ended[-1:] or output.splitlines())[-1].strip()
    longest = sorted(conftests, key=len, reverse=True)
    places = re.findall(rf"[^\s'\"]*{CONFTEST}", output)
    named = (next((path for path in longest if f"/{place}".endswith(f"/{path}")), None) for place in places)
    return message, {path for path in named if path is not None}


def is_above(file: str, path: str) -> bool:
    """Return whether a file runs before a test because of its place: a conftest, or a package of the test."""
    place, test = PurePosixPath(file), PurePosixPath(path)
    if place.parent not in test.parents:
        return False
    return place.name == CONFTEST or (place.name == PACKAGE and (_helps(file) or place.parent == test.parent))


def imported(path: str, texts: Mapping[str, str]) -> Sequence[str]:
    """Return which of these files a file imports, directly or through others."""
    files = [path]
    for place in files:  # which grows meanwhile
        taken = [(module, level, EVERY) for module, level, _ in imports(module_of(texts[place]))]
        files += [other for other in texts if other not in files and any(_name_from(t, place, other) for t in taken)]
    return files[1:]


def _used_from(text: str | None, other: str, path: str, module: ast.Module, named: set[str]) -> Meanings:
    """Return what a test file uses of one side of another file."""
    if is_above(other, path) and PurePosixPath(other).name == CONFTEST:
        return meanings_for(text, named)
    if not (_helps(other) or is_above(other, path)):
        return _meanings_of_values(text, _names_of(_names_from_modules(module), path, other))
    names = _names_of(_used_names(module), path, other)
    meanings = dict(_meanings(text, {name.removesuffix("()") for name in names}))
    if is_above(other, path) or any(_name_from((*taken[:2], EVERY), path, other) for taken in imports(module)):
        meanings |= meanings_at_import(text)
    return meanings


def _names_of(taken: Iterable[_Taken], path: str, other: str) -> set[str]:
    """Return those of the taken names that are of this other file."""
    return {name for one in taken if (name := _name_from(one, path, other))}


def _by_others(text: str | None, other: str, above: Mapping[str, ast.Module], named: set[str]) -> Meanings:
    """Return what a test's file, conftests and packages above it load, or use, of one side of another file."""
    users: dict[str, str] = {}
    for place, module in above.items():
        if any(_name_from((plugin, 0, EVERY), place, other) for plugin in loaded(module)):
            users.update(meanings_for(text, named))
        taken = {name for where, level, name in imports(module) if _name_from((where, level, EVERY), place, other)}
        if taken and _helps(other):
            names = {name.removesuffix("()") for name in _names_of(_used_names(module), place, other)}
            users.update({**_meanings(text, names), **meanings_at_import(text)})
        if taken:
            users.update(passed_on(text, taken, named))
    return users


def marks_of(text: str, test: str) -> tuple[str, ...] | None:
    """Return all marks of a function, its classes and its file, as written; None if the function is absent."""
    marks = dict(marks_in(module_of(text)))
    return tuple(map(content_of, marks[test])) if test in marks else None


def marks_in(module: ast.Module) -> Iterator[tuple[str, tuple[ast.AST, ...]]]:
    """Yield each function of a file with its decorators, those of its classes, and statements with file-wide marks."""
    for name, function, classes in tests_in(module.body, ()):
        bodies = (module.body, *(class_.body for class_ in classes))
        wide = (line for body in bodies for line in body if WIDE in dict(names_of(line)))
        bases = (base for class_ in classes for base in class_.bases)  # which may have marks
        yield name, (*wide, *bases, *(mark for part in (*classes, function) for mark in part.decorator_list))


def _without_other_tests(module: ast.Module, names: Collection[str]) -> ast.Module:
    """Return the file without its other tests; the whole file if a wanted test is not defined in it directly."""
    tests = {name: test for name, test, _ in tests_in(module.body, ())}
    if {*names} - tests.keys():
        return module
    others = {id(test) for name, test in tests.items() if name not in names and test.name.startswith("test")}
    for node in ast.walk(module):
        if isinstance(node, (ast.Module, ast.ClassDef)):
            node.body = [line for line in node.body if id(line) not in others]
    return module


def _stated_in_calls(module: ast.Module) -> ast.stmt:
    """Return the limits and the work that calls state, as marks of the file: they judge, and are not measured."""
    calls = (node for node in ast.walk(module) if isinstance(node, ast.Call) and first_name(node.func) in FIXTURES)
    stated = [word.value for call in calls for word in call.keywords if word.arg in {"limits", "work"}]
    return ast.Assign(targets=[ast.Name(WIDE, ast.Store())], value=ast.List(stated, ast.Load()))


def _with_requested(named: set[str], conftests: Iterable[ast.Module]) -> set[str]:
    """Return names of fixtures with those that fixtures of conftests request for them."""
    scope = defined(line for conftest in conftests for line in conftest.body)
    waiting = {*named, *automatic_fixtures(scope)}
    requested: set[str] = set()
    while waiting:
        name = waiting.pop()
        requested.add(name)
        waiting |= {*used_names(scope.get(name, ()))} - requested
    return requested


def _meanings_of_values(text: str | None, names: set[str]) -> Meanings:
    """Return the meanings of names, without functions that marks only pass on, since those are measured themselves."""
    if not names:
        return {}
    scope = defined(module_of(text or "").body)
    called = {name.removesuffix("()") for name in names if name.endswith("()")}
    values = {name for name in names & scope.keys() if not any(isinstance(node, WHOLE) for node in scope[name])}
    return roots({*values, *(called & scope.keys())}, scope)


def _helps(path: str) -> bool:
    """Return whether a module lies among tests, and so is not of the measured package."""
    return not _AMONG_TESTS.isdisjoint(PurePosixPath(path).parts[:-1])


def _meanings(text: str | None, names: set[str]) -> Meanings:
    """Return the meanings of a module's names, including functions."""
    if not names:
        return {}
    scope = defined(module_of(text or "").body)
    return roots(names & scope.keys(), scope)


def _of_a_file(names: Callable[[ast.Module], Iterator[_Taken]]) -> Callable[[ast.Module], tuple[_Taken, ...]]:
    """Return the names of a file, which are read once for all changed files."""
    return lru_cache(maxsize=_FILES)(lambda module: tuple(names(module)))


@_of_a_file
def _used_names(module: ast.Module) -> Iterator[_Taken]:
    """Yield the names that a file takes from other modules."""
    sources = _imported_names(module)
    for name, suffix in chain.from_iterable(map(_names_below, module.body)):
        yield from _imported(sources, name, suffix)


def _imported_names(module: ast.Module) -> Scope:
    """Return the imports of a file by the names that they define, also those inside functions and branches."""
    return defined(line for line in ast.walk(module) if isinstance(line, (ast.Import, ast.ImportFrom)))


@_of_a_file
def _names_from_modules(module: ast.Module) -> Iterator[_Taken]:
    """Yield names of other modules in marks, and in what those refer to in this file; called ones end in ``()``."""
    scope, sources = defined(module.body), _imported_names(module)
    marks = chain.from_iterable(marks for _, marks in marks_in(module))
    nodes = [ast.Call(mark, [], []) if isinstance(mark, (ast.Name, ast.Attribute)) else mark for mark in marks]
    visited: set[str] = set()
    while nodes:
        node = nodes.pop()
        for name, suffix in _names_below(node):
            first = name.partition(".")[0]
            yield from _imported(sources, name, suffix)
            if first not in visited:
                visited.add(first)
                inner = scope.get(first, ())
                nodes += [line for line in inner if not isinstance(line, (*WHOLE, ast.Import, ast.ImportFrom))]


def _names_below(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield names and dotted names below a node, and ``()`` if they are called."""
    called = {id(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)}
    for one in ast.walk(node):
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load):
            yield ast.unparse(one), "()" if id(one) in called else ""


def _imported(sources: Scope, dotted: str, suffix: str) -> Iterator[_Taken]:
    """Yield the modules that a dotted name may come from, with its name in each."""
    first, _, rest = dotted.partition(".")
    for node in sources.get(first) or sources.get(EVERY, ()):
        if isinstance(node, ast.ImportFrom):
            name = first if node.names[0].name == EVERY else node.names[0].name
            yield (node.module or "", node.level, f"{name}{'' if rest else suffix}")
            if rest:
                inner = ".".join(filter(None, [node.module, name]))
                yield (inner, node.level, f"{rest}{suffix}")
        elif isinstance(node, ast.Import):
            named = node.names[0]
            module, _, name = f"{named.name if named.asname else named.name.partition('.')[0]}.{rest}".rpartition(".")
            yield (module, 0, f"{name}{suffix}")


def _name_from(taken: _Taken, path: str, other: str) -> str:
    """Return the name if it is taken from this other file, else ""."""
    module, level, name = taken
    place = _place_of(other)
    path_text = module.replace(".", "/")
    if level:
        home = PurePosixPath(path).parents[level - 1] if level <= len(PurePosixPath(path).parents) else None
        return name if home is not None and place == str(home / path_text) else ""
    return name if place == path_text or place.endswith(f"/{path_text}") else ""


@lru_cache(maxsize=_FILES * _FILES)
def _place_of(file: str) -> str:
    """Return a file's path as imports may name it, with slashes."""
    return str(PurePosixPath(file).with_suffix("")).removesuffix("/__init__")


CONFTEST, PACKAGE = "conftest.py", "__init__.py"
WHOLE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
PLUGINS, EVERY, _IMPORT, _HOOK = "pytest_plugins", "*", "import ", "pytest_"

_SAYING = ("pytest_addoption", "pytest_report_header", "pytest_terminal_summary")
"""Hooks that only report, and do not affect measurements."""

Meanings = Mapping[str, str]
"""Each name with everything that defines it."""


def meanings_for(text: str | None, named: set[str]) -> Meanings:
    """Return a conftest's used and automatic fixtures, hooks, loaded plugins, and statements with effects."""
    body = module_of(text or "").body
    scope = defined(body)
    functions = {name for name, nodes in scope.items() if any(isinstance(node, WHOLE) for node in branches(nodes))}
    always = {*automatic_fixtures(scope), *_hooks(functions), *(scope.keys() & {PLUGINS})}
    return {**roots({*(named & functions), *always}, scope), **meanings_at_import(text)}


def passed_on(text: str | None, taken: set[str], named: set[str]) -> Meanings:
    """Return what a conftest has of a module that it imports from: fixtures and hooks, and the module's statements."""
    scope = defined(module_of(text or "").body)
    every = EVERY in taken
    fixtures = {name for name, nodes in scope.items() if is_fixture(nodes) and (every or name in taken)}
    hooks = {name for name in _hooks(scope) if every or name in taken}
    if not fixtures and not hooks:
        return {}
    used = {*(fixtures & named), *(fixtures & {*automatic_fixtures(scope)}), *hooks}
    return {**roots(used, scope), **meanings_at_import(text)}


def meanings_at_import(text: str | None) -> Meanings:
    """Return statements with effects at import, with all names that they reach, and names assigned from calls."""
    # Imports are listed by themselves, with an empty meaning if the file uses them.
    body = module_of(text or "").body
    scope = defined(body)
    calls = roots(_assigned_from_calls(body), scope)
    return {**lines_at_import(body, scope), **calls, **dict(_conftest_imports(body))}


def changed_names(then: Meanings, now: Meanings) -> set[str]:
    """Return names whose meaning differs; an import counts if it is added or removed and its name is unused."""
    names = (name for name in {**then, **now} if then.get(name) != now.get(name))
    differ = {name for name in names if not name.startswith(_IMPORT) or _side_effect(then.get(name), now.get(name))}
    return {LOOSE if name.startswith(_IMPORT) else name for name in differ}


def roots(names: Iterable[str], scope: Scope) -> Meanings:
    """Return each name with its definitions, and with the names that those reach."""
    return {name: str(sorted(meaning({name}, scope).items())) for name in names}


def loaded(module: ast.Module) -> Iterator[str]:
    """Yield modules that a file loads as pytest plugins."""
    for node in defined(module.body).get(PLUGINS, ()):
        for word in ast.walk(node):
            if isinstance(word, ast.Constant) and isinstance(word.value, str):
                yield word.value


@_of_a_file
def imports(module: ast.Module) -> Iterator[_Taken]:
    """Yield every imported module, its level above the file, and the imported name; "" for the whole module."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from ((alias.name, 0, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", node.level, alias.name) for alias in node.names)
            yield from ((".".join(filter(None, [node.module, alias.name])), node.level, "") for alias in node.names)


def _assigned_from_calls(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield names assigned from calls, which may have effects."""
    for line in body:
        if isinstance(line, (ast.Assign, ast.AnnAssign)) and any(isinstance(node, ast.Call) for node in ast.walk(line)):
            yield from dict(names_of(line))


def _conftest_imports(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    lines = [line for line in body if isinstance(line, (ast.Import, ast.ImportFrom))]
    used = set(used_names(line for line in body if line not in lines))
    for name, node in (imported for line in lines if not _of_python(line) for imported in names_of(line)):
        text = dump_of([node])
        yield f"{_IMPORT}{text}", "" if name in used else text


def _side_effect(then: str | None, now: str | None) -> bool:
    """Return whether an import that no name needs came or went."""
    return bool(then or now) and None in (then, now)


def _of_python(node: ast.AST) -> bool:
    """Return whether an import only changes how Python reads the file."""
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _hooks(names: Iterable[str]) -> set[str]:
    return {name for name in names if name.startswith(_HOOK) and name not in {*_SAYING, PLUGINS}}


def collectable(text: str, path: str) -> frozenset[str]:
    """Return the tests of a file that pytest collects by its defaults, whatever the machine has."""
    module = tree_of(text)
    named = PurePosixPath(path).match("test_*.py") or PurePosixPath(path).match("*_test.py")
    whole = named and "__test__" not in text
    return frozenset(_collected(module.body, "")) if module is not None and whole else frozenset()


def _collected(body: Sequence[ast.stmt], prefix: str) -> Iterator[str]:
    for one in body:
        if isinstance(one, FUNCTIONS) and one.name.startswith("test"):
            yield f"{prefix}{one.name}"
        elif isinstance(one, ast.ClassDef) and one.name.startswith("Test"):
            own = {line.name for line in one.body if isinstance(line, FUNCTIONS)}
            if own.isdisjoint({"__init__", "__new__"}):  # pytest warns of such a class, and leaves it out
                yield from _collected(one.body, f"{prefix}{one.name}::")
