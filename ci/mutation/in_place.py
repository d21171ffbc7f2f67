"""Mutants inside of functions: tried in forks of one pytest that has collected all tests."""

from __future__ import annotations

import ast
import functools
import gc
import importlib
import json
import os
import sys
import time
import types
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ci.mutation.mutants import ROOT, Home, Mutant
from ci.mutation.trial import ENDLESS, FAILED, OPTIONS, PASSED, PLACES, UNTRIED, forked, keep, say

SECONDS = 20
"""Of processor time: one that takes longer is caught in a loop."""
WAY = "in place"


def passes(items: Iterable[Any]) -> bool:
    from _pytest.runner import runtestprotocol

    return all(not report.failed for item in items for report in runtestprotocol(item, log=False, nextitem=None))


def functions(value: Any, module: str, visited: set[int]) -> Iterator[types.FunctionType]:
    """Yield every function that a module's names lead to, through classes and decorators."""
    if id(value) in visited:
        return
    visited.add(id(value))
    if isinstance(value, types.FunctionType):
        yield value
    for name in ("__wrapped__", "__func__", "fget", "func"):
        if getattr(value, name, None) is not None and not isinstance(value, type):
            yield from functions(getattr(value, name), module, visited)
    if isinstance(value, type) and value.__module__ == module:
        for member in list(vars(value).values()):
            yield from functions(member, module, visited)


def code_of(code: types.CodeType, home: Home) -> types.CodeType | None:
    if (code.co_name, code.co_firstlineno) == home:
        return code
    inner = (code_of(c, home) for c in code.co_consts if isinstance(c, types.CodeType))
    return next((c for c in inner if c is not None), None)


def patched(mutant: Mutant, live: types.FunctionType) -> None:
    """Give the live function the mutant's code, and forget what was computed before."""
    code = code_of(compile(mutant.tree(), str(mutant.path), "exec"), mutant.home or ("", 0))
    if code is None or len(code.co_freevars) != len(live.__code__.co_freevars):
        raise LookupError(mutant)
    live.__code__ = code
    for module in [m for name, m in sys.modules.items() if name.startswith("pytest_perfgate")]:
        for value in list(vars(module).values()):
            if isinstance(value, functools._lru_cache_wrapper):  # type: ignore[attr-defined]  # noqa: SLF001
                value.cache_clear()


def watch(*places: str) -> Any:
    """Return a coverage measurement that writes no file."""
    import coverage

    return coverage.Coverage(data_file=None, include=[str(ROOT / p / "*") for p in places], config_file=False)


def bodies(path: str) -> Iterator[tuple[str, range]]:
    """Yield each function of a file by name and first line, with the lines of its body."""
    for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            yield f"{path}:{node.name}:{first}", range(node.body[0].lineno, (node.end_lineno or 0) + 1)


class InPlace:
    """A pytest plugin that runs the mutants instead of the tests."""

    def __init__(self, tried: list[Mutant], out: Path) -> None:
        self.tried, self.out = tried, out
        self.imports = watch(*PLACES)
        self.early: set[str] = set()
        """Functions that ran while tests were imported: what they returned then is kept who knows where."""

    def pytest_sessionstart(self) -> None:
        self.imports.start()

    def pytest_collection_finish(self) -> None:
        self.imports.stop()
        data = self.imports.get_data()
        for path in data.measured_files():
            ran = set(data.lines(path) or ())
            self.early |= {name for name, body in bodies(path) if ran & set(body)}

    def pytest_runtestloop(self, session: Any) -> bool:
        reach = self.out / "reach.json"
        gc.freeze()
        if session.testsfailed or forked(600, lambda: self.control(session.items, reach)) != PASSED:
            return True
        (self.out / "loaded.json").write_text(json.dumps(sorted(sys.modules)), encoding="utf-8")
        reach_of = json.loads(reach.read_text(encoding="utf-8"))["functions"]
        killed, begun, rest = 0, time.monotonic(), []
        for at, mutant in enumerate(self.tried, 1):
            how = self.outcome(mutant, session.items, reach_of)
            killed += how in {FAILED, ENDLESS}
            rest += [mutant.key] if how == UNTRIED else []
            if at % 100 == 0:
                say(f"{at} of {len(self.tried)} in place: {killed} killed, {time.monotonic() - begun:.0f} s")
        (self.out / "rest.json").write_text(json.dumps(rest), encoding="utf-8")
        return True

    def outcome(self, mutant: Mutant, items: list[Any], reach_of: dict[str, list[int]]) -> str:
        """Return how the tests end, and store it; a mutant that needs a fresh import stays untried."""
        live = self.live(mutant)
        if live is None or mutant.home is None:
            return UNTRIED
        name = f"{mutant.path}:{mutant.home[0]}:{mutant.home[1]}"
        mine = [items[n] for n in reach_of.get(name, [])]

        def attempt() -> bool:
            patched(mutant, live)
            return passes(mine)

        how = forked(SECONDS, attempt)
        if how == UNTRIED or (how == PASSED and name in self.early):
            return UNTRIED
        keep(mutant, how, WAY)
        return how

    @staticmethod
    def live(mutant: Mutant) -> types.FunctionType | None:
        module = importlib.import_module(mutant.module)
        visited: set[int] = set()
        every = [f for value in list(vars(module).values()) for f in functions(value, mutant.module, visited)]
        same = [f for f in every if f.__module__ == mutant.module]
        return next((f for f in same if (f.__name__, f.__code__.co_firstlineno) == mutant.home), None)

    def control(self, items: list[Any], reach: Path) -> bool:
        """Run all tests on the unbroken code, and write which of them reach which function, the fastest first."""
        cover = watch(*PLACES)
        cover.start()
        took = []
        for at, item in enumerate(items):
            cover.switch_context(str(at))
            begun = time.perf_counter()
            if not passes([item]):
                return False
            took.append(time.perf_counter() - begun)
        cover.stop()
        data, reach_of = cover.get_data(), defaultdict(set)
        files: dict[str, list[str]] = {}
        for path in data.measured_files():
            lines = data.contexts_by_lineno(path)
            for name, body in bodies(path):
                reach_of[name] |= {int(c) for line in body for c in lines.get(line, ()) if c}
            ran = {int(c) for contexts in lines.values() for c in contexts if c}
            files[path] = sorted({str(items[n].path) for n in ran})
        functions = {name: sorted(ran, key=took.__getitem__) for name, ran in reach_of.items()}
        reach.write_text(json.dumps({"functions": functions, "files": files}), encoding="utf-8")
        return True


def in_place(mutants: list[Mutant], files: list[Path], folder: Path) -> bool:
    """Try mutants in forks of one pytest; return False if the tests fail on the unbroken code."""
    child = os.fork()
    if not child:
        import pytest

        pytest.main([*OPTIONS, f"--basetemp={folder}/tests", *map(str, files)], plugins=[InPlace(mutants, folder)])
        os._exit(0)
    os.waitpid(child, 0)
    return (folder / "rest.json").exists()
