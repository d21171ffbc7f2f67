"""The shape of the package: sizes and counts keep their lower and upper bounds."""

from __future__ import annotations

import statistics

import pytest

from ci.bench.house import (
    LINES,
    ROOT,
    SINGLE,
    SMALL,
    circle,
    files,
    folders,
    imports,
    lines,
    single_importers,
    small,
    upward,
    walk,
)

SMALL_WITH_REASON = {
    "pytest_perfgate.clock": "bound before any conftest can replace the host's clocks, so it imports nothing",
    "pytest_perfgate.hookspecs": "the contract with plugins, one line a hook",
}
"""Modules under 60 lines, each with its reason."""
PUBLIC = "pytest_perfgate.work"
"""A list of public names: short, and the package alone imports it."""
FOLDER, WIDE = 20, {"plugin": 23}
FILES, ARROWS, MEDIAN = 280, 1500, 300
HOW = "CONTRIBUTING.md says below Sizes what to do"
MEASURED = ("modules", "lines of a module", "files in a folder", "imports between modules, at their top")


def test_the_package_has_as_many_files_as_a_person_can_know() -> None:
    assert 200 <= len(files()) <= FILES, HOW


def test_a_folder_is_seen_at_a_glance() -> None:
    full = {name: count for name, count in folders().items() if count > WIDE.get(name, FOLDER)}
    assert not full, "group some of its modules in a folder of their own, or merge two"


def test_most_modules_are_short() -> None:
    sizes = lines()
    beyond = sorted(name for name, count in sizes.items() if MEDIAN < count <= MEDIAN + 10)
    assert 150 <= statistics.median(sizes.values()) <= MEDIAN, f"shorten one of those just beyond {MEDIAN}: {beyond}"


def test_a_small_module_has_a_reason() -> None:
    assert set(small()) == set(SMALL_WITH_REASON), f"modules under {SMALL} lines: give each a reason, or merge it"


def test_a_short_module_with_one_importer_belongs_into_it() -> None:
    alone = {name: by for name, by in single_importers().items() if name not in {*SMALL_WITH_REASON, PUBLIC}}
    assert not alone, (
        f"under {SINGLE} lines, and imported by one module: merge it there, or move more of its subject into it"
    )


def test_modules_know_few_others() -> None:
    assert sum(map(len, imports().values())) <= ARROWS, HOW


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circle({"a": frozenset("b"), "b": frozenset("a"), "c": frozenset("a"), "d": frozenset()}) == {"a", "b", "c"}
    assert circle(imports()) == set()


def test_no_module_imports_from_a_layer_above() -> None:
    assert upward() == []


@pytest.mark.parametrize(("name", "most"), [("samples to block", 12), ("trace file to table", 10)])
def test_a_value_goes_through_few_modules(name: str, most: int) -> None:
    handing, running = walk(name)
    assert 5 <= len(handing) <= most
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert f"| {most} | {len(handing)} ({len(running)} modules run a function of any kind) |" in page


def test_the_page_on_the_architecture_names_these_bounds() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for row in (
        f"| modules | {FILES} |",
        f"| lines of a module | {LINES}, median 150 to {MEDIAN} |",
        f"| files in a folder | {FOLDER}, `plugin` {WIDE['plugin']} |",
        f"| imports between modules, at their top | {ARROWS} |",
    ):
        assert row in page


def test_the_page_on_the_architecture_says_what_is_measured() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = {row[1].strip(): row[3].strip() for row in (line.split("|") for line in page.splitlines()) if len(row) == 5}
    sizes, widest = lines(), folders()
    assert {name: rows[name] for name in MEASURED} == {
        "modules": f"{len(files())}",
        "lines of a module": f"{max(sizes.values())}, median {statistics.median(sizes.values()):g}",
        "files in a folder": f"{max(count for name, count in widest.items() if name not in WIDE)}, "
        f"`plugin` {widest['plugin']}",
        "imports between modules, at their top": f"{sum(map(len, imports().values())):,}",
    }, "first keep the bounds; then write the new figures into the table at the end of docs/architecture.md"


@pytest.mark.parametrize("name", SMALL_WITH_REASON)
def test_a_reason_is_of_a_module_that_is_there(name: str) -> None:
    assert name in files()
