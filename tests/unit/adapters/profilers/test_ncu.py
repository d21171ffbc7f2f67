from __future__ import annotations

import itertools
import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from pytest_perfgate.adapters.profilers.tools import SECTIONS, CubinKeeper, Ncu
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import ClockPolicy, Plan


def fake(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    script = folder / name
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def bins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def words(policy: ClockPolicy = ClockPolicy.OBSERVE, **given: object) -> list[str]:
    return Ncu(nullcontext, **given).command(["python", "-m", "x"], Path("/out"), Plan(clocks=policy))  # type: ignore[arg-type]


def test_it_asks_for_targeted_sections_of_the_region_alone() -> None:
    told = words()
    assert told[:3] == ["ncu", "--profile-from-start", "off"]
    assert [b for a, b in itertools.pairwise(told) if a == "--section"] == list(SECTIONS)
    assert "--set" not in told
    assert told[-3:] == ["python", "-m", "x"]
    assert told[told.index("--export") + 1] == "/out/kernels"
    deep = words(name="ncu")
    assert "--import-source" in deep
    assert "SourceCounters" in deep


@pytest.mark.parametrize("policy", list(ClockPolicy))
def test_clocks_are_never_locked_by_ncu_itself(policy: ClockPolicy) -> None:
    told = words(policy)
    assert told[told.index("--clock-control") + 1] == "none"


def test_the_launcher_stands_in_front_and_a_remote_shell_gets_one_quoted_word() -> None:
    assert words(launcher=("srun", "-N1"))[:3] == ["srun", "-N1", "ncu"]
    remote = words(launcher=("ssh", "login"))
    assert remote[:2] == ["ssh", "login"]
    assert len(remote) == 3
    assert remote[2].startswith("ncu --profile-from-start off")


def test_a_tool_that_is_not_here_is_unavailable_with_the_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    said = Ncu(nullcontext).availability()
    assert not said.usable
    assert "launcher" in said.mend


def test_the_version_is_asked(bins: Path) -> None:
    fake(bins, "ncu", 'echo "Version 2025.3.1.0 (build 1)"')
    assert Ncu(nullcontext).availability().version == "2025.3.1"
    fake(bins, "ncu", "exit 3")
    assert not Ncu(nullcontext).availability().usable


def test_a_missing_permission_is_explained_with_its_mend(tmp_path: Path) -> None:
    (tmp_path / "profiler.log").write_text("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n")
    with pytest.raises(PerfgateError) as caught:
        Ncu(nullcontext).artifacts(tmp_path)
    assert caught.value.code.name == "ncu-permission"
    assert "NVreg_RestrictProfilingToAdminUsers=0" in str(caught.value)
    assert caught.value.exit == 18


def test_no_kernel_is_an_error_with_what_ncu_said(tmp_path: Path) -> None:
    (tmp_path / "profiler.log").write_text("==WARNING== No kernels were profiled.\n")
    with pytest.raises(PerfgateError, match="No kernels were profiled"):
        Ncu(nullcontext).artifacts(tmp_path)


def test_the_machine_code_that_was_handed_over_is_found(tmp_path: Path) -> None:
    (tmp_path / "compiled").mkdir()
    for name in ("compiled/add.cubin", "compiled/add.ptx", "lib.o"):
        (tmp_path / name).touch()
    assert [Path(a.path).name for a in CubinKeeper().artifacts(tmp_path)] == ["add.cubin", "lib.o"]


def test_nothing_handed_over_says_how(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError, match=r"perfgate.attach"):
        CubinKeeper().artifacts(tmp_path)
