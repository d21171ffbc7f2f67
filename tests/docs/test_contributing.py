"""What CONTRIBUTING.md and the page of the architecture name is there."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md"]
TEXT = {page.name: page.read_text(encoding="utf-8") for page in PAGES}


def named_paths(text: str) -> set[str]:
    """Files and folders of the repository that a page names in backticks, alone or in a command."""
    spans = re.findall(r"`([^`\n]+)`", text)
    return {word for span in spans for word in re.findall(r"(?<![\w/])(?:pytest_perfgate|tests|ci|docs)/[\w./]*", span)}


@pytest.mark.parametrize("page", TEXT)
def test_every_file_that_is_named_exists(page: str) -> None:
    paths = named_paths(TEXT[page])
    assert len(paths) >= 8
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


NAMED = re.compile(r"`([A-Za-z_][\w.]*)` (?:in|of) `((?:pytest_perfgate|tests|ci)/[\w./]+\.py)`")
"""A name, and the file in which the page says that it stands."""


def named_in_files(page: str) -> list[tuple[str, str]]:
    return NAMED.findall(" ".join(TEXT[page].split()))


def test_every_name_is_in_the_file_that_is_named_beside_it() -> None:
    pairs = [pair for page in TEXT for pair in named_in_files(page)]
    assert len(pairs) >= 10
    files = {file: (ROOT / file).read_text(encoding="utf-8") for _, file in pairs}
    missing = [(name, file) for name, file in pairs if not re.search(rf"\b{name.rpartition('.')[2]}\b", files[file])]
    assert missing == []


def test_every_test_that_is_named_is_there() -> None:
    names = {name for text in TEXT.values() for name in re.findall(r"`(test_\w+)`", text)}
    assert names
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name in sorted(names) if f"def {name}(" not in code] == []


def test_links_of_contributing_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)", TEXT["CONTRIBUTING.md"]):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("module", sorted(set(re.findall(r"python -m ([\w.]+)", TEXT["CONTRIBUTING.md"])) - {"venv"}))
def test_every_module_that_is_run_exists(module: str) -> None:
    assert importlib.util.find_spec(module) is not None


@pytest.mark.parametrize("title", ["The life of a measurement", "The life of a trace"])
def test_a_life_has_ten_steps_and_each_names_its_files(title: str) -> None:
    part = TEXT["architecture.md"].partition(f"## {title}\n")[2].partition("\n## ")[0]
    steps = re.split(r"\n\d+\. ", part)[1:]
    assert len(steps) == 10
    for step in steps:
        assert re.search(r"`pytest_perfgate/\S+\.py`", step), step


def test_the_picture_of_the_layers_is_what_import_linter_holds() -> None:
    picture = TEXT["architecture.md"].partition("```text\n")[2].partition("```")[0]
    at = [picture.index(layer) for layer in ("plugin/", "wiring/", "app/", "core/", "model/")]
    assert at == sorted(at)
    contract = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("layers = [")[2].partition("]")[0]
    at = [contract.index(f"pytest_perfgate.{layer}") for layer in ("plugin", "wiring", "app", "core", "model")]
    assert at == sorted(at)


def test_the_front_page_is_short_and_its_links_and_pictures_are_there() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 150
    targets = [target for target in re.findall(r"\]\(([^)#]+)", text) if not target.startswith("https:")]
    assert any(target.endswith(".png") for target in targets)
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_table_of_markers_is_what_pyproject_registers() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    registered = re.findall(r'(?m)^  "(\w+): ', text.partition("\nmarkers = [\n")[2].partition("\n]")[0])
    rows = re.findall(r"(?m)^\| `(\w+)` \|", TEXT["CONTRIBUTING.md"].partition("| marker |")[2].partition("\n## ")[0])
    assert sorted(rows) == sorted(registered) != []
