"""A plugin that the project names and that does not load is an error of its configuration, told in words."""

from __future__ import annotations

import json
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
