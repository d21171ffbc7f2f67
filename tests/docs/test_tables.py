from __future__ import annotations

import pytest

from tests.docs.tables import DOCS, TABLES, with_tables


@pytest.mark.parametrize("page", TABLES)
def test_tables_of_the_pages_are_those_of_the_data(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert with_tables(page, text) == text, "python -m tests.docs.tables"
