"""Modules, classes and functions are named by words of the field, not by metaphors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci.bench.house import ROOT, nodes

METAPHORS = frozenset(
    [
        "acquit",
        "acquits",
        "acquitted",
        "bailiff",
        "bailiffs",
        "blind",
        "blindness",
        "bystander",
        "bystanders",
        "convict",
        "convictor",
        "convicts",
        "convicted",
        "court",
        "courts",
        "crew",
        "crews",
        "crowd",
        "crowds",
        "crowded",
        "docket",
        "dockets",
        "duet",
        "duets",
        "heir",
        "heirs",
        "hearing",
        "hearings",
        "jury",
        "lens",
        "lenses",
        "mend",
        "mended",
        "mends",
        "nursery",
        "nurseries",
        "scanty",
        "sitting",
        "sittings",
        "spared",
        "stranger",
        "strangers",
        "tidied",
        "twin",
        "twins",
        "uprooted",
        "ward",
        "wards",
        "witness",
        "witnesses",
        "witnessed",
    ]
)
VAGUE = frozenset(["beside", "borrowed", "handed", "inherited", "sight", "sighted", "told"])
"""Words that are plain inside the sentence that names a test, and say nothing as the name of a function."""
LOCALS = frozenset(["spoken"])
"""Words that no parameter, local or field of the package has, beside the metaphors."""
EMPTY = frozenset(["asked", "found", "given", "held", "said", "seen", "told"])
"""Names of parameters and locals that say nothing of their content."""
NAMED_BY_CONTENT = {
    "known": ("adapters", "app", "cli", "core/changes", "core/judge", "core/limits", "model", "plugin", "wiring"),
    "kept": ("adapters", "app", "cli", "core/changes", "core/limits", "plugin", "wiring"),
}
"""Words that are such names too, with the folders that have none of them."""
RIDDLES = frozenset(
    [
        "apart",
        "asked",
        "everywhere",
        "fate",
        "found",
        "given",
        "gone",
        "held",
        "here",
        "kept",
        "known",
        "left",
        "made",
        "meant",
        "said",
        "seen",
        "taken",
        "talking",
        "told",
        "unheld",
        "whole",
    ]
)
"""Names of functions that say neither what is returned nor what is done."""
PUBLIC = {("pytest_perfgate/plugin/fixture.py", "kept")}
"""Functions that users may call by such a name."""
NAMED_BY_ACT = ("adapters", "app", "cli", "core", "model", "plugin", "wiring")
"""Folders without a function of such a name."""
PLAINER = "take a noun or verb of the field: CONTRIBUTING.md, Names"
SCRIPTS = (ROOT / "ci" / "gpu-check", ROOT / "ci" / "mutate")


def words_of(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def names_in(path: Path) -> Iterator[tuple[int, str]]:
    yield 1, path.stem
    for node in nodes(path):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name


def locals_in(path: Path) -> Iterator[tuple[int, str]]:
    """Parameters, and names and fields that are given a value."""
    for node in nodes(path):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def banned(folder: Path, words: frozenset[str]) -> list[str]:
    files = [path for path in folder.rglob("*.py") if "artifacts" not in path.parts]
    assert files
    return [
        f"{path.relative_to(folder)}:{line} {name}"
        for path in sorted(files)
        for line, name in names_in(path)
        if words_of(name) & words
    ]


@pytest.mark.parametrize(
    ("folder", "words"), [("pytest_perfgate", METAPHORS | VAGUE), ("tests", METAPHORS), ("ci", METAPHORS)]
)
def test_no_metaphor_is_a_name(folder: str, words: frozenset[str]) -> None:
    assert banned(ROOT / folder, words) == [], PLAINER


def test_no_metaphor_is_a_local_of_the_package() -> None:
    files = sorted((ROOT / "pytest_perfgate").rglob("*.py"))
    assert [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in files
        for line, name in locals_in(path)
        if words_of(name) & (METAPHORS | LOCALS)
    ] == [], PLAINER


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("pytest_perfgate", EMPTY),
        *((folder, EMPTY | NAMED_BY_CONTENT.keys()) for folder in ("ci", "tests")),
        *((f"pytest_perfgate/{folder}", {word}) for word, folders in NAMED_BY_CONTENT.items() for folder in folders),
    ],
)
def test_a_local_is_named_after_its_content(folder: str, words: set[str]) -> None:
    files = [*(ROOT / folder).rglob("*.py"), *(SCRIPTS if folder == "ci" else ())]
    assert files
    assert [
        f"{path.relative_to(ROOT)}:{node.lineno} {name}"
        for path in sorted(files)
        for node in nodes(path)
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        if (name := node.arg if isinstance(node, ast.arg) else node.id) in words
    ] == [], "name it after its content: metrics, lines, cases"


@pytest.mark.parametrize("folder", ["ci", *(f"pytest_perfgate/{folder}" for folder in NAMED_BY_ACT)])
def test_a_function_is_named_after_what_it_does(folder: str) -> None:
    files = [*(ROOT / folder).rglob("*.py"), *(SCRIPTS if folder == "ci" else ())]
    assert files
    assert [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in sorted(files)
        for node in nodes(path)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.strip("_") in RIDDLES
        if (path.relative_to(ROOT).as_posix(), node.name) not in PUBLIC
    ] == [], "name it after the value that it returns or the work that it does"


def homonyms(folder: Path) -> dict[str, list[str]]:
    """Return public classes of one name in several modules, but for protocols beside a class that fulfils them."""
    places: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                protocol = any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
                places.setdefault(node.name, []).append("" if protocol else path.relative_to(folder).as_posix())
    return {name: files for name, files in places.items() if len([*filter(None, files)]) > 1}


def test_the_name_of_a_class_means_one_thing() -> None:
    assert homonyms(ROOT / "pytest_perfgate") == {}, "rename one; a class of one module alone begins with _"


def test_a_class_name_with_two_meanings_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Job: ...\nclass Card(Protocol): ...\nclass _Own: ...\n")
    (tmp_path / "b.py").write_text("class Job: ...\nclass Card: ...\nclass _Own: ...\n")
    assert homonyms(tmp_path) == {"Job": ["a.py", "b.py"]}


@pytest.mark.parametrize("text", ["def f(heir): ...", "spoken = 1", "class A:\n    twin: int = 0", "self.crew = 1"])
def test_a_metaphor_is_seen_as_a_local(tmp_path: Path, text: str) -> None:
    (tmp_path / "module.py").write_text(text)
    names = [name for _, name in locals_in(tmp_path / "module.py") if words_of(name) & (METAPHORS | LOCALS)]
    assert len(names) == 1


@pytest.mark.parametrize("text", ["class Heir: ...", "def _told(): ...", "class A:\n    def crowded(self): ..."])
def test_a_metaphor_is_seen(tmp_path: Path, text: str) -> None:
    (tmp_path / "module.py").write_text(text)
    assert len(banned(tmp_path, METAPHORS | VAGUE)) == 1


def test_the_name_of_a_module_is_seen_and_longer_words_are_not(tmp_path: Path) -> None:
    (tmp_path / "nursery.py").write_text("def forward(): ...\ndef rewards(): ...\n")
    assert banned(tmp_path, METAPHORS | VAGUE) == ["nursery.py:1 nursery"]
