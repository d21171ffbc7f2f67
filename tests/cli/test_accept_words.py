"""What ``perfgate accept`` says of words that it cannot take."""

from __future__ import annotations

import pytest

from pytest_perfgate.model.plan import Outcome
from tests.cli.conftest import Place
from tests.reports import baseline, case, run


@pytest.fixture
def project(place: Place) -> Place:
    place.baselines.write([baseline("test_slow[1]", 1e6)])
    place.record(run(case("test_slow[1]", 1.2e6, 1e6, Outcome.REGRESSED)))
    return place


@pytest.mark.parametrize("empty", [["--reason", ""], ["--reason="]])
def test_an_empty_reason_is_not_told_twice(project: Place, empty: list[str]) -> None:
    done = project.perfgate("accept", "test_slow[1]", *empty)
    assert """next  perfgate accept 'test_slow[1]' --anchor --reason "...\"\n""" in done.err


@pytest.mark.parametrize("words", [["--resaon", "x"], ["--resaon=x", "--json"]])
def test_an_option_that_is_none_has_a_nearest_name(project: Place, words: list[str]) -> None:
    done = project.perfgate("accept", *words)
    assert done.code == 2
    assert "did you mean --reason?" in done.err


def test_an_option_that_resembles_another_only_in_part_has_no_hint(project: Place) -> None:
    done = project.perfgate("history", "--since", "yesterday")
    assert done.code == 2
    assert "did you mean" not in done.err
