"""The limits and marks of a file's tests as written, and changes to installed software."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from pytest_perfgate.model.values import first_of, value

_MARK = ["mark", "perfgate"]

EXCUSES = ("skip", "skipif", "xfail")
"""Marks of pytest with which a test is not measured, or may fail."""

_FIXTURES = {"perfgate", "benchmark"}

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)

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


def marked(text: str) -> dict[str, tuple[Mark, ...]]:
    """Return each gated test of a file, ``Class::test``, with its marks, the closest last.

    ``test[id]`` and ``test#name`` are a parameter and a call with marks of their own. A file that does not parse has no
    tests.
    """
    try:
        module = ast.parse(text.removeprefix("\ufeff"))
        return dict(_Reader(module).tests())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


class _Reader:
    """One module, in which each name has its last assigned value."""

    def __init__(self, module: ast.Module) -> None:
        self._module = module
        statements = list(_statements(module.body))
        self._names = dict(chain.from_iterable(map(_assigned, statements)))
        self._classes = {one.name: one for one in statements if isinstance(one, ast.ClassDef)}

    def tests(self) -> Iterator[tuple[str, tuple[Mark, ...]]]:
        yield from self._tests(self._module.body, "", self._listed(self._names.get("pytestmark")))

    def _tests(
        self, body: Sequence[ast.stmt], prefix: str, far: tuple[Mark, ...]
    ) -> Iterator[tuple[str, tuple[Mark, ...]]]:
        for one in _statements(body):
            if isinstance(one, ast.ClassDef):
                marks = (*far, *self._of_class(one))
                for ancestor in (*self._ancestors(one), one):
                    yield from self._tests(ancestor.body, f"{prefix}{one.name}::", marks)
            elif isinstance(one, _Function):
                yield from self._function(one, f"{prefix}{one.name}", far)

    def _function(self, test: ast.AST, name: str, far: tuple[Mark, ...]) -> Iterator[tuple[str, tuple[Mark, ...]]]:
        assert isinstance(test, _Function)
        own = tuple(mark for one in test.decorator_list if (mark := self._mark(one)))
        named, decorators = test.name.startswith("test"), (getattr(one, "func", one) for one in test.decorator_list)
        hands_on = not named and any(_dotted(one)[-1] == "fixture" for one in decorators)  # as in a class of unittest
        asks = not hands_on and _FIXTURES & {
            arg.arg for arg in (*test.args.posonlyargs, *test.args.args, *test.args.kwonlyargs)
        }
        ours = any(mark.gates for mark in own) or (named and any(mark.gates for mark in far))
        if not asks and not ours:
            return
        brought = dict(self._brought(test))
        marks = (*far, *own, *brought.pop("", ()))
        yield name, marks
        for param, closest in chain.from_iterable(map(self._parameters, test.decorator_list)):
            yield f"{name}[{param}]", (*marks, *closest)
        yield from ((f"{name}#{call}", (*marks, *closest)) for call, closest in brought.items())

    def _of_class(self, one: ast.ClassDef) -> tuple[Mark, ...]:
        """Return the marks of a class and of its bases in this file; its own are the closest."""
        decorated = tuple(mark for each in one.decorator_list if (mark := self._mark(each)))
        names = dict(chain.from_iterable(map(_assigned, one.body)))
        own = (*decorated, *self._listed(names.get("pytestmark")))
        return (*chain.from_iterable(map(self._of_class, self._bases(one))), *own)

    def _bases(self, one: ast.ClassDef) -> list[ast.ClassDef]:
        bases = (self._classes.get(base.id) for base in one.bases if isinstance(base, ast.Name))
        return [base for base in bases if base is not None and base.lineno < one.lineno]

    def _ancestors(self, one: ast.ClassDef) -> Iterator[ast.ClassDef]:
        for base in self._bases(one):
            yield from (*self._ancestors(base), base)

    def _parameters(self, decorator: ast.expr) -> Iterator[tuple[str, tuple[Mark, ...]]]:
        """Yield ``pytest.param(..., marks=)`` of a parametrised test."""
        for call in ast.walk(decorator):
            if isinstance(call, ast.Call) and _dotted(call.func)[-1] == "param":
                keywords = {word.arg: word.value for word in call.keywords}
                if marks := self._listed(keywords.get("marks")):
                    named = self._literal(keywords.get("id"))
                    yield named if isinstance(named, str) else "-".join(map(ast.unparse, call.args)), marks

    def _brought(self, test: ast.AST) -> Iterator[tuple[str, tuple[Mark, ...]]]:
        """Yield calls of the fixture with ``limits=``, by their names."""
        marks: dict[str, tuple[Mark, ...]] = {}
        for call in ast.walk(test):
            if not isinstance(call, ast.Call) or _dotted(call.func)[0] not in _FIXTURES:
                continue
            keywords = {word.arg: word.value for word in call.keywords}
            if "limits" in keywords:
                named = keywords.get("name")
                literal = self._literal(named)
                name = literal if isinstance(literal, str) else ast.unparse(named) if named else ""
                limits, unread = self._texts([ast.Starred(value=keywords["limits"])])
                marks[name] = (*marks.get(name, ()), Mark(limits=limits, unread=unread))
        yield from marks.items()

    def _listed(self, node: ast.expr | None) -> tuple[Mark, ...]:
        """Return ``pytestmark``, or ``marks=``: one mark or a list, of which the first is the closest."""
        node = self._meant(node)
        nodes = node.elts[::-1] if isinstance(node, (ast.List, ast.Tuple)) else [node] if node else []
        return tuple(mark for one in nodes if (mark := self._mark(one)))

    def _mark(self, node: ast.expr) -> Mark | None:
        meant = self._meant(node)
        if meant is None:
            return None
        if isinstance(meant, ast.Call):
            far = self._mark(meant.func)
            if far is not None and not far.gates:
                arguments = ast.unparse(meant).partition("(")[2].removesuffix(")")
                return replace(far, settings=((far.settings[0][0], arguments or _BARE),))
            return _joined(far, self._called(meant)) if far is not None else None
        words = _dotted(meant)
        if words[-2:-1] == _MARK[:1] and words[-1] in EXCUSES:
            return Mark(settings=((words[-1], _BARE),), gates=False)
        return Mark() if words[-2:] == _MARK else None

    def _called(self, call: ast.Call) -> Mark:
        limits, unread = self._texts(call.args)
        on: tuple[str, ...] = ()
        settings = []
        for word in call.keywords:
            if word.arg is None:
                unread += (f"**{ast.unparse(word.value)}",)
            elif (read := self._literal(word.value)) is None:
                unread += (f"{word.arg}={ast.unparse(word.value)}",)
            elif word.arg == "on":
                on = (read,) if isinstance(read, str) else tuple(map(str, read if isinstance(read, Iterable) else ()))
            else:
                settings.append((word.arg, repr(read)))
        return Mark(limits=limits, settings=tuple(settings), on=on, unread=unread)

    def _texts(self, nodes: Iterable[ast.expr]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return limits, and texts that cannot be read."""
        limits: list[str] = []
        unread: list[str] = []
        for node in nodes:
            listed = self._meant(node.value) if isinstance(node, ast.Starred) else None
            if isinstance(listed, (ast.List, ast.Tuple)):
                inner = self._texts(listed.elts)
                limits, unread = [*limits, *inner[0]], [*unread, *inner[1]]
                continue
            read = self._literal(node)
            if isinstance(read, str):
                limits.append(read)
            else:
                unread.append(ast.unparse(node))
        return tuple(limits), tuple(unread)

    def _meant(self, node: ast.expr | None) -> ast.expr | None:
        """Return the value that a name of the module refers to."""
        for _ in range(_DEEP):
            if not isinstance(node, ast.Name):
                break
            node = self._names.get(node.id)
        return node

    def _literal(self, node: ast.expr | None) -> object:
        """Return the value of a literal, or of a name for one, else ``None``."""
        meant = self._meant(node)
        try:
            return ast.literal_eval(meant) if meant is not None else None
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None


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


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements of one level, including those in ``if``, ``try`` and ``with``."""
    for one in body:
        yield one
        if isinstance(one, (ast.If, ast.Try, ast.With)):
            handlers = (line for handler in getattr(one, "handlers", ()) for line in handler.body)
            yield from _statements((*one.body, *handlers, *getattr(one, "orelse", ()), *getattr(one, "finalbody", ())))


def _assigned(one: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(one, (ast.Assign, ast.AnnAssign)) and one.value is not None:
        targets = one.targets if isinstance(one, ast.Assign) else [one.target]
        yield from ((target.id, one.value) for target in targets if isinstance(target, ast.Name))


_FILES = re.compile(
    r"(^|/)(requirements[\w.-]*\.(txt|in)|constraints[\w.-]*\.txt|[\w.-]+\.lock|package-lock\.json|go\.sum"
    r"|environment[\w.-]*\.ya?ml|conda-lock\.ya?ml|pixi\.toml|Pipfile|flake\.(nix|lock)"
    r"|\.python-version|\.tool-versions|mise\.toml|rust-toolchain(\.toml)?|[\w.-]*Dockerfile[\w.-]*|[\w.-]+\.cmake"
    r"|\.env(rc|\.[\w.-]+)?|\.github/workflows/[^/]+\.ya?ml|\.buildkite/[^/]+\.ya?ml|\.gitlab-ci\.ya?ml|Jenkinsfile)$"
)
"""Lock files, environment files, files that name a toolchain or an image, and files with a job's variables."""

_SHOWN = 3

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
        return f"this change edits {first_of((*self.requirements, *self.files), _SHOWN)}" if self else ""


def environment_files(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the files that decide what is installed or built with."""
    return tuple(path for path in paths if _FILES.search(path))


def requirements(then: str, now: str) -> tuple[str, ...]:
    """Return entries that one of two lists of declared dependencies (as JSON) has and the other lacks."""
    before, after = json.loads(then), json.loads(now)
    return (*(f"-{one}" for one in before if one not in after), *(f"+{one}" for one in after if one not in before))


def brought(moves: Iterable[Move], edits: EnvironmentEdits, installed: Collection[str]) -> str:
    """Return why the change itself is the cause of a changed time; "" if it is not.

    ``installed`` names facts that a project's files decide: packages and Python, not devices and drivers.
    """
    changes = tuple(moves)
    packages = {_package(name) for name, _, _ in changes if name in installed}
    declared = {_package(one[1:]) for one in edits.requirements}
    by_pin = bool(packages & declared)
    by_file = bool(edits.files and packages)
    return edits.text() if by_pin or by_file or not changes else ""


def _package(requirement: str) -> str:
    """Return a package's normalised name."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s<>=!~;\[@(]", requirement.strip())[0]).lower()
