"""The Python module that Nsight Compute brings beside its ncu is found without anybody installing it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from pytest_perfgate.adapters.readers import ncu_report
from pytest_perfgate.model.errors import PerfgateError


@pytest.fixture
def without_package(monkeypatch, tmp_path):
    """No such package is installed; what a folder brings is imported from there."""

    def import_from_path(name: str):
        folder = next((Path(folder) for folder in sys.path if folder.startswith(str(tmp_path))), None)
        if folder is None:
            raise ModuleNotFoundError(f"No module named {name!r}")
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    monkeypatch.setattr(ncu_report, "import_module", import_from_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(ncu_report, "INSTALLED", tmp_path / "nvidia" / "nsight-compute")
    return tmp_path


def installation(folder: Path, program: str, *, module: str = "NAME = 'beside ncu'\n") -> Path:
    """A folder of Nsight Compute with its program at this place."""
    home = folder / "nsight-compute-2026.2"
    (home / "extras" / "python").mkdir(parents=True)
    (home / "extras" / "python" / "ncu_report.py").write_text(module)
    ncu = home / program
    ncu.parent.mkdir(parents=True, exist_ok=True)
    ncu.write_text("#!/bin/sh\n")
    ncu.chmod(0o755)
    return ncu


@pytest.mark.parametrize("program", ["ncu", "target/linux-desktop-glibc_2_11_3-x64/ncu"])
@pytest.mark.parametrize("linked", [False, True])
def test_the_module_beside_ncu_is_taken(without_package, monkeypatch, program: str, linked: bool) -> None:
    ncu = installation(without_package, program)
    if linked:
        (without_package / "bin").mkdir()
        (without_package / "bin" / "ncu").symlink_to(ncu)
        ncu = without_package / "bin" / "ncu"
    monkeypatch.setenv("PATH", str(ncu.parent))
    assert ncu_report._module("report").NAME == "beside ncu"


@pytest.mark.parametrize("place", ["cuda-13.0/nsight-compute-{}", "nvidia/nsight-compute/{}"])
def test_the_ncu_of_a_toolkit_is_a_script_and_its_module_the_newest(without_package, monkeypatch, place: str) -> None:
    """A toolkit has it in a folder of its own beside ``bin``; a package of a system under ``/opt/nvidia``."""
    for version in ("2025.9.1", "2025.10.0"):
        home = without_package / place.format(version) / "extras" / "python"
        home.mkdir(parents=True)
        (home / "ncu_report.py").write_text(f"NAME = {version!r}\n")
    ncu = without_package / "cuda-13.0" / "bin" / "ncu"
    ncu.parent.mkdir(parents=True)
    ncu.write_text("#!/bin/sh\n")
    ncu.chmod(0o755)
    monkeypatch.setenv("PATH", str(ncu.parent))
    assert ncu_report._module("report").NAME == "2025.10.0"


def test_without_either_it_is_said_what_does_not_import(without_package, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(without_package))
    with pytest.raises(PerfgateError, match="No module named 'ncu_report'") as caught:
        ncu_report._module("report")
    assert caught.value.code.name == "kernel-tool"


def test_a_module_that_does_not_load_is_no_traceback_and_leaves_no_path(without_package, monkeypatch) -> None:
    ncu = installation(without_package, "ncu", module="raise ImportError('built for Python 3.8')\n")
    monkeypatch.setenv("PATH", str(ncu.parent))
    with pytest.raises(PerfgateError, match=r"built for Python 3\.8"):
        ncu_report._module("report")
    assert not [folder for folder in sys.path if "extras" in folder]
