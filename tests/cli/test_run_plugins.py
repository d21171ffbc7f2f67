"""A plugin that the project names and that does not load is an error of its configuration, told in words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_perfgate.cli.dispatch import dispatch
from pytest_perfgate.wiring import stores

MODULES = {
    "there": "def pytest_perfgate_metrics():\n    return []\n",
    "raising": "raise ValueError('no licence\\nfor it')\n",
    "leaving": "raise SystemExit(3)\n",
    "lacking": "import nosuchmod_at_all\n",
    "nothing": "HOOKS = 1\n",
    "odd": "def pytest_perfgate_metrics(no_such_argument):\n    return []\n",
}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nosuchmod", "there is no module 'nosuchmod'"),
        ("nosuch.mod", "there is no module 'nosuch.mod'"),
        ("raising", "the import of 'raising' raises ValueError: no licence"),
        ("leaving", "the import of 'leaving' raises SystemExit: 3"),
        ("lacking", "the import of 'lacking' raises ModuleNotFoundError: No module named 'nosuchmod_at_all'"),
        ("nothing", "'nothing' is not a plugin: it has no function pytest_perfgate_*"),
        ("odd", "'odd' cannot be registered: PluginValidationError"),
    ],
)
def test_a_plugin_that_does_not_load(name: str, message: str, tmp_path, monkeypatch, capsys) -> None:
    for module, text in MODULES.items():
        (tmp_path / f"{module}.py").write_text(text)
    (tmp_path / "record.json").write_text("{}")
    (tmp_path / "pyproject.toml").write_text(f'[tool.perfgate]\nplugins = ["there", "there", "{name}"]\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert dispatch(["doctor", "--seconds", "0"]) == 1
    page = " ".join(capsys.readouterr().out.replace("bad   ", "").split())
    assert f"tool.perfgate.plugins: {message}" in page
    assert page.replace("; next:", " next:").count("[plugin-broken] next:") == 1, "with what to do next"
    assert "ok settings" in page, "the doctor goes on"
    assert dispatch(["inspect", "record.json"]) == 10
    output = capsys.readouterr().err
    assert message in output
    assert "[plugin-broken]" in output
    assert "tool.perfgate.plugins" in output
    assert "  why   " in output
    assert "  next  " in output


def test_a_plugin_of_an_installed_distribution_is_loaded(tmp_path, monkeypatch, capsys) -> None:
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pytest_perfgate]\ntheirs = theirs\n")
    (tmp_path / "theirs.py").write_text("raise ValueError('no licence')\n")
    (tmp_path / "record.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert dispatch(["inspect", "record.json"]) == 10
    assert "cannot be loaded: ValueError: no licence" in " ".join(capsys.readouterr().err.split())


def test_one_in_the_root_is_told_how_it_is_found(tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "beside_me.py").write_text(MODULES["there"])
    (tmp_path / "pyproject.toml").write_text('[tool.perfgate]\nplugins = ["beside_me"]\n')
    monkeypatch.chdir(tmp_path)
    assert dispatch(["inspect", "--json", "x.json"]) == 10
    assert "PYTHONPATH=." in json.loads(capsys.readouterr().out)["error"]["next"]


def test_a_folder_on_the_path_that_cannot_be_read_is_passed_over(tmp_path, monkeypatch) -> None:
    """As importing passes over it; the folders after it are still looked into."""
    unreadable, plugins = tmp_path / "unreadable", tmp_path / "plugins"
    (plugins / "theirs-1.0.dist-info").mkdir(parents=True)
    (plugins / "theirs-1.0.dist-info" / "entry_points.txt").write_text("[pytest_perfgate]\ntheirs = theirs\n")
    unreadable.mkdir()
    plain = Path.iterdir

    def iterdir(folder: Path) -> Iterator[Path]:
        if folder == unreadable:
            raise PermissionError(13, "Permission denied")
        return plain(folder)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    monkeypatch.setattr(sys, "path", [str(unreadable)])
    assert not stores._installed(stores.GROUP)
    monkeypatch.setattr(sys, "path", [str(unreadable), str(plugins)])
    assert stores._installed(stores.GROUP)


THIRD_PARTY = """
from pytest_perfgate.model import Analysis, Availability, Better, Dimension, Metric, MetricKind, MetricSet, Samples, Stop


class Stopwatch:
    name = "stopwatch"

    def availability(self, runtime):
        return Availability(name=self.name, usable=True)

    def measure(self, call, plan, runtime, setup=None):
        return Samples(durations=(5_000.0,) * plan.min_samples, timer=self.name, stop=Stop.COUNT)


class Counted:
    name, views, options = "counted", (), ()

    def recognises(self, path, head):
        return head.startswith(b"COUNTED")

    def inspect(self, paths, options):
        metrics = (Metric(name="atomics", value=float(len(paths)), dimension=Dimension.COUNT),)
        return Analysis(kind=self.name, subject=paths[0].name, metrics=MetricSet(metrics=metrics), views={})

    def compare(self, before, after, options):
        return self.inspect(after, options)


def pytest_perfgate_timers():
    return [Stopwatch()]


def pytest_perfgate_inspectors():
    return [Counted()]


def pytest_perfgate_metrics():
    return [MetricKind(name="atomics", dimension=Dimension.COUNT, better=Better.LOWER, doc="atomic operations")]
"""


def test_a_package_in_both_groups_serves_pytest_and_the_commands(tmp_path, monkeypatch, capsys) -> None:
    """A file without a view prints its name: its metrics are what it is for."""
    info = tmp_path / "third-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pytest_perfgate]\nthird = third\n\n[pytest11]\nthird = third\n")
    (tmp_path / "third.py").write_text(THIRD_PARTY)
    (tmp_path / "a.counted").write_text("COUNTED")
    (tmp_path / "test_k.py").write_text(
        "import pytest\n\n\n@pytest.mark.perfgate('time <= 6us', 'time >= 4us', timer='stopwatch')\n"
        "def test_k(perfgate):\n    perfgate(sum, [1])\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "third", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert dispatch(["inspect", "a.counted"]) == 0
    assert capsys.readouterr().out.startswith("a.counted")
    assert dispatch(["check", "a.counted", "atomics <= 1"]) == 0
    (tmp_path / "b.counted").write_text("COUNTED")
    assert dispatch(["compare", "a.counted", "b.counted", "atomics <= 0"]) == 1
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_k.py"]
    env = {**os.environ, "PYTHONPATH": path, "CI": ""}
    run = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize(
    "groups", ["[pytest_perfgate]", "[pytest11]", "[pytest_perfgate]\nfourth = fourth\n\n[pytest11]"]
)
def test_the_doctor_names_a_package_that_pytest_does_not_load(groups, tmp_path, monkeypatch, capsys) -> None:
    info = tmp_path / "fourth-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fourth\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"{groups}\nfourth = fourth\n")
    (tmp_path / "fourth.py").write_text(MODULES["there"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "fourth", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    dispatch(["doctor", "--seconds", "0"])
    page = " ".join(capsys.readouterr().out.split())
    assert ("pytest does not load fourth" in page) is (groups == "[pytest_perfgate]")
