"""The figures of the package: files, sizes, imports, start-up, and the modules that a measurement and a trace pass.

usage: python -m ci.bench.house [--all]   (with the start-up and the walks, which take a minute)
"""

from __future__ import annotations

import argparse
import ast
import gc
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path

from ci.bench.trace_maker import write_trace

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pytest_perfgate"
LINES, SMALL, SINGLE = 400, 60, 80
"""The most lines of a module; those below which it needs a reason, or belongs into its only importer."""
LAYERS = (
    {"model", "hookspecs", "clock"},
    {"core"},
    {"app", "adapters"},
    {"wiring"},
    {"plugin", "cli", "compat", "perf_report"},
    {"work", "testing"},
)
"""From the lowest to the highest; the last ones are public names of what lies below.

The package itself only names what is public, and loads it on first use."""
ROUNDS = 20


# the modules


@lru_cache(maxsize=1)
def files() -> Mapping[str, Path]:
    """Return the modules of the package by their dotted names."""
    return {dotted(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def dotted(path: Path) -> str:
    """Return the name under which a file is imported."""
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def lines() -> dict[str, int]:
    """Return the lines of each module, without files that only make a folder a package."""
    modules = ((name, path) for name, path in files().items() if path.name != "__init__.py")
    return {name: path.read_text("utf-8").count("\n") for name, path in modules}


def folders() -> Counter[str]:
    """Return the files of each folder, with the one that makes it a package."""
    return Counter(path.parent.relative_to(PACKAGE).as_posix() for path in files().values())


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Return all of a file's syntax, its tree first; frozen, so that the collector does not examine it repeatedly."""
    collecting = gc.isenabled()
    gc.disable()
    syntax: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
    for node in syntax:
        for value in (getattr(node, field, None) for field in node._fields):
            syntax += [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, ast.AST)]
    gc.freeze()
    if collecting:
        gc.enable()
    return syntax


# the imports


def statements(body: list[ast.stmt]) -> Iterator[ast.ImportFrom | ast.Import]:
    """Yield the imports that run with the module: not those inside functions, nor those for types alone."""
    for node in body:
        if isinstance(node, (ast.ImportFrom, ast.Import)):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from statements([*node.body, *node.orelse])
        elif isinstance(node, (ast.Try, ast.With)):
            yield from statements(node.body)


def targets(statements: Iterable[ast.AST]) -> set[str]:
    """Return the modules of the package that import statements name."""
    named = set()
    for node in statements:
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = ((node.module or "", f"{node.module}.{alias.name}") for alias in node.names)
            named |= {whole if whole in files() else module for module, whole in names}
    return named & set(files())


@lru_cache(maxsize=2)
def imports(*, anywhere: bool = False) -> Mapping[str, frozenset[str]]:
    """Return each module with those that it imports when it is imported, or ``anywhere`` in its text."""
    arrows = {}
    for name, path in files().items():
        syntax = nodes(path)
        arrows[name] = frozenset(targets(syntax if anywhere else statements(syntax[0].body)) - {name})
    return arrows


def circle(arrows: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the modules that remain when those that import none of the rest are removed, repeatedly."""
    remaining = dict(arrows)
    while free := {name for name, below in remaining.items() if not below & set(remaining)}:
        remaining = {name: below for name, below in remaining.items() if name not in free}
    return set(remaining)


def upward() -> list[tuple[str, str]]:
    """Return the imports from a lower layer into a higher one, wherever they stand."""
    level = {layer: number for number, layers in enumerate(LAYERS) for layer in layers}

    def of(name: str) -> int:
        return level[name.split(".")[1]]

    arrows = {
        name: imported - {PACKAGE.name} for name, imported in imports(anywhere=True).items() if name != PACKAGE.name
    }
    return [(name, below) for name, imported in arrows.items() for below in sorted(imported) if of(below) > of(name)]


def single_importers() -> dict[str, str]:
    """Return short modules that only one other module imports, with that module."""
    importers: dict[str, set[str]] = {}
    for name, imported in imports(anywhere=True).items():
        for below in imported:
            importers.setdefault(below, set()).add(name)
    sizes = lines()
    return {name: min(by) for name, by in importers.items() if len(by) == 1 and sizes.get(name, SINGLE) < SINGLE}


def small() -> dict[str, int]:
    """Return the modules below the size that a subject needs."""
    return {name: count for name, count in lines().items() if count < SMALL}


# the start-up


def cpu_ms(code: str, rounds: int = ROUNDS) -> float:
    """Return the median CPU time of an interpreter that runs some code, with cached byte code."""
    env = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(rounds + 1):
        child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=env)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0, code
        times.append(1e3 * (usage.ru_utime + usage.ru_stime))
    return statistics.median(times[1:])


def start_up() -> dict[str, float]:
    """Return the milliseconds that importing the controller and a measuring child adds to ``import pytest``."""
    bare = cpu_ms("import pytest")
    parts = ("controller", "child")
    return {part: cpu_ms(f"import pytest, pytest_perfgate.plugin.{part}") - bare for part in parts}


# the walks

TEST = """
import pytest

@pytest.mark.perfgate("time <= 1ns")
def test_call(perfgate):
    perfgate(sum, range(1000))
"""
WALKS = {
    "samples to block": (
        ("core.judge.judge:judge", "core.render.block:render_block"),
        "import pytest; pytest.main(['-q', '-p', 'no:cacheprovider', '--perfgate=quick', 'test_it.py'])",
    ),
    "trace file to table": (
        ("app.inspections:inspect", "core.render.text:render_text"),
        "from pytest_perfgate.cli import main; main(['inspect', 'trace.json'])",
    ),
}
"""By name the functions within which a module counts, the last of which ends the walk; and what is run."""
FORMS = ("Samples", "Measurement", "Ruling", "Verdict", "CaseReport", "Trace", "Survey", "Analysis", "Document", "str")
"""Types of what a measurement and a trace become on their way, up to the text that is shown."""
PROBE = """
import sys
begins, forms, walked, handed, depth = {begins!r}, {forms!r}, [], [], {{"within": 0, "importing": 0}}

def watch(frame, event, result):
    module, code = frame.f_globals.get("__name__", ""), frame.f_code
    if event not in ("call", "return") or not module.startswith("pytest_perfgate."):
        return
    step, place = (1 if event == "call" else -1), module.removeprefix("pytest_perfgate.")
    if code.co_name == "<module>":
        depth["importing"] += step
    if place + ":" + code.co_name in begins:
        depth["within"] += step
    if depth["within"] and not depth["importing"] and code.co_flags & 1 and place not in walked:
        walked.append(place)
    whole = event == "return" and type(result).__name__ in forms[:-1] or place + ":" + code.co_name in begins
    if whole and not depth["importing"] and code.co_flags & 1 and place not in handed:
        handed.append(place)
    if event == "return" and place + ":" + code.co_name == begins[-1]:
        sys.setprofile(None)

sys.setprofile(watch)
try:
    {code}
except SystemExit:
    pass
sys.setprofile(None)
print("\\nWALKED", *walked)
print("HANDED", *handed)
"""


def walk(name: str) -> tuple[list[str], list[str]]:
    """Modules with a function that returns one of the forms, and those with any function that runs meanwhile.

    Both in the order of the first call, the values of the model apart.
    """
    begins, code = WALKS[name]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_it.py").write_text(TEST)
        write_trace(Path(folder, "trace.json"), 2000)
        command = [sys.executable, "-c", PROBE.format(begins=begins, forms=FORMS, code=code)]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(("WALKED", "HANDED"))]
    running, handing = ([place for place in row[1:] if not place.startswith("model")] for row in rows)
    return handing, running


def figures() -> Iterator[tuple[str, str]]:
    """Yield what a reader asks first, each with its name."""
    sizes = lines()
    counts = sorted(sizes.values())
    yield "modules", f"{len(files())}"
    yield "lines", f"{sum(path.read_text('utf-8').count(chr(10)) for path in files().values()):,}"
    yield "lines of a module", f"{counts[0]} to {counts[-1]}, median {statistics.median(counts):g}"
    yield "largest folders", ", ".join(f"{name} {count}" for name, count in folders().most_common(4))
    yield f"modules under {SMALL} lines", ", ".join(sorted(small())) or "none"
    yield f"modules under {SINGLE} lines with one importer", ", ".join(sorted(single_importers())) or "none"
    yield "imports between modules, at their top", f"{sum(map(len, imports().values())):,}"
    yield "modules in circles of imports", f"{len(circle(imports()))}"
    yield "imports from a layer above", ", ".join(f"{a} -> {b}" for a, b in upward()) or "none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="the start-up and the walks too: a minute")
    options = parser.parse_args()
    rows = list(figures())
    if options.all:
        rows += [(f"import of plugin.{part} beyond pytest", f"{ms:.0f} ms of CPU") for part, ms in start_up().items()]
        for name in WALKS:
            handing, running = walk(name)
            rows.append((f"{name}: modules that hand it on", f"{len(handing)}: {', '.join(handing)}"))
            rows.append((f"{name}: modules that run", f"{len(running)}: {', '.join(running)}"))
    for name, text in rows:
        print(f"{name:45} {text}")


if __name__ == "__main__":
    main()
