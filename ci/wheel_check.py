"""What a stranger does first with the wheel; ci/wheel copies it into an empty folder and runs it there."""

from __future__ import annotations

import subprocess
from importlib.metadata import files, metadata, version
from pathlib import Path

import pytest

import pytest_perfgate

SHIPPED = {"pytest_perfgate"}
"""What may lie in site-packages: our package, and what the installer writes about it."""


def test_it_is_the_installed_one() -> None:
    assert "site-packages" in Path(pytest_perfgate.__file__).parts
    assert version("pytest-perfgate") == pytest_perfgate.__version__


def test_it_ships_the_package_its_types_and_its_licence() -> None:
    shipped = {path.as_posix() for path in files("pytest-perfgate") or () if ".." not in path.parts}
    tops = {name.partition("/")[0] for name in shipped}
    assert {top for top in tops if not top.endswith(".dist-info")} == SHIPPED
    assert "pytest_perfgate/py.typed" in shipped
    assert any(name.endswith("/LICENSE") for name in shipped)
    assert metadata("pytest-perfgate")["License-Expression"] == "MIT"


def test_a_gate_runs(perfgate) -> None:
    assert perfgate(sum, range(100)).result == sum(range(100))


@pytest.mark.parametrize(
    ("command", "shows"),
    [
        ("perfgate --version", f"perfgate {pytest_perfgate.__version__}"),
        ("perfgate --help", "doctor"),
        ("perfgate devices H100", "H100"),
        ("perfgate explain limit-syntax", "Next: "),
        ("pytest --help", "--perfgate-against"),
    ],
)
def test_a_command_answers(command: str, shows: str) -> None:
    done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert shows in done.stdout
