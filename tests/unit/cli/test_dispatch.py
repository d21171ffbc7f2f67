"""Tests of cli/dispatch."""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ci.bench.trace_maker import write_trace
from pytest_perfgate.cli import terminal_columns
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
    examples = [line for line in doc.splitlines() if line.startswith(tuple(f"perfgate {one} " for one in COMMANDS))]
    assert not examples, "an example is indented"


def test_help_of_a_command_is_that_of_its_own_option(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["help", "accept"], ["accept", "--help"]):
        with pytest.raises(SystemExit) as ended:
            dispatch(words)
        assert ended.value.code == 0
        assert capsys.readouterr().out.startswith("usage: perfgate accept")


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_called_by_a_test(name: str) -> None:
    files = (Path(__file__).parents[2] / "cli").glob("test_*.py")
    assert any(f'"{name}"' in file.read_text(encoding="utf-8") for file in files)


def test_the_overview_fits_too() -> None:
    assert max(map(len, overview().splitlines())) <= 80


def test_examples_stand_as_they_were_written() -> None:
    assert Page("x")._fill_text("One two\nthree.\n\n  a   b\n  c\n", 7, "") == "One two\nthree.\n\n  a   b\n  c"


@pytest.mark.parametrize(
    ("terminal", "wide", "expected"), [(True, 80, 80), (True, 300, 100), (True, 9, 60), (False, 80, 100)]
)
def test_what_is_shown_is_as_wide_as_its_terminal(
    terminal: bool, wide: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: terminal))
    monkeypatch.setenv("COLUMNS", str(wide))
    assert columns() == expected


@pytest.mark.parametrize(("named", "expected"), [("132", 132), ("0", 70), ("wide", 70), ("", 70)])
def test_the_width_is_that_of_the_variable_else_of_the_terminal(
    named, expected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", named)
    monkeypatch.setattr(sys, "__stdout__", SimpleNamespace(fileno=lambda: 1))
    monkeypatch.setattr(os, "get_terminal_size", lambda handle: os.terminal_size((70 * handle, 24)))
    assert terminal_columns() == expected


def test_without_a_terminal_the_width_is_eighty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "__stdout__", None)
    assert terminal_columns() == 80


LEFT_OUT = ("sqlite3", "shutil", "tempfile", "subprocess", "email", "pytest", "pytest_perfgate.model.protocol",
            "pytest_perfgate.model.verdict", "pytest_perfgate.model.codes.profiles", "pytest_perfgate.model.nsys",
            "pytest_perfgate.adapters.readers.nsys_report")  # fmt: skip
"""Modules that a trace does not need; each would be part of the start of ``perfgate inspect``."""


def test_the_report_of_a_trace_imports_nothing_else(tmp_path: Path) -> None:
    write_trace(tmp_path / "trace.json", 20)
    shown = f"import sys; print('imported', *(name for name in {LEFT_OUT} if name in sys.modules))"
    code = f"from pytest_perfgate.cli import main; main(['inspect', 'trace.json']); {shown}"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Where the time went" in done.stdout
    assert done.stdout.splitlines()[-1].split() == ["imported"]


def test_a_terminal_of_ascii_gets_similar_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr("pytest_perfgate.cli.explain.run_explain", lambda _: out.write('"98.19 µs … ä\\" 🙂"'))
    dispatch(["explain", "mfu"])
    assert json.loads(out.buffer.getvalue()) == '98.19 us ... ä" 🙂'  # type: ignore[attr-defined]


def test_a_command_with_closed_output_ends_as_usual(tmp_path: Path) -> None:
    trace = tmp_path / "a.json"
    write_trace(trace, 20)
    code = "from pytest_perfgate.cli import main; raise SystemExit(main())"
    done = subprocess.run(
        ["sh", "-c", f'"$0" -c "{code}" inspect "$1" >&- 2>&-', sys.executable, str(trace)], check=False
    )
    assert done.returncode == 0
