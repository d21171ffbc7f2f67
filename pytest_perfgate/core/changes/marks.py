"""The limits and marks of a file's tests as written, and changes to installed software."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from pytest_perfgate.core.changes.source import FIXTURES, FUNCTIONS, WIDE, assigned, statements, tree_of
from pytest_perfgate.model.values import first_of, value

_MARK = ["mark", "perfgate"]

EXCUSES = ("skip", "skipif", "xfail")
"""Marks of pytest with which a test is not measured, or may fail."""

_BARE = "always"

_DEEP = 20
"""The longest chain of names that refer to names, which also ends a circle."""


@value
class Mark:
    """One marker, or one call with limits of its own."""

    limits: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    """Keywords with their values as written."""
    on: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    """Values that are not literals, as written."""
    gates: bool = True
    """Whether it is one of our marks; otherwise it excuses the test."""


_Marked = Iterator[tuple[str, tuple[Mark, ...]]]


def marked(text: str) -> dict[str, tuple[Mark, ...]]:
    """Return each gated test of a file, ``Class::test``, with its marks, the closest last; none if unreadable."""
    # ``test[id]`` and ``test#name`` are a parameter and a call with marks of their own.
    module = tree_of(text) or ast.Module(body=[], type_ignores=[])
    lines = list(statements(module.body))
    reader = _Reader(_AssignedNames(assigned(lines)), {one.name: one for one in lines if isinstance(one, ast.ClassDef)})
    try:
        return dict(reader.tests(module.body, "", reader.listed(ast.Name(WIDE))))
    except RecursionError:
        return {}


class _Reader(NamedTuple):
    """A reader of one module, or of a class in it."""

    names: _AssignedNames
    classes: Mapping[str, ast.ClassDef]

    def tests(self, body: Sequence[ast.stmt], prefix: str, far: tuple[Mark, ...]) -> _Marked:
        for statement in statements(body):
            if isinstance(statement, ast.ClassDef):
                marks = (*far, *self._of_class(statement))
                for ancestor in (*self._ancestors(statement), statement):
                    yield from self._within(ancestor).tests(ancestor.body, f"{prefix}{statement.name}::", marks)
            elif isinstance(statement, FUNCTIONS):
                yield from self._function(statement, f"{prefix}{statement.name}", far)

    def _function(self, test: ast.FunctionDef | ast.AsyncFunctionDef, name: str, far: tuple[Mark, ...]) -> _Marked:
        own = tuple(filter(None, map(self._mark, test.decorator_list)))
        decorators = [_dotted(getattr(mark, "func", mark))[-1] for mark in test.decorator_list]
        named = test.name.startswith("test")  # a test even if it is a fixture, as in a class of unittest
        arguments = (*test.args.posonlyargs, *test.args.args, *test.args.kwonlyargs)
        asks = (named or "fixture" not in decorators) and any(argument.arg in FIXTURES for argument in arguments)
        gated = any(mark.gates for mark in own) or (named and any(mark.gates for mark in far))
        if not asks and not gated:
            return
        brought = self._brought(test)
        marks = (*far, *own, *brought.pop("", ()))
        yield name, marks
        for param, closest in chain.from_iterable(map(self._parameters, test.decorator_list)):
            yield f"{name}[{param}]", (*marks, *closest)
        yield from ((f"{name}#{call}", (*marks, *closest)) for call, closest in brought.items())

    def _within(self, class_: ast.ClassDef) -> _Reader:
        """Return the reader of a class, whose own names come first."""
        return self._replace(names=_AssignedNames({**self.names.values, WIDE: [], **assigned(statements(class_.body))}))

    def _of_class(self, class_: ast.ClassDef) -> tuple[Mark, ...]:
        """Return the marks of a class and of its bases in this file; its own are the closest."""
        own = (*filter(None, map(self._mark, class_.decorator_list)), *self._within(class_).listed(ast.Name(WIDE)))
        return (*chain.from_iterable(map(self._of_class, self._bases(class_))), *own)

    def _bases(self, class_: ast.ClassDef) -> list[ast.ClassDef]:
        bases = (self.classes.get(base.id) for base in class_.bases if isinstance(base, ast.Name))
        return [base for base in bases if base is not None and base.lineno < class_.lineno]

    def _ancestors(self, class_: ast.ClassDef) -> Iterator[ast.ClassDef]:
        for base in self._bases(class_):
            yield from (*self._ancestors(base), base)

    def _parameters(self, decorator: ast.expr) -> _Marked:
        """Yield ``pytest.param(..., marks=)`` of a parametrised test."""
        for call in chain.from_iterable(map(ast.walk, (decorator, *self.names.values_reached(decorator)))):
            if isinstance(call, ast.Call) and _dotted(call.func)[-1] == "param":
                keywords = {word.arg: word.value for word in call.keywords}
                if marks := self.listed(keywords.get("marks")):
                    named = self.names.literal(keywords.get("id"))
                    yield named if isinstance(named, str) else "-".join(map(ast.unparse, call.args)), marks

    def _brought(self, test: ast.AST) -> dict[str, tuple[Mark, ...]]:
        """Return calls of the fixture with ``limits=``, by their names."""
        marks: dict[str, tuple[Mark, ...]] = {}
        for call in ast.walk(test):
            if not isinstance(call, ast.Call) or _dotted(call.func)[0] not in FIXTURES:
                continue
            keywords = {word.arg: word.value for word in call.keywords}
            if "limits" in keywords:
                named, limits = keywords.get("name"), keywords["limits"]
                name = self.names.literal(named)
                if not isinstance(name, str):
                    name = ast.unparse(named) if named else ""
                single = isinstance(self.names.literal(limits), str)
                texts, unread = self.names.texts([limits if single else ast.Starred(value=limits)])
                marks[name] = (*marks.get(name, ()), Mark(limits=texts, unread=unread))
        return marks

    def listed(self, node: ast.expr | None) -> tuple[Mark, ...]:
        """Return ``pytestmark``, or ``marks=``: one mark or a list, of which the first is the closest."""
        node = self.names.value_of(node)
        if node is None:
            return ()
        nodes = node.elts[::-1] if isinstance(node, (ast.List, ast.Tuple)) else [node]
        return tuple(filter(None, map(self._mark, nodes)))

    def _mark(self, node: ast.expr) -> Mark | None:
        meant = self.names.value_of(node) or node
        if isinstance(meant, ast.Call):
            far = self._mark(meant.func)
            if far is not None and not far.gates:
                arguments = ast.unparse(meant).partition("(")[2].removesuffix(")")
                return replace(far, settings=((far.settings[0][0], arguments or _BARE),))
            return _joined(far, self._called(meant)) if far is not None else None
        words = self.names.words(meant)
        if words[-2:-1] == _MARK[:1] and words[-1] in EXCUSES:
            return Mark(settings=((words[-1], _BARE),), gates=False)
        return Mark() if words[-2:] == _MARK else None

    def _called(self, call: ast.Call) -> Mark:
        limits, unread = self.names.texts(call.args)
        on: tuple[str, ...] = ()
        settings = []
        for word in call.keywords:
            if word.arg is None:
                unread += (f"**{self.names.written(word.value)}",)
            elif (read := self.names.literal(word.value)) is None:
                unread += (f"{word.arg}={self.names.written(word.value)}",)
            elif word.arg == "on":
                on = (read,) if isinstance(read, str) else tuple(map(str, read if isinstance(read, Iterable) else ()))
            else:
                settings.append((word.arg, repr(read)))
        return Mark(limits=limits, settings=tuple(settings), on=on, unread=unread)


class _AssignedNames(NamedTuple):
    """The names of a module, or of a class in it, with all values that each is assigned; the last one counts."""

    values: Mapping[str, Sequence[ast.expr]]

    def texts(self, nodes: Iterable[ast.expr]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return limits, and texts that cannot be read."""
        limits: list[str] = []
        unread: list[str] = []
        for node in nodes:
            inner = node.value if isinstance(node, ast.Starred) else None
            meant = self.only_value(inner or node)
            if inner and isinstance(meant, (ast.List, ast.Tuple)):
                listed = self.texts(meant.elts)
                limits, unread = [*limits, *listed[0]], [*unread, *listed[1]]
                continue
            read = None if inner else self.literal(meant)
            if isinstance(read, str):
                limits.append(read)
            else:
                unread.append(self.written(node))
        return tuple(limits), tuple(unread)

    def written(self, node: ast.expr) -> str:
        """Return an expression as written, with the values of the names that it uses."""
        values = ", ".join(dict.fromkeys(map(ast.unparse, self.values_reached(node))))
        return f"{ast.unparse(node)} ({values})" if values else ast.unparse(node)

    def values_reached(self, node: ast.expr) -> list[ast.expr]:
        """Return all values that the names of an expression refer to, directly or by other names."""
        values: list[ast.expr] = []
        for source in chain([node], values):  # which grows meanwhile
            names = (one.id for one in ast.walk(source) if isinstance(one, ast.Name))
            values += [value for name in names for value in self.values.get(name, ()) if value not in values]
        return values

    def only_value(self, node: ast.expr) -> ast.expr | None:
        """Return the value that a name refers to; none if it has others too, such as in an ``else``."""
        others = {ast.dump(value) for value in self.values.get(getattr(node, "id", ""), ())}
        return self.value_of(node) if len(others) <= 1 else None

    def value_of(self, node: ast.expr | None) -> ast.expr | None:
        """Return the value that a name refers to."""
        for _ in range(_DEEP):
            if isinstance(node, ast.Name):
                node = next(reversed(self.values.get(node.id, ())), None)
        return node

    def literal(self, node: ast.expr | None) -> object:
        """Return the value of a literal, or of a name for one, else ``None``."""
        value = self.value_of(node)
        try:
            return ast.literal_eval(value) if value is not None else None
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None

    def words(self, node: ast.expr) -> list[str]:
        """Return the words of ``pytest.mark.perfgate``, also where a name stands for its first words."""
        first, *rest = _dotted(node)
        words = [*_dotted(self.value_of(ast.Name(first)) or ast.Name(first)), *rest]
        return words[:-1] if words[-1] == "with_args" else words


