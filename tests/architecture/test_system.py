"""What touches the machine has one home: commands, locks, git and the replacing of files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from ci.bench.house import PACKAGE, nodes

STARTERS = {
    "adapters/system/processes.py": "the runner",
    "adapters/children/spawn.py": "children answer over a socket while they run",
    "adapters/readers/kineto.py": "streams the other half of a trace",
    "cli/run.py": "hands the terminal to pytest",
    "cli/machine.py": "hands the terminal to pytest",
}
"""Modules that start programs, and why each does."""


START = {"subprocess.run", "subprocess.Popen", "subprocess.call", "os.system"}
REPLACE = {"os.replace", "os.rename", "tempfile.mkstemp"}
METHODS = {name.split(".")[1] for name in START | REPLACE}


def calls(syntax: list[ast.AST]) -> Iterator[str]:
    """Dotted names that are called, of those that end as one that is watched does."""
    for node in syntax:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            yield ast.unparse(node.func)


def runs_git(node: ast.AST) -> bool:
    """Whether this is a list that begins with git."""
    first = node.elts[:1] if isinstance(node, ast.List) else ()
    return any(isinstance(word, ast.Constant) and word.value == "git" for word in first)


def imports(syntax: list[ast.AST]) -> Iterator[str]:
    """Modules that are imported anywhere in a file."""
    for node in syntax:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def statements(syntax: list[ast.AST]) -> Iterator[str]:
    """Texts that are SQL, or part of it."""
    texts = (node.value for node in syntax if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return (text for text in texts if SQL.search(text))


SQL = re.compile(r"\b(select|insert|update|delete|values|where)\b", re.IGNORECASE)
NUMBERED = re.compile(r"\?\d")
"""A placeholder with a number: with a sequence of arguments Python 3.12.0 to 3.12.3 print a warning at it."""


def faults(name: str, syntax: list[ast.AST]) -> Iterator[str]:
    """What a module does that is the system's to do."""
    inside = name.startswith("adapters/system/")
    called, imported = set(calls(syntax)), set(imports(syntax))
    if name not in STARTERS and called & START:
        yield f"{name} starts a program: adapters.system.processes does"
    if not inside and imported & {"fcntl", "msvcrt"}:
        yield f"{name} locks files: adapters.system.files does"
    if not inside and called & REPLACE:
        yield f"{name} replaces files: adapters.system.files does"
    if not inside and any(map(runs_git, syntax)):
        yield f"{name} runs git: adapters.system.git does"
    if any(map(NUMBERED.search, statements(syntax))):
        yield f"{name} numbers the placeholders of a statement: write ? alone"


def test_what_touches_the_machine_has_one_home() -> None:
    names = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
    assert set(STARTERS) <= set(names)
    violations = [fault for name, path in names.items() for fault in faults(name, nodes(path))]
    assert not violations, "\n".join(violations)


@pytest.mark.parametrize(
    "line",
    [
        "subprocess.run(['ls'])",
        "import fcntl",
        "os.replace(a, b)",
        "run_captured(['git', 'log'])",
        "database.execute(f'insert into run ({names}) values (?2, ?1)', row)",
    ],
)
def test_each_rule_can_fail(line: str) -> None:
    assert list(faults("adapters/stores/new.py", list(ast.walk(ast.parse(line)))))
