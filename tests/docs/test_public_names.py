"""Pages and examples import what is public, and nothing else; what is public is there and typed."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_perfgate
from tests.docs.pages import PAGES, ROOT, blocks

PUBLIC = ("pytest_perfgate", "pytest_perfgate.model", "pytest_perfgate.testing", "pytest_perfgate.work")
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))


def private(code: str) -> Iterator[str]:
    """What code imports of the package beside its public names."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            yield from (name for name in names if name.startswith("pytest_perfgate.") and name not in PUBLIC)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "pytest_perfgate":
            public = importlib.import_module(node.module).__all__ if node.module in PUBLIC else ()
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name not in public)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("from pytest_perfgate import work, Perfgate\nimport pytest_perfgate.testing", []),
        ("from pytest_perfgate.model import Runtime\nimport numpy", []),
        ("from pytest_perfgate import core", ["pytest_perfgate.core"]),
        ("from pytest_perfgate.model.metric import Metric", ["pytest_perfgate.model.metric.Metric"]),
        ("def late():\n    import pytest_perfgate.core.stats", ["pytest_perfgate.core.stats"]),
        ("from pytest_perfgate.model import metric", ["pytest_perfgate.model.metric"]),
    ],
)
def test_what_is_private_is_found(code: str, names: list[str]) -> None:
    assert list(private(code)) == names


def test_pages_import_public_names_alone() -> None:
    code = [block for page in PAGES for block in blocks(page) if block.language == "python"]
    assert sum("pytest_perfgate" in block.text for block in code) >= 4
    assert not {block.place: names for block in code if (names := list(private(block.text)))}


def test_examples_import_public_names_alone() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in EXAMPLES}
    assert sum("from pytest_perfgate import" in text for text in texts.values()) >= 4
    assert not {str(path): names for path, text in texts.items() if (names := list(private(text)))}


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_module_has_its_names_and_lists_them(name: str) -> None:
    module = importlib.import_module(name)
    assert len(module.__all__) == len(set(module.__all__))
    assert [each for each in module.__all__ if not hasattr(module, each)] == []
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("name", ["pytest_perfgate", "pytest_perfgate.model"])
def test_a_name_that_is_loaded_late_is_what_a_type_checker_reads(name: str) -> None:
    """Two modules below the package may define one name."""
    package = importlib.import_module(name)
    declared = {}
    for node in ast.walk(ast.parse(Path(package.__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pytest_perfgate"):
            declared |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    assert set(declared) == {each for each in package.__all__ if not each.startswith("__")}
    for public, (home, attribute) in declared.items():
        assert getattr(package, public) is getattr(importlib.import_module(home), attribute), public


def test_a_name_that_is_not_public_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Gate'"):
        pytest_perfgate.Gate
    with pytest.raises(AttributeError, match="no attribute 'fields'"):
        pytest_perfgate.model.fields


@pytest.mark.parametrize(
    ("code", "unloaded"),
    [
        ("import pytest_perfgate", "pytest_perfgate."),
        ("import pytest_perfgate.model", "pytest_perfgate.model."),
        ("from pytest_perfgate import work", "numpy"),
        ("import pytest_perfgate.work", "numpy"),
        ("from pytest_perfgate import testing", "numpy"),
    ],
)
def test_public_modules_cost_little(code: str, unloaded: str) -> None:
    program = f"import sys\n{code}\nprint(*[name for name in sys.modules if name.startswith({unloaded!r})])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
