"""A bounded part of the fuzzer with every run of the tests; ``ci/fuzz`` makes many more mutants."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.fuzz import seeds
from tests.fuzz.campaign import alike, campaign, mutant
from tests.fuzz.readers import READERS

MUTANTS = {"machine code": 4, "traces of a job": 6, "launches beside machine code": 10, "answers of a server": 20}


@pytest.fixture(autouse=True)
def _own_files_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFGATE_CORPUS", raising=False)


MADE = "dict[str, bytes]"
"""What a function of seeds returns: files by name."""


@pytest.mark.parametrize("name", READERS)
def test_damage_is_refused_or_noticed(name: str) -> None:
    outcome = campaign(name, MUTANTS.get(name, 30), seed=1)
    assert not outcome.faults, "\n".join(
        f"{fault.kind}: {fault.detail} (python -m tests.fuzz --only {name!r} --seed 1 --show {fault.number})"
        for fault in outcome.faults
    )
    assert sum(outcome.counts.values()) == MUTANTS.get(name, 30)


@pytest.mark.parametrize("name", READERS)
def test_a_mutant_can_be_made_again(name: str) -> None:
    files = dict(READERS[name].seeds())
    assert files, "there is nothing to damage"
    assert [mutant(READERS[name], files, f"0/{name}/{n}").data for n in range(5)] == [
        mutant(READERS[name], files, f"0/{name}/{n}").data for n in range(5)
    ]


@pytest.mark.parametrize("name", READERS)
def test_every_way_changes_something(name: str) -> None:
    """A way that leaves every file as it was would test nothing."""
    files = dict(READERS[name].seeds())
    for title, way in READERS[name].ways.items():
        changed = any(way.make(Random(draw), data) != data for data in files.values() for draw in range(20))
        assert changed, title


def test_figures_in_another_order_are_alike() -> None:
    assert alike({"a": [1.0, 0.1 + 0.2]}, {"a": [1.0, 0.3]})
    assert not alike({"a": [1.0]}, {"a": [1.0, 1.0]})
    assert not alike({"a": 1}, {"b": 1})


def test_every_kind_of_file_that_there_are_seeds_of_is_damaged() -> None:
    makers = {
        name for name, maker in vars(seeds).items() if getattr(maker, "__annotations__", {}).get("return") == MADE
    }
    named = "".join((Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("readers.py", "states.py"))
    assert len(makers) > 20
    assert {name for name in makers if not name.startswith("_") and f"seeds.{name}" not in named} == {"corpus"}