def _dotted(node: ast.expr) -> list[str]:
    """Return the words of ``pytest.mark.perfgate``; the expression before the first dot must be a name."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return [node.id if isinstance(node, ast.Name) else "", *words[::-1]]


def _joined(far: Mark, near: Mark) -> Mark:
    """Return the mark after another call, since pytest joins the arguments."""
    settings: Mapping[str, str] = {**dict(far.settings), **dict(near.settings)}
    limits, unread = (*far.limits, *near.limits), (*far.unread, *near.unread)
    return replace(near, limits=limits, unread=unread, settings=tuple(settings.items()), on=near.on or far.on)


_FILES = re.compile(
    r"(^|/)(requirements[\w.-]*\.(txt|in)|constraints[\w.-]*\.txt|[\w.-]+\.lock|package-lock\.json|go\.sum"
    r"|environment[\w.-]*\.ya?ml|conda-lock\.ya?ml|pixi\.toml|Pipfile|flake\.(nix|lock)"
    r"|\.python-version|\.tool-versions|mise\.toml|rust-toolchain(\.toml)?|[\w.-]*Dockerfile[\w.-]*|[\w.-]+\.cmake"
    r"|\.env(rc|\.[\w.-]+)?|\.github/workflows/[^/]+\.ya?ml|\.buildkite/[^/]+\.ya?ml|\.gitlab-ci\.ya?ml|Jenkinsfile"
    r"|tox\.(ini|toml)|noxfile\.py|\.circleci/config\.ya?ml|(azure|bitbucket)-pipelines\.ya?ml)$"
)
"""Lock files, environment files, files that name a toolchain or an image, and files with a job's variables."""

