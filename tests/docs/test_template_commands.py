"""Every command of a template is one that there is, with options that it has; shell text parses."""

from __future__ import annotations

import re
import shlex
import subprocess
from argparse import ArgumentParser
from pathlib import Path

import pytest

from pytest_perfgate.cli.dispatch import add_arguments
from pytest_perfgate.plugin.options import add_options

COMMAND = re.compile(
    r"(?:(?:^|run:|then|exec|[-;&|{])\s*|srun [^\n]*?)(perfgate|pytest)\s+(?=[a-z-])([^|;&>\n]*)", re.MULTILINE
)
TEMPLATES = Path(__file__).resolve().parents[2] / "ci" / "templates"
PATHS = sorted(TEMPLATES.glob("*"))


def commands(path: Path) -> list[tuple[str, list[str]]]:
    """Each call of perfgate or pytest outside of comments, with its words."""
    text = re.sub(r"(^|\s)#.*", "", path.read_text(encoding="utf-8")).replace("\\\n", " ")
    text = "\n".join(line for line in text.splitlines() if not re.search(r"\bname:|\blabel:|PERFGATE:", line))
    return [
        (tool, shlex.split(rest.replace("$(", "").replace(")", ""), posix=True)) for tool, rest in COMMAND.findall(text)
    ]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_every_command_has_the_options_that_a_template_gives_it(path: Path) -> None:
    calls = commands(path)
    assert calls, "a template without a command"
    for tool, words in calls:
        if tool == "perfgate":
            parser = ArgumentParser(exit_on_error=False, allow_abbrev=False)
            add_arguments(words[0], parser)
            parser.parse_args([re.sub(r"\$+\{?\w+\}?", "4", word) for word in words[1:]])
        else:
            options = {name for option in pytest_options() for name in option}
            flags = [word.partition("=")[0] for word in words if word.startswith("--perfgate")]
            assert set(flags) <= options


def pytest_options() -> list[list[str]]:
    parser = pytest.Parser(_ispytest=True)
    add_options(parser)
    return [option.names() for group in parser._groups for option in group.options]


SCRIPTS = [path for path in PATHS if path.suffix == ".sh"]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_parses(path: Path) -> None:
    subprocess.run(["bash", "-n", path], check=True)


FORK = (TEMPLATES / "github-fork-comment.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "untrusted", ["checkout", "pip install -e", "github.event.pull_request.title", "record/number"]
)
def test_the_job_that_comments_for_a_fork_runs_nothing_of_it(untrusted: str) -> None:
    assert untrusted not in FORK


def test_text_of_a_fork_reaches_the_shell_through_variables_alone() -> None:
    scripts = re.findall(r"run: (?:\|\n((?: {10}.*\n)+)|(.*)\n)", FORK)
    assert scripts
    assert not any("${{" in text for both in scripts for text in both)
