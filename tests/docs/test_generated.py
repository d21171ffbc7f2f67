"""Pages that are made from tables agree with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.errors_page import PAGE, render
from pytest_perfgate.adapters.readers.benchmarks import READERS
from pytest_perfgate.cli.dispatch import GROUPS, command_module, description
from pytest_perfgate.model.errors import codes
from pytest_perfgate.wiring.built_ins import BENCHMARK_TOOLS, benchmarks_of

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_errors_has_every_code() -> None:
    page = render()
    assert all(f"\n### {name}\n" in page for name in codes())
    assert PAGE.read_text(encoding="utf-8") == page, "run: python -m ci.errors_page"


@pytest.mark.parametrize("name", [name for commands in GROUPS.values() for name in commands])
def test_every_command_of_the_overview_is_there(name: str) -> None:
    assert callable(getattr(command_module(name), f"run_{name.replace('-', '_')}"))
    assert description(name)


@pytest.mark.parametrize("page", ["accepting.md", "limits.md", "other-tools.md"])
def test_every_benchmark_tool_stands_on_the_pages_that_list_them(page: str) -> None:
    words = " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())
    assert [title for title in BENCHMARK_TOOLS.values() if title not in words] == [], f"name it on docs/{page}"


def test_the_help_of_import_names_every_benchmark_tool() -> None:
    assert [title for title in BENCHMARK_TOOLS.values() if title not in description("import")] == []


def test_every_benchmark_tool_has_a_reader_and_keys() -> None:
    assert [benchmarks_of(tool).name for tool in BENCHMARK_TOOLS] == list(READERS) == list(BENCHMARK_TOOLS)
