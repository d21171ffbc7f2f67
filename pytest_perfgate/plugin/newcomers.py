"""Tests that are new in the change under test, where the revision it is held against cannot run them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_perfgate.plugin.docket import Docket


def file_texts(session: Docket, base: str) -> Callable[[str], tuple[str | None, str]]:
    """Reads a test file at the base, where it is there, and here."""
    repository, root = session.court.tools.repository, session.settings.pytest.rootpath

    def texts(path: str) -> tuple[str | None, str]:
        then = repository.show(base, path) if repository is not None else None
        return then, (root / path).read_text(encoding="utf-8", errors="replace")

    return texts
