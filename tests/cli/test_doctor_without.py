"""The doctor where a package is missing, or says nothing of itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
from pytest_perfgate.cli import main
codes = []
for words in {forms}:
    print("AS", words)
    codes.append(main(["doctor", "--seconds", "0", *words]))
raise SystemExit(max(codes))
"""
TEXT, JSON = [], ["--json"]
HIDDEN = "import sys; sys.modules[{name!r}] = None"
LIGHT = "import sys; sys.modules.update(dict.fromkeys(['torch', 'cuda', 'cupti', 'pyopencl']))"
"""To import these takes longer than all the rest."""
NAMELESS = f"""
{LIGHT}
import importlib.metadata as metadata
version = metadata.version
def unknown(name):
    if name in ("pytest", "numpy"):
        raise metadata.PackageNotFoundError(name)
    return version(name)
metadata.version = unknown
"""


def doctor_without(folder: Path, before: str, *forms: list[str]) -> tuple[int, str, list[str]]:
    """The exit code and errors of the doctor, and what it says in each form, one after the other in one process."""
    command = [sys.executable, "-c", before + RUN.format(forms=forms)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr, [part.partition("\n")[2] for part in done.stdout.split("AS [")[1:]]


@pytest.mark.parametrize("name", ["numpy", "pluggy"])
def test_a_package_that_is_missing_is_named_with_what_fixes_it(tmp_path: Path, name: str) -> None:
    code, errors, (text, data) = doctor_without(tmp_path, HIDDEN.format(name=name), TEXT, JSON)
    assert code == 1
    assert "Traceback" not in errors
    assert name in text
    assert "pip install --force-reinstall pytest-perfgate" in text
    findings = json.loads(data)["findings"]
    assert [one for one in findings if one["level"] == "bad" and name in one["what"]]


def test_packages_without_metadata_are_no_fault_of_the_doctor(tmp_path: Path) -> None:
    _, errors, (text,) = doctor_without(tmp_path, NAMELESS, TEXT)
    assert "Traceback" not in errors
    assert "PackageNotFoundError" not in text
    assert f"pytest {pytest.__version__} loads" in text


def test_settings_that_are_no_toml_are_named_though_they_are_not_ours(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("x = [\n", encoding="utf-8")
    _, _, (text,) = doctor_without(tmp_path, LIGHT, JSON)
    (finding,) = [one for one in json.loads(text)["findings"] if one["name"] == "settings" and one["level"] == "bad"]
    assert "not TOML" in finding["what"]
    assert "line 1" in finding["what"]
