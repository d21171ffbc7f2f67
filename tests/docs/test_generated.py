"""Pages that are made from tables agree with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.errors_page import PAGE, render
from pytest_perfgate.cli.dispatch import GROUPS, command_module, description
from pytest_perfgate.model.errors import CODES

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_errors_has_every_code() -> None:
    page = render()
    assert all(f"\n### {name}\n" in page for name in CODES)
    assert PAGE.read_text(encoding="utf-8") == page, "run: python -m ci.errors_page"


@pytest.mark.parametrize("name", [name for commands in GROUPS.values() for name in commands])
def test_every_command_of_the_overview_is_there(name: str) -> None:
    assert callable(getattr(command_module(name), f"run_{name.replace('-', '_')}"))
    assert description(name)
