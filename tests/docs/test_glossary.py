"""The glossary is short, and each term points to a page that uses the word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_perfgate.cli.explain import TERMS, Term, find_term
from pytest_perfgate.core.analysis.classify import Bottleneck

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


def test_the_word_that_a_report_prints_for_each_class_is_explained() -> None:
    plain = {Bottleneck.INVALID, Bottleneck.BALANCED, Bottleneck.NOT_COLLECTED}
    assert {getattr(find_term(f"{kind.value}-bound"), "name", kind) for kind in set(Bottleneck) - plain} == {"class"}


NOT_PROSE = re.compile(
    r"^ *```.*?^ *```$|<!--.*?-->|<[^>\n]*>|^(?:#|\|)[^\n]*|`[^`]*`|!?\[[^\]]*\]\([^)]*\)", re.MULTILINE | re.DOTALL
)
"""Code, comments, HTML, headings, rows of tables and links."""
OWN_LISTS = {"glossary.md", "errors.md"}
"""Pages that are lists themselves, written from the code."""
OTHER_MEANING = {
    "captures.md": {"sample"},  # of a profiler
    "clocks.md": {"round"},  # of processes over devices
    "devices.md": {"round"},
    "kernels.md": {"round"},  # to a number
    "mutation.md": {"round"},  # of mutants
    "timing.md": {"round"},  # of pytest-benchmark
    "traces.md": {"interval"},  # of time
}


def unlinked(page: str, text: str) -> list[tuple[str, tuple[int, int]]]:
    """The anchor and the place of the first use in prose of each term that the page does not link there or before."""
    prose = NOT_PROSE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    places = []
    for term in TERMS:
        anchor = term.name.replace(" ", "-").lower()
        words = r"\s+".join(map(re.escape, term.name.split()))
        use = re.search(rf"(?i)(?<![\w-]){words}s?(?![\w-])", prose)
        link = text.find(f"](glossary.md#{anchor})")
        if use and term.linked and term.name not in OTHER_MEANING.get(page, ()) and not 0 <= link < use.start():
            places.append((anchor, use.span()))
    return places


@pytest.mark.parametrize("page", sorted({path.name for path in DOCS.glob("*.md")} - OWN_LISTS))
def test_a_page_links_the_first_use_of_each_term(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    lines = {anchor: text.count("\n", 0, start) + 1 for anchor, (start, _) in unlinked(page, text)}
    assert lines == {}, "link these terms to glossary.md where they first stand in prose"


def test_a_use_before_the_link_and_none_in_prose_are_told_from_a_linked_one() -> None:
    link = "[suspect](glossary.md#suspect)"
    assert unlinked("a.md", f"A {link} is a suspect.") == []
    assert [anchor for anchor, _ in unlinked("a.md", f"A suspect, so a {link}.")] == ["suspect"]
    assert unlinked("a.md", "# Suspect\n\n| suspect |\n\n`suspect`\n\n```text\nsuspect\n```\n") == []


@pytest.mark.parametrize("page", OTHER_MEANING)
def test_a_word_of_another_meaning_is_still_on_its_page(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8").casefold()
    assert [word for word in OTHER_MEANING[page] if word not in text] == []
