"""The glossary is short, and each term points to a page that uses the word."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_perfgate.core.glossary import TERMS, Term

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_glossary_is_short() -> None:
    assert len(TERMS) <= 30
    words = [word.casefold() for term in TERMS for word in (term.name, *term.also)]
    assert len(words) == len(set(words))


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_a_term_is_one_line_and_its_page_uses_the_word(term: Term) -> None:
    assert len(term.meaning) <= 120
    assert term.meaning.endswith(".")
    page = (DOCS / f"{term.page}.md").read_text(encoding="utf-8").casefold()
    assert any(word.casefold() in page for word in (term.name, *term.also))