Move = tuple[str, str, str]
"""A fact of the environment: its name, its value when the line was accepted, its value now."""


@value
class EnvironmentEdits:
    """The environment files and declared dependencies that the change under test edits."""

    requirements: tuple[str, ...] = ()
    """Declared dependencies, ``-numpy>=1`` and ``+numpy>=2``."""
    files: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.requirements or self.files)

    def text(self) -> str:
        """Return ``this change edits -fastdep>=1.0, +fastdep>=1.1``."""
        return f"this change edits {first_of((*self.requirements, *self.files), 3)}" if self else ""


def environment_files(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the files that decide what is installed or built with."""
    return tuple(path for path in paths if _FILES.search(path))


def requirements(then: str, now: str) -> tuple[str, ...]:
    """Return entries that one of two lists of declared dependencies (as JSON) has and the other lacks."""
    before, after = json.loads(then), json.loads(now)
    removed = [f"-{name}" for name in before if name not in after]
    return (*removed, *(f"+{name}" for name in after if name not in before))


def cause_of_change(moves: Sequence[Move], edits: EnvironmentEdits, installed: Collection[str]) -> str:
    """Return why the change itself is the cause of a changed time; "" if it is not."""
    # ``installed`` names facts that a project's files decide: packages and Python, not devices and drivers.
    packages = {_package(name) for name, _, _ in moves if name in installed}
    declared = {_package(requirement[1:]) for requirement in edits.requirements}
    by_edit = bool(packages & declared) or bool(edits.files and packages)
    return edits.text() if by_edit or not moves else ""


def _package(requirement: str) -> str:
    """Return a package's normalised name."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s<>=!~;\[@(]", requirement.strip())[0]).lower()
