"""A project of its own for each test, run by a pytest of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from tests.plugin.forked import can_fork, forked, inherited, without_our_warnings

QUIET = ("-p", "no:randomly", "-p", "no:benchmark", "-p", "no:cacheprovider", "-p", "no:hypothesispytest")
GUESTS = ("-n", "--dist", "--reruns", "--benchmark", "--cov")
"""Words that speak to plugins of others: where one is said they are all loaded, as for a user."""
SETTINGS = 'budget = "4 ms"\nwarmup = "1 ms"\nsamples = 5\nrounds = 2\n'


@dataclass
class Run:
    """How a pytest ended."""

    code: int
    text: str
    tests: dict[str, tuple[str, str]]
    """Name to (passed, failed, error, skipped) and the message."""
    properties: dict[str, dict[str, str]]

    def outcome(self, name: str) -> str:
        return self.tests[name][0]

    def says(self, name: str) -> str:
        return self.tests[name][1]


class Project:
    """A folder with a configuration and test files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.configure()

    def configure(self, settings: str = "", pytest_ini: str = "") -> None:
        ini = f"[tool.pytest.ini_options]\n{pytest_ini}\n"
        own = "\n".join(line for line in SETTINGS.splitlines() if line.split(" ")[0] not in settings.split())
        self.write("pyproject.toml", f"{ini}[tool.perfgate]\n{own}\n{settings}")

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def command(self, *arguments: str, plugins: tuple[str, ...] = QUIET) -> list[str]:
        return [sys.executable, "-m", "pytest", *plugins, "--junitxml=junit.xml", *arguments]

    def names_guests(self, *words: str) -> bool:
        """Whether a run asks for plugins other than ours: looking for those costs each process a tenth of a second."""
        settings = (self.root / "pyproject.toml").read_text(encoding="utf-8", errors="replace")
        text = " ".join((*words, settings)).replace('"', " ")
        return any(word.startswith(GUESTS) or word.endswith("compat") for word in text.split())

    def run(
        self,
        *arguments: str,
        ci: bool = False,
        plugins: tuple[str, ...] = QUIET,
        fresh: bool = False,
        also: tuple[str, ...] = (),
        builds: bool = False,
        **env: str,
    ) -> Run:
        """How pytest ends with these words.

        It is a fork, and the processes that it measures in are; they have imported ``also``. With ``builds`` those of
        two builds are forks as well, which share what no two processes would. ``fresh`` is for what forks cannot
        show: what a new Python has imported, and what it costs.
        """
        if set(plugins) <= set(QUIET) and not self.names_guests(*arguments, *env.values()):
            plugins = (*plugins, "-p", "pytest_perfgate.plugin")
            env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **env}
        junit = self.root / "junit.xml"
        junit.unlink(missing_ok=True)
        variables = {**inherited(), **({"CI": "1"} if ci else {}), **env}
        forks = not fresh and can_fork(variables)
        command = self.command(*arguments, plugins=plugins)
        children = "of builds" if builds else True
        code, text = (
            forked(command[1:], self.root, variables, children=children, also=also)
            if forks
            else self._started(command, variables)
        )
        tests, properties = parse_junit(junit)
        return Run(code, text, tests, properties)

    def _started(self, command: list[str], variables: dict[str, str]) -> tuple[int, str]:
        done = subprocess.run(
            command, cwd=self.root, env=variables, capture_output=True, text=True, timeout=600, check=False
        )
        return done.returncode, without_our_warnings(done.stdout + done.stderr)


def parse_junit(path: Path) -> tuple[dict[str, tuple[str, str]], dict[str, dict[str, str]]]:
    tests: dict[str, tuple[str, str]] = {}
    properties: dict[str, dict[str, str]] = {}
    if not path.exists():
        return tests, properties
    for case in ET.parse(path).getroot().iter("testcase"):
        name = case.attrib["name"]
        marks = [child for child in case if child.tag in {"failure", "error", "skipped"}]
        tag = {"failure": "failed"}.get(marks[0].tag, marks[0].tag) if marks else "passed"
        tests[name] = (tag, f"{marks[0].attrib.get('message', '')}\n{marks[0].text or ''}" if marks else "")
        properties[name] = {p.attrib["name"]: p.attrib["value"] for p in case.iter("property")}
    return tests, properties


def failing(run: Run, test: str, *sentences: str) -> None:
    assert run.outcome(test) == "failed", run.text
    assert [words for words in sentences if words not in run.says(test)] == [], run.says(test)
