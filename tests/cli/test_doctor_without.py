"""The doctor where a package is missing, or says nothing of itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = "from pytest_perfgate.cli import main; raise SystemExit(main(['doctor', '--seconds', '0', *sys.argv[1:]]))"
HIDDEN = "import sys; sys.modules[{name!r}] = None; "
NAMELESS = """
import sys, importlib.metadata as metadata
sys.modules["torch"] = None  # to import it takes longer than all the rest
version = metadata.version
def unknown(name):
    if name in ("pytest", "numpy"):
        raise metadata.PackageNotFoundError(name)
    return version(name)
metadata.version = unknown
"""


def told(folder: Path, before: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", before + RUN, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["numpy", "pluggy"])
def test_a_package_that_is_missing_is_named_with_what_fixes_it(tmp_path: Path, name: str) -> None:
    done = told(tmp_path, HIDDEN.format(name=name))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert name in done.stdout
    assert "pip install --force-reinstall pytest-perfgate" in done.stdout
    found = json.loads(told(tmp_path, HIDDEN.format(name=name), "--json").stdout)["findings"]
    assert [one for one in found if one["level"] == "bad" and name in one["what"]]


def test_packages_without_metadata_are_no_fault_of_the_doctor(tmp_path: Path) -> None:
    done = told(tmp_path, NAMELESS)
    assert "Traceback" not in done.stderr
    assert "PackageNotFoundError" not in done.stdout
    assert f"pytest {pytest.__version__} loads" in done.stdout


def test_settings_that_are_no_toml_are_named_though_they_are_not_ours(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("x = [\n", encoding="utf-8")
    done = told(tmp_path, "import sys; sys.modules['torch'] = None; ", "--json")
    (found,) = [
        one for one in json.loads(done.stdout)["findings"] if one["name"] == "settings" and one["level"] == "bad"
    ]
    assert "not TOML" in found["what"]
    assert "line 1" in found["what"]
