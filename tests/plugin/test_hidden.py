"""A folder of the project that hides the installed plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import perfgate_presence
from perfgate_presence import shadowing_place
from pytest_perfgate.app.doctor import Level
from pytest_perfgate.cli.doctor import package, plugin
from pytest_perfgate.model.project import Config
from tests.plugin.forked import forked, inherited
from tests.plugin.projects import Project

HOME = Path(perfgate_presence.__file__).parent


def test_the_package_beside_it_is_not_hidden_and_one_elsewhere_is(tmp_path: Path) -> None:
    assert shadowing_place("pytest_perfgate", HOME) == ""
    assert shadowing_place("pytest_perfgate", tmp_path) == str(HOME / "pytest_perfgate")
    assert shadowing_place("no_such_package_anywhere", HOME) == ""


@pytest.mark.parametrize("file", ["pytest_perfgate/__init__.py", "pytest_perfgate.py"])
def test_a_project_that_hides_the_plugin_runs_no_test(tmp_path: Path, file: str) -> None:
    """Loaded by its name here, as the entry point loads it where perfgate is installed."""
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("")
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n")
    env = {**os.environ, "PYTHONPATH": str(HOME), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    env.pop("PERFGATE_CHANNEL", None)
    command = [sys.executable, "-m", "pytest", "-p", "perfgate_presence"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, "hides the installed plugin" in done.stderr) == (pytest.ExitCode.USAGE_ERROR, True), done


@pytest.mark.parametrize(
    ("addopts", "words", "ci", "test", "code"),
    [
        ("-p no:perfgate", (), "1", "def test_it(perfgate): pass", pytest.ExitCode.USAGE_ERROR),
        ("-p no:perfgate", (), "", "def test_it(perfgate): pass", pytest.ExitCode.OK),
        ("-p no:perfgate", (), "1", "def test_it(): pass", pytest.ExitCode.OK),
        ("", ("-p", "no:perfgate"), "1", "def test_it(perfgate): pass", pytest.ExitCode.OK),
        ("", (), "1", "def test_it(perfgate): pass", pytest.ExitCode.USAGE_ERROR),
    ],
)
def test_settings_that_switch_the_plugin_off_run_no_gated_test_in_ci(
    tmp_path: Path, addopts: str, words: tuple[str, ...], ci: str, test: str, code: int
) -> None:
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = {addopts}\n")
    (tmp_path / "conftest.py").write_text("import pytest\n@pytest.fixture\ndef perfgate(): return print\n")
    (tmp_path / "test_it.py").write_text(f"{test}\n")
    ended, text = run(tmp_path, ci, *words)
    assert (ended, "plugin-hidden" in text) == (code, code == pytest.ExitCode.USAGE_ERROR), text


def run(folder: Path, ci: str, *words: str) -> tuple[int, str]:
    """With the plugin's sentry, as the entry point loads it where perfgate is installed."""
    env = {**inherited(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CI": ci}
    return forked(("-m", "pytest", "-p", "perfgate_presence", *words), folder, env, children=True)


TAKES_OUT = """
import pytest

@pytest.hookimpl(tryfirst=True)
def {hook}({what}):
    manager = {what}.{config}pluginmanager
    if manager.has_plugin("{name}"):
        manager.unregister(name="{name}")
"""


@pytest.mark.parametrize(
    ("hook", "what", "config", "name"),
    [
        ("pytest_configure", "config", "", "pytest_perfgate.plugin"),
        ("pytest_collection_finish", "session", "config.", "pytest_perfgate.plugin"),
        ("pytest_runtest_setup", "item", "config.", "perfgate-role"),
    ],
)
def test_a_conftest_that_takes_the_plugin_out_fails_the_run_in_ci(
    tmp_path: Path, hook: str, what: str, config: str, name: str
) -> None:
    """A test that has the mark and never calls the fixture would pass."""
    (tmp_path / "conftest.py").write_text(TAKES_OUT.format(hook=hook, what=what, config=config, name=name))
    (tmp_path / "test_it.py").write_text("import pytest\n@pytest.mark.perfgate('time <= 1 ns')\ndef test_it(): pass\n")
    code, text = run(tmp_path, "1", "-p", "pytest_perfgate.plugin")
    assert (code, "from the run" in text) == (pytest.ExitCode.USAGE_ERROR, True), text


def test_the_doctor_names_what_hides_the_plugin(tmp_path: Path) -> None:
    project: Any = SimpleNamespace(root=tmp_path)
    assert [one.level for one in plugin(project)] == [Level.GOOD]
    (tmp_path / "pytest_perfgate.py").write_text("")
    (finding,) = plugin(project)
    assert (finding.level, finding.what.split()[0]) == (Level.BAD, "pytest_perfgate.py")
    assert [one.level for one in plugin(SimpleNamespace(root=HOME))] == [Level.GOOD], "its own repository"  # type: ignore[arg-type]


LENT = """
import pytest
from pk_k import work

@pytest.mark.perfgate("time <= 1s")
def test_it(perfgate):
    perfgate(work)
"""


@pytest.mark.parametrize("mode", ["quick", "full"])
def test_a_package_of_another_checkout_is_not_measured_for_this_one(
    project: Project, tmp_path_factory: pytest.TempPathFactory, mode: str
) -> None:
    """As where two clones share an environment, and the other one is installed in it."""
    other = tmp_path_factory.mktemp("other")
    (other / "pyproject.toml").touch()
    project.write("test_it.py", LENT)
    for place in (other, project.root):
        (place / "src" / "pk_k").mkdir(parents=True)
        (place / "src" / "pk_k" / "__init__.py").write_text("def work(): return sum(range(3000))\n")
    for place, outcome in ((other, "failed"), (project.root, "passed")):
        project.write("conftest.py", f"import sys\nsys.path.insert(0, {str(place / 'src')!r})\n")
        run = project.run(f"--perfgate={mode}", ci=True)
        assert run.outcome("test_it") == outcome, run.text
        assert ("[package-elsewhere]" in run.text) is (outcome == "failed"), run.text
        assert run.text.count("install this checkout") == (outcome == "failed"), "the next step stands once"


@pytest.mark.parametrize("mode", ["quick", "full"])
def test_a_copy_that_is_older_than_its_source_is_not_measured(
    project: Project, tmp_path_factory: pytest.TempPathFactory, mode: str
) -> None:
    """As after pip install . in place of pip install -e ., and an edit."""
    installed = tmp_path_factory.mktemp("env") / "site-packages"
    record = installed / "pk_k-1.dist-info" / "RECORD"
    for place in (installed, project.root / "src"):
        (place / "pk_k").mkdir(parents=True)
        (place / "pk_k" / "__init__.py").write_text("from pk_k.deep import work\nfrom pk_k._version import NUMBER\n")
        (place / "pk_k" / "_version.py").write_text(f"NUMBER = {place.name!r}  # builds write it\n")
        (place / "pk_k" / "deep.py").write_text("def work(): return sum(range(3000))\n")
    record.parent.mkdir()
    record.write_text("pk_k/__init__.py,,\npk_k/deep.py,,\npk_k/_version.py,,\n")
    url = record.with_name("direct_url.json")
    project.write("test_it.py", LENT)
    project.write("conftest.py", f"import sys\nsys.path.insert(0, {str(installed)!r})\n")
    source = project.root / "src" / "pk_k" / "deep.py"
    os.utime(source.with_name("_version.py"), (4e9, 4e9))
    for text, later, place, outcome in (
        (source.read_text(), 60, project.root, "passed"),
        ("def work(): return sum(range(9000))\n", -60, project.root, "passed"),  # a build may rewrite a file
        ("def work(): return sum(range(9000))\n", -60, installed, "failed"),  # another clone was installed
        ("def work(): return sum(range(9000))\n", -60, installed / "gone", "passed"),
        ("def work(): return sum(range(9000))\n", 60, project.root, "failed"),
    ):
        url.write_text(f'{{"dir_info": {{}}, "url": "{place.as_uri()}"}}')
        source.write_text(text)
        os.utime(source, (at := (installed / "pk_k" / "deep.py").stat().st_mtime + later, at))
        run = project.run(f"--perfgate={mode}", ci=True)
        assert run.outcome("test_it") == outcome, run.text
        assert (("[package-elsewhere]" in run.text) and "src/pk_k/deep.py" in run.text) is (outcome == "failed")


def test_a_release_of_the_project_from_an_index_is_not_measured_for_the_checkout(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As where a tool of the environment depends on the project, and so brought a release of it."""
    installed = tmp_path_factory.mktemp("env") / "site-packages"
    for place, number in ((installed, 3000), (project.root / "src", 9000)):
        (place / "pk_k").mkdir(parents=True)
        (place / "pk_k" / "__init__.py").write_text(f"def work(): return sum(range({number}))\n")
    (installed / "The_Kernels-1.dist-info").mkdir()
    (installed / "The_Kernels-1.dist-info" / "RECORD").write_text("pk_k/__init__.py,,\n")
    os.utime(project.root / "src" / "pk_k" / "__init__.py", (0, 0))
    project.write("test_it.py", LENT)
    project.write("conftest.py", f"import sys\nsys.path.insert(0, {str(installed)!r})\n")
    settings = (project.root / "pyproject.toml").read_text()
    for name, outcome in (("another", "passed"), ("the.kernels", "failed")):
        project.write("pyproject.toml", f'[project]\nname = "{name}"\nversion = "2"\n{settings}')
        run = project.run("--perfgate=full", ci=True)
        assert run.outcome("test_it") == outcome, run.text
        assert ("[package-elsewhere]" in run.text) is (outcome == "failed"), run.text


def test_the_doctor_names_a_package_of_another_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("own", "other"):
        (tmp_path / name / "src" / "pk_of_two_k").mkdir(parents=True)
        (tmp_path / name / "src" / "pk_of_two_k" / "__init__.py").touch()
        (tmp_path / name / "pyproject.toml").touch()
    project: Any = SimpleNamespace(root=tmp_path / "own", config=Config())
    assert list(package(project)) == []
    monkeypatch.syspath_prepend(tmp_path / "other" / "src")
    (finding,) = package(project)
    assert (finding.level, finding.what.split()[0]) == (Level.NOTE, "pk_of_two_k")
    monkeypatch.syspath_prepend(tmp_path / "own" / "src")
    assert list(package(project)) == []
