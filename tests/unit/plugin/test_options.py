"""Tests of plugin/options."""

from __future__ import annotations

import argparse
import os
import re
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.model.plan import Policy
from pytest_perfgate.plugin import pytest_load_initial_conftests
from pytest_perfgate.plugin.ending import _FILES
from pytest_perfgate.plugin.options import OPTIONS, add_options, refuse_unknown
from pytest_perfgate.plugin.options import child_environment as told
from pytest_perfgate.plugin.state import Settings


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(exit_on_error=False)
    group: Any = SimpleNamespace(addoption=made.add_argument)
    add_options(SimpleNamespace(getgroup=lambda *_: group))  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize("name", ["--perfgate-against", "--perfgate-budget"])
@pytest.mark.parametrize("empty", ["", " "])
def test_a_variable_that_is_not_set_is_not_an_option_left_out(name: str, empty: str) -> None:
    with pytest.raises(argparse.ArgumentError, match="the value is empty"):
        parser().parse_args([f"{name}={empty}"])


@pytest.mark.parametrize("count", ["0", "-1", "1.5", "", "many"])
def test_no_rounds_are_not_the_usual_rounds(count: str) -> None:
    with pytest.raises(argparse.ArgumentError, match="not a whole number from 1"):
        parser().parse_args([f"--perfgate-rounds={count}"])


@pytest.mark.parametrize("option", ["json", "html", "markdown"])
@pytest.mark.parametrize(("path", "message"), [("-", "name a file"), ("", "is a variable unset?")])
def test_the_standard_output_and_no_name_are_not_files(option: str, path: str, message: str) -> None:
    with pytest.raises(argparse.ArgumentError, match=re.escape(message)):
        parser().parse_args([f"--perfgate-{option}={path}"])
    assert vars(parser().parse_args([f"--perfgate-{option}=r.out"]))[f"perfgate_{option}"] == "r.out"


def test_what_is_given_is_taken() -> None:
    options = parser().parse_args(["--perfgate-against", "--perfgate-rounds=7", "--perfgate-budget=10min"])
    assert (options.perfgate_against, options.perfgate_rounds, options.perfgate_budget) == ("@merge-base", 7, "10min")
    assert parser().parse_args(["--perfgate-against=v1"]).perfgate_against == "v1"
    assert parser().parse_args([]).perfgate_against is None


def test_an_option_that_there_is_not_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        pytest.UsageError, match=r"(?s)unknown option --perfgate-roudns\b.*did you mean --perfgate-rounds\?"
    ):
        refuse_unknown(["-q", "--perfgate-roudns=3"])
    with pytest.raises(pytest.UsageError, match="--help"):
        refuse_unknown(["--perfgate-zzzzzzzzzzzzzzzzzzzzzzzzzzz"])
    refuse_unknown(["--perfgate=full", "--perfgate-rounds", "3", "-k", "x", "--", "--perfgate-roudns"])


def test_the_help_names_every_key_of_the_policy() -> None:
    doc = next(option.doc for option in OPTIONS if option.name == "--perfgate-policy")
    named = doc.partition(": ")[2].partition(";")[0].split(", ")
    assert named == [field.name for field in fields(Policy) if field.name != "ci"]


def test_a_conftest_rewrites_nothing_that_ci_said(monkeypatch: pytest.MonkeyPatch) -> None:
    config: Any = SimpleNamespace(option=None, stash=pytest.Stash())
    monkeypatch.setenv("GITHUB_BASE_REF", "main")
    monkeypatch.setenv("CI", "true")
    added = ("CI_MERGE_REQUEST_DIFF_BASE_SHA", "BUILDKITE_SOURCE", "GIT_DIR")
    for name in added:
        monkeypatch.delenv(name, raising=False)
    pytest_load_initial_conftests(config, [])
    monkeypatch.setenv("GITHUB_BASE_REF", "feat")
    monkeypatch.delenv("CI")
    monkeypatch.setenv("MADE_BY_A_PLUGIN", "1")
    for name in added:
        monkeypatch.setenv(name, "feat")
    assert not set(added) & set(told(config))
    assert (told(config)["GITHUB_BASE_REF"], told(config)["MADE_BY_A_PLUGIN"]) == ("main", "1")
    assert Settings(config).ci
    assert told(SimpleNamespace()) == dict(os.environ)  # type: ignore[arg-type]


def test_each_option_is_read_by_the_code() -> None:
    """An option that only its declaration names would do nothing, and look as if it did."""
    package = Path(__file__).resolve().parents[3] / "pytest_perfgate"
    texts = (path.read_text(encoding="utf-8") for path in package.rglob("*.py") if path.name != "options.py")
    names = set(re.findall(r"\bperfgate_\w+", "\n".join(texts))) | {f"perfgate_{file}" for file in _FILES}
    own = [option.settings.get("dest", option.name[2:].replace("-", "_")) for option in OPTIONS]
    assert [name for name in own if name not in names] == [], "read it where it takes effect"
