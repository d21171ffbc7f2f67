"""Every file keeps the bounds on sizes and names; core and model touch nothing outside."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from ci.bench.house import LINES, ROOT, nodes

PACKAGE = ROOT / "pytest_perfgate"
SOURCES = sorted(PACKAGE.rglob("*.py"))
EVERY = SOURCES + sorted((ROOT / "tests").rglob("*.py")) + sorted((ROOT / "ci").rglob("*.py"))
PURE = [p for p in SOURCES if p.relative_to(PACKAGE).parts[0] in {"core", "model"}]

BANNED_FILES = {"utils", "helpers", "common", "misc", "manager", "handler", "base"}
BANNED_PREFIXES = ("get_", "compute_", "process_", "do_")
WORLD = {"open", "print", "input", "exec", "eval", "breakpoint", "__import__"}
WORLD_MODULES = {"os", "io", "sys", "time", "random", "secrets", "socket", "subprocess", "threading", "tempfile",
                 "shutil", "requests", "sqlite3", "yaml", "pandas", "logging", "datetime"}  # fmt: skip

PURELY = "core and model touch nothing outside: take the value as an argument, or do this in an adapter"


@lru_cache(maxsize=1)
def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [n for n in nodes(path) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]


def size(path: Path) -> Iterator[str]:
    """Files and functions keep their size."""
    lines = path.read_text(encoding="utf-8").count("\n")
    most = 600 if path.is_relative_to(ROOT / "tests") else LINES  # a module's tests stand in one file
    if lines > most:
        yield f"{lines} lines, of at most {most}: shorten it, or move one subject into another module"
    for f in functions(path):
        if f.end_lineno - f.lineno + 1 > 50:
            yield f"a function over 50 lines: {f.name} ({f.end_lineno - f.lineno + 1}); give a part of it a name"


def breadth(path: Path) -> Iterator[str]:
    """Classes and parameters keep their size."""
    for n in nodes(path):
        if isinstance(n, ast.ClassDef) and n.end_lineno - n.lineno + 1 > 150:
            yield f"a class over 150 lines: {n.name}"
    for f in functions(path):
        arguments = [a.arg for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)]
        count = len([a for a in arguments if a not in {"self", "cls"}])
        if count > 6 and not (f.name == "__call__" and "plugin" in path.parts):
            yield f"more than six parameters: {f.name} ({count})"


def names(path: Path) -> Iterator[str]:
    """Names explain."""
    if path.stem in BANNED_FILES:
        yield f"a file named {path.stem}"
    yield from (
        f"named {f.name}: name it after what it returns or does"
        for f in functions(path)
        if f.name.lstrip("_").startswith(BANNED_PREFIXES)
    )


def sentence(path: Path) -> Iterator[str]:
    """Every module says what it is."""
    if not ast.get_docstring(nodes(path)[0]):
        yield "a module starts with one sentence"


def world(path: Path) -> Iterator[str]:
    """Model and core touch nothing."""
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WORLD:
            yield f"{node.func.id}() in line {node.lineno}: {PURELY}"
        if isinstance(node, ast.Import):
            yield from (f"imports {a.name}: {PURELY}" for a in node.names if a.name.split(".")[0] in WORLD_MODULES)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in WORLD_MODULES:
            yield f"imports {node.module}: {PURELY}"


def test_every_file_keeps_the_bounds() -> None:
    """One test for all files: a test each costs more than its reading."""
    assert len(EVERY) > len(SOURCES) > len(PURE) > 0
    ours, pure = set(SOURCES), set(PURE)
    faults = [
        f"{path.relative_to(ROOT)}: {fault}"
        for path in EVERY
        for rule in (size, *((breadth, names, sentence) if path in ours else ()), *((world,) if path in pure else ()))
        for fault in rule(path)
    ]
    assert not faults, "\n".join(faults)


def test_every_rule_can_fail(tmp_path: Path) -> None:
    bad = tmp_path / "utils.py"
    many = ", ".join("abcdefg")
    body = "    pass\n" * 210
    bad.write_text(f"import os\nfrom time import sleep\ndef get_x({many}):\n{body}\nclass C:\n{body}\nopen(1)\n")
    faults = [fault for rule in (size, breadth, names, sentence, world) for fault in rule(bad)]
    assert [fault.split(":")[0].split(" (")[0].split(",")[0] for fault in faults] == [
        "427 lines", "a function over 50 lines", "a class over 150 lines", "more than six parameters",
        "a file named utils", "named get_x", "a module starts with one sentence",
        "imports os", "imports time", "open() in line 427",
    ]  # fmt: skip
