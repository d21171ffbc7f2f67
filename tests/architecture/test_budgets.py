"""The house keeps its form: sizes, names, floors that touch nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pytest_perfgate"
SOURCES = sorted(PACKAGE.rglob("*.py"))
EVERY = SOURCES + sorted((ROOT / "tests").rglob("*.py")) + sorted((ROOT / "ci").rglob("*.py"))
PURE = [p for p in SOURCES if p.relative_to(PACKAGE).parts[0] in {"core", "model"}]

BANNED_FILES = {"utils", "helpers", "common", "misc", "manager", "handler", "base"}
BANNED_PREFIXES = ("get_", "compute_", "process_", "do_")
WORLD = {"open", "print", "input", "exec", "eval", "breakpoint", "__import__"}
WORLD_MODULES = {"os", "io", "sys", "time", "random", "secrets", "socket", "subprocess", "threading", "tempfile",
                 "shutil", "requests", "sqlite3", "yaml", "pandas", "logging", "datetime"}  # fmt: skip


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [n for n in ast.walk(tree(path)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]


@pytest.mark.parametrize("path", EVERY, ids=name)
def test_files_and_functions_keep_their_size(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= 300, f"{lines} lines: it is two things"
    long = [f"{f.name} ({f.end_lineno - f.lineno + 1})" for f in functions(path) if f.end_lineno - f.lineno + 1 > 50]
    assert not long, f"functions over 50 lines: {long}"


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_classes_and_parameters_keep_their_size(path: Path) -> None:
    classes = [n for n in ast.walk(tree(path)) if isinstance(n, ast.ClassDef)]
    assert not [c.name for c in classes if c.end_lineno - c.lineno + 1 > 150]
    crowded = []
    for f in functions(path):
        arguments = [a.arg for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)]
        count = len([a for a in arguments if a not in {"self", "cls"}])
        if count > 6 and not (f.name == "__call__" and "plugin" in path.parts):
            crowded.append(f"{f.name} ({count})")
    assert not crowded, f"more than six parameters: {crowded}"


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_names_explain(path: Path) -> None:
    assert path.stem not in BANNED_FILES
    assert not [f.name for f in functions(path) if f.name.lstrip("_").startswith(BANNED_PREFIXES)]


@pytest.mark.parametrize("path", PURE, ids=name)
def test_model_and_core_touch_nothing(path: Path) -> None:
    touched = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WORLD:
            touched.append(f"{node.func.id}() in line {node.lineno}")
        if isinstance(node, ast.Import):
            touched += [a.name for a in node.names if a.name.split(".")[0] in WORLD_MODULES]
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in WORLD_MODULES:
            touched.append(node.module or "")
    assert not touched


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(tree(path)), "a module starts with one sentence"
