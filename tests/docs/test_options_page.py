from __future__ import annotations

from ci.options_page import PAGE, render


def test_the_page_of_options_is_what_the_tables_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run: python -m ci.options_page"
