"""What a project wants to be built with, held against what is installed."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from pytest_perfgate.adapters.arms.build import is_buildable, missing_tools, scripts_first, taken_for_package


def installed(name: str) -> str:
    if name != "pytest":
        raise metadata.PackageNotFoundError(name)
    return "9"


def project(folder: Path, requires: str, backend: str) -> Path:
    text = f'[build-system]\nrequires = [{requires}]\nbuild-backend = "{backend}"\n'
    (folder / "pyproject.toml").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("requires", "missing"),
    [
        ('"pytest"', ()),
        ('"pytest>=1", "no-such-builder>=2"', ("no-such-builder>=2",)),
        ('"pytest>=999"', ("pytest>=999",)),
        ("\"no-such-builder; python_version < '3'\"", ()),
        ('"not a requirement"', ("not a requirement",)),
    ],
)
def test_requirements_are_met_or_named(tmp_path: Path, requires: str, missing: tuple[str, ...]) -> None:
    assert missing_tools(project(tmp_path, requires, "some.backend")) == missing


def test_programs_that_a_backend_starts_are_required_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    monkeypatch.setattr(sys, "executable", str(bare / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("pytest_perfgate.adapters.arms.build.metadata.version", installed)
    (tmp_path / "cmake").mkdir()  # a folder of that name in the repository is no cmake
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = project(tmp_path, '"pytest"', "scikit_build_core.build")
    assert missing_tools(folder) == ("cmake", "ninja")
    for name in ("cmake", "make"):
        (bare / name).write_text("")
        (bare / name).chmod(0o755)
    assert missing_tools(folder) == ()
    assert scripts_first().split(":")[0] == str(bare)


def test_without_a_build_table_setuptools_builds(tmp_path: Path) -> None:
    assert set(missing_tools(tmp_path)) <= {"setuptools", "wheel"}


def test_tables_of_tools_make_no_project(tmp_path: Path) -> None:
    assert not is_buildable(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\n# [project]\n")
    assert not is_buildable(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[project]\r\nname = "k"\r\n')
    assert is_buildable(tmp_path)
    (tmp_path / "pyproject.toml").write_text("not toml [")
    assert not is_buildable(tmp_path)
    (tmp_path / "setup.py").write_text("")
    assert is_buildable(tmp_path)


FOUND = '[tool.setuptools.packages.find] include = ["k*"] in pyproject.toml'


@pytest.mark.parametrize(
    ("files", "mend"),
    [
        ({"pyproject.toml": "[project]\nname = 'k'\n"}, FOUND),
        ({"setup.py": "setup(name='k')"}, FOUND),
        ({"setup.py": "setup(packages=['k'])"}, ""),
        ({"setup.py": "", "setup.cfg": "[options]\npackages = k\n"}, ""),
        ({"setup.py": "", "src/k/__init__.py": ""}, ""),
        ({"pyproject.toml": "[project]\nname = 'k'\n[tool.setuptools]\npy-modules = ['k']\n"}, ""),
        ({"pyproject.toml": "[build-system]\nbuild-backend = 'hatchling.build'\n[project]\nname = 'k'\n"}, ""),
        ({"pyproject.toml": "[tool.perfgate]\nrounds = 1\n"}, ""),
    ],
)
def test_setuptools_takes_a_folder_of_baselines_for_a_package_unless_they_are_named(
    tmp_path: Path, files: dict[str, str], mend: str
) -> None:
    for name, text in {"k/__init__.py": "", "tests/__init__.py": "", **files}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    assert taken_for_package(tmp_path, "baselines") == mend
    assert taken_for_package(tmp_path, "tests/base-lines") == ""


def test_of_modules_alone_it_would_install_only_that_folder(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("setup()")
    (tmp_path / "fast.py").write_text("")
    assert taken_for_package(tmp_path, "baselines") == '[tool.setuptools] py-modules = ["fast"] in pyproject.toml'
