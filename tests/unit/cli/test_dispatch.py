"""Tests of cli/dispatch."""

from __future__ import annotations

import argparse
import json
import sys
from types import SimpleNamespace

import pytest

from pytest_perfgate.cli.dispatch import GROUPS, Page, description, dispatch, overview
from pytest_perfgate.cli.output import columns


def test_a_command_that_does_not_exist_is_told_to_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["acept", "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["next"] == "did you mean 'perfgate accept'?"
    assert "there is no command 'acept'" in err
    assert dispatch(["acept"]) == 2
    assert capsys.readouterr().out == ""


COMMANDS = [command for commands in GROUPS.values() for command in commands]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_sentence_of_a_page_is_torn_by_the_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    doc = description(name)
    page = argparse.ArgumentParser(prog=name, description=doc, formatter_class=Page).format_help()
    sentences = [line for line in page.splitlines() if not line.startswith("  ")]
    assert max(map(len, sentences)) <= 80
    assert "``" not in page
    examples = [line for line in doc.splitlines() if line.startswith("perfgate ")]
    assert not examples, "an example is indented"


def test_the_overview_fits_too() -> None:
    assert max(map(len, overview().splitlines())) <= 80


def test_examples_stand_as_they_were_written() -> None:
    assert Page("x")._fill_text("One two\nthree.\n\n  a   b\n  c\n", 7, "") == "One two\nthree.\n\n  a   b\n  c"


@pytest.mark.parametrize(
    ("terminal", "wide", "found"), [(True, 80, 80), (True, 300, 100), (True, 9, 60), (False, 80, 100)]
)
def test_what_is_shown_is_as_wide_as_its_terminal(
    terminal: bool, wide: int, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: terminal))
    monkeypatch.setenv("COLUMNS", str(wide))
    assert columns() == found
