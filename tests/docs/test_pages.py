"""Every code block of README and docs does what the page says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from importlib.metadata import entry_points
from itertools import takewhile
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, RUN, Block, blocks, commands, unmet
from tests.plugin.forked import can_fork, forked, without_our_warnings
from tests.tools import has_tools

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


OURS_ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_perfgate.plugin"}
"""Looking for the plugins of others costs each pytest a fifth of a second."""
OTHERS = sorted({e.name for e in entry_points(group="pytest11") if not e.value.startswith("pytest_perfgate")})
OURS_FOUND = {"PYTEST_ADDOPTS": " ".join(f"-p no:{name}" for name in OTHERS)}
"""README's pytest finds the plugin by itself, in an environment that holds no other: as its reader's does."""


def variables(project: Path) -> dict[str, str]:
    environment = {
        key: text for key, text in os.environ.items() if not key.startswith(("PYTEST_", "PERFGATE_", "GIT_"))
    }
    environment.pop("CI", None)
    identity = {
        f"GIT_{who}_{what}": f"{who}@example.invalid" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    plugins = OURS_FOUND if (project / "README.md").exists() else OURS_ALONE
    return {**environment, **identity, **plugins, "PATH": path, "HOME": str(project), "COLUMNS": "120"}


def run(line: list[str] | str, project: Path) -> tuple[int, str]:
    """How a command ended and what it printed: in a fork where the shell has nothing to do.

    Not README's pytest, which warns where a plugin that it finds is imported already; another's measures in forks too.
    """
    plain = isinstance(line, list) or not set(line.replace(" && ", "")) & set("|&;<>()$`*?[~#\n")
    if plain and isinstance(line, str) and " && " in line:
        return run_in_turn(line.split(" && "), project)
    words = shlex.split(line) if isinstance(line, str) else line
    stated = dict(word.split("=", 1) for word in takewhile(re.compile(r"\w+=").match, words))
    words, environment = words[len(stated) :], {**variables(project), **stated}
    script = Path(sys.executable).parent / words[0]
    tests = script.name == "pytest"
    if plain and script.exists() and not (tests and environment.keys() & OURS_FOUND) and can_fork(environment):
        command = words[1:] if script.name.startswith("python") else [str(script), *words[1:]]
        return forked(command, project, environment, children=tests)
    done = subprocess.run(
        line, cwd=project, shell=isinstance(line, str), env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, without_our_warnings(done.stdout + done.stderr)


def run_in_turn(lines: list[str], project: Path) -> tuple[int, str]:
    """What commands joined by ``&&`` print, and the exit code of the first that fails."""
    code, printed = 0, ""
    for line in lines:
        code, more = run(line, project)
        printed += more
        if code:
            break
    return code, printed


def perform(block: Block, project: Path) -> None:
    if block.key == "not run":
        assert len(block.value) > 10, f"{block.place}: say why it is not run"
    elif block.key in {"file", "append"}:
        target = project / block.value
        target.parent.mkdir(parents=True, exist_ok=True)
        before = target.read_text(encoding="utf-8") if block.key == "append" else ""
        target.write_text(before + block.text, encoding="utf-8")
    elif block.key == "with" and not brought(block, project):
        return
    elif block.language == "python":
        code, printed = run([sys.executable, "-c", block.text], project)
        assert code == 0, f"{block.place}\n{printed}"
    elif block.language == "toml":
        tomllib.loads(block.text)
    elif block.language == "console":
        for command, expected in commands(block):
            code, printed = run(command, project)
            missing = unmet(expected, printed)
            assert not missing, f"{block.place}: `{command}` did not print: {missing}\n{printed}"
            assert expected or code == 0, f"{block.place}: `{command}`\n{printed}"


def brought(block: Block, project: Path) -> bool:
    """Copy what a block works on; whether the tools to read it are here."""
    names, _, folder = block.value.rpartition(" in ")
    (project / folder).mkdir(parents=True, exist_ok=True)
    for name in names.split(", "):
        shutil.copy(ROOT / name, project / folder)
    return has_tools("nvdisasm", "cuobjdump")


@pytest.mark.filterwarnings("default:.* is read twice")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    """A page that measures two runs may meet a noisy one: then it is read once more, from its beginning."""
    try:
        read_through(page, tmp_path / "project")
    except AssertionError as fault:
        if "--perfgate=full" not in page.read_text(encoding="utf-8"):
            raise
        warnings.warn(f"{page.name} is read twice: {fault}", stacklevel=1)
        read_through(page, tmp_path / "again")


def read_through(page: Path, project: Path) -> None:
    project.mkdir()
    if page.name == "README.md":
        shutil.copy(page, project)
    run("git init -q .", project)
    for block in blocks(page):
        perform(block, project)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_inside_the_project_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = [
        t.split("#")[0] for t in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in t and not t.startswith("#")
    ]
    missing = [t for t in targets if t and not (page.parent / t).exists()]
    assert not missing


def headings(page: Path) -> set[str]:
    """The anchors of a page: of its headings, as GitHub makes them, and those that it sets itself."""
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = (line.lstrip("#").strip().lower() for line in prose.splitlines() if line.startswith("#"))
    named = re.findall(r'<a id="([\w-]+)"></a>', prose)
    return {re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles} | set(named)


def test_links_to_a_heading_lead_to_one() -> None:
    for page in PAGES:
        for target, heading in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
            there = (page.parent / target).resolve() if target else page
            assert there.suffix != ".md" or heading in headings(there), f"{page.name}: {target}#{heading}"


def test_blocks_name_a_language() -> None:
    nameless = [
        b.place
        for page in PAGES
        for b in blocks(page)
        if b.language not in RUN | {"text", "json", "html"} and not b.key
    ]
    assert not nameless, "a block that is neither run nor plain text"
