from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.bindings.cuda_driver import ptxas_version


def program(path, version: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {version[:4]}, V{version}'\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("TRITON_PTXAS_PATH", raising=False)
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.setitem(sys.modules, "triton.backends.nvidia.compiler", None)


def test_without_one_nothing_is_said() -> None:
    assert ptxas_version() == ""


def test_that_of_the_path(tmp_path) -> None:
    program(tmp_path / "bin" / "ptxas", "12.8.93")
    assert ptxas_version() == "12.8.93"


def test_tritons_own_goes_before_it_and_the_one_it_is_told_before_that(tmp_path, monkeypatch) -> None:
    program(tmp_path / "bin" / "ptxas", "12.8.93")
    program(tmp_path / "triton" / "backends" / "nvidia" / "bin" / "ptxas", "13.0.88")
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__file__=str(tmp_path / "triton" / "__init__.py")))
    assert ptxas_version() == "13.0.88"
    monkeypatch.setenv("TRITON_PTXAS_PATH", program(tmp_path / "other", "13.1.5"))
    assert ptxas_version() == "13.1.5"


def test_of_several_that_triton_has_the_one_that_it_takes_for_the_device(tmp_path, monkeypatch) -> None:
    program(tmp_path / "bin" / "ptxas", "12.8.93")
    newer = program(tmp_path / "ptxas-blackwell", "13.1.5")

    def get_ptxas(arch: int):
        if arch < 100:
            raise RuntimeError("Cannot find ptxas")
        return SimpleNamespace(path=newer)

    monkeypatch.setitem(sys.modules, "triton.backends.nvidia.compiler", SimpleNamespace(get_ptxas=get_ptxas))
    assert [ptxas_version(arch) for arch in ("sm_100", "sm_90", "")] == ["13.1.5", "12.8.93", "12.8.93"]


def test_one_that_does_not_start_is_none(tmp_path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ptxas").write_text("no program")
    (tmp_path / "bin" / "ptxas").chmod(0o755)
    assert ptxas_version() == ""
