"""Tests of adapters/profilers/tools."""

from __future__ import annotations

import ctypes.util
import itertools
import os
import re
import shutil
import stat
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

import pytest_perfgate
from pytest_perfgate.adapters.profilers.in_process import CubinKeeper
from pytest_perfgate.adapters.profilers.tools import DEEP, SECTIONS, NcuProfiler, NsysProfiler, with_launcher
from pytest_perfgate.adapters.readers.nsys_connection import connect
from pytest_perfgate.adapters.readers.nsys_export import Export
from pytest_perfgate.adapters.readers.nsys_report import read_nsys, scrub
from pytest_perfgate.adapters.stores.profiles import ProfileFolders
from pytest_perfgate.adapters.system.processes import run_logged
from pytest_perfgate.app.inspections.nsys import Nsys
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.plan import ClockPolicy, Plan
from tests.fake_nsys import REPORT, VERSION, write_fake
from tests.nsys_file import SECRET, small_export
from tests.waits import ended, patient


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


def words(policy: ClockPolicy = ClockPolicy.OBSERVE, **options: object) -> list[str]:
    return NcuProfiler(nullcontext, **options).command(["python", "-m", "x"], Path("/out"), Plan(clocks=policy))  # type: ignore[arg-type]


def test_a_capture_holds_every_section_that_a_text_of_the_package_names() -> None:
    package = Path(pytest_perfgate.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in package.rglob("*.py")]
    named = {name for text in texts for pair in re.findall(r'--section (\w+)|section="(\w+)"', text) for name in pair}
    assert {"SpeedOfLight_RooflineChart", "InstructionStats"} < named
    assert named - {""} - {"SourceCounters"} <= set(SECTIONS)  # annotation; the hottest lines need the mode ncu
    assert named - {""} <= set(DEEP)


def test_it_asks_for_targeted_sections_of_the_region_alone() -> None:
    command = words()
    assert command[:3] == ["ncu", "--profile-from-start", "off"]
    assert [b for a, b in itertools.pairwise(command) if a == "--section"] == list(SECTIONS)
    assert "--set" not in command
    assert command[-3:] == ["python", "-m", "x"]
    assert command[command.index("--export") + 1] == "/out/kernels"
    deep = words(name="ncu")
    assert "--import-source" in deep
    assert "SourceCounters" in deep


@pytest.mark.parametrize(
    ("kernel", "launches", "filters"),
    [
        ("gemm", 0, ["--kernel-name", "regex:gemm"]),
        ("a<b>", 2, ["--kernel-name", "regex:a<b>", "--launch-count", "2"]),
        ("", 5, ["--launch-count", "5"]),
        ("x.y", 0, ["--kernel-name", r"regex:x\.y"]),
    ],
)
def test_some_kernels_alone_are_collected(kernel: str, launches: int, filters: list[str]) -> None:
    whole = NcuProfiler(nullcontext, name="ncu")
    command = whole.only(kernel, launches).command(["x"], Path("/out"), Plan())
    assert command[command.index("--force-overwrite") - len(filters) : command.index("--force-overwrite")] == filters
    assert "--import-source" in command
    assert "--kernel-name" not in whole.command(["x"], Path("/out"), Plan())


@pytest.mark.parametrize("policy", list(ClockPolicy))
def test_clocks_are_never_locked_by_ncu_itself(policy: ClockPolicy) -> None:
    command = words(policy)
    assert command[command.index("--clock-control") + 1] == "none"


def test_the_launcher_stands_in_front_and_a_remote_shell_gets_one_quoted_word() -> None:
    assert words(launcher=("srun", "-N1"))[:3] == ["srun", "-N1", "ncu"]
    remote = words(launcher=("ssh", "login"))
    assert remote[:2] == ["ssh", "login"]
    assert len(remote) == 3
    assert remote[2].startswith("ncu --profile-from-start off")


def test_a_tool_that_is_not_here_is_unavailable_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    availability = NcuProfiler(nullcontext).availability()
    assert not availability.usable
    assert "launcher" in availability.fix


def test_the_version_is_asked(bins: Path) -> None:
    fake(bins, "ncu", 'echo "Version 2025.3.1.0 (build 1)"')
    assert NcuProfiler(nullcontext).availability().version == "2025.3.1"
    fake(bins, "ncu", "exit 3")
    assert not NcuProfiler(nullcontext).availability().usable


def test_a_missing_permission_is_explained_with_its_fix(tmp_path: Path) -> None:
    (tmp_path / "profiler.log").write_text("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n")
    with pytest.raises(PerfgateError) as caught:
        NcuProfiler(nullcontext).artifacts(tmp_path)
    assert caught.value.code.name == "ncu-permission"
    assert "NVreg_RestrictProfilingToAdminUsers=0" in str(caught.value)
    assert caught.value.exit == 18


def test_no_kernel_is_an_error_with_what_ncu_said(tmp_path: Path) -> None:
    (tmp_path / "profiler.log").write_text("==WARNING== No kernels were profiled.\n")
    with pytest.raises(PerfgateError, match="No kernels were profiled"):
        NcuProfiler(nullcontext).artifacts(tmp_path)


def test_of_several_errors_of_ncu_the_first_is_the_cause(tmp_path: Path) -> None:
    (tmp_path / "profiler.log").write_text(
        "==PROF== Connected to process 7\n==WARNING== Unable to access the following 6 metrics\n"
        "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is "
        'concurrently collecting profiling data.\n==ERROR== Failed to profile "k" in process 7\n'
        "==ERROR== An error occurred while trying to profile.\n==WARNING== No kernels were profiled.\n"
    )
    with pytest.raises(PerfgateError, match="DCGM"):
        NcuProfiler(nullcontext).artifacts(tmp_path)


def test_the_machine_code_that_was_handed_over_is_found(tmp_path: Path) -> None:
    (tmp_path / "compiled").mkdir()
    for name in ("compiled/add.cubin", "compiled/add.ptx", "lib.o"):
        (tmp_path / name).touch()
    assert [Path(a.path).name for a in CubinKeeper().artifacts(tmp_path)] == ["add.cubin", "lib.o"]


def test_nothing_handed_over_says_how(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError, match=r"perfgate.attach"):
        CubinKeeper().artifacts(tmp_path)


@pytest.fixture
def fake_nsys(tmp_path, monkeypatch):
    made = small_export(tmp_path / "made.sqlite", secrets=True)

    def write(version: str = VERSION, leave: str = REPORT) -> Path:
        return write_fake(tmp_path / "bin", made, tmp_path / "flags", version, leave)

    write()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return write


def take(profiler: NsysProfiler, program: list[str], out: Path, timeout_s: float = 60.0) -> tuple[Artifact, ...]:
    """What a profile does with it: run the child with its output in a file, then ask for what was left."""
    out.mkdir(parents=True, exist_ok=True)
    command = profiler.command(program, out, Plan())
    code = run_logged(command, out.parent / "log", folder=out.parent, env=os.environ, timeout_s=timeout_s)
    if code:
        raise AssertionError(code)
    return profiler.artifacts(out)


def test_a_child_runs_under_the_flags_and_leaves_one_clean_export(fake_nsys, tmp_path) -> None:
    artifacts = take(NsysProfiler(scrub), [sys.executable, "-c", "print('hello')"], tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["capture.sqlite"]
    flags = (tmp_path / "flags").read_text().split()
    wanted = {
        "--trace=cuda,nvtx",
        "--cuda-graph-trace=node",
        "--capture-range=cudaProfilerApi",
        "--capture-range-end=stop",
    }
    assert wanted <= set(flags)
    assert SECRET.encode() not in (tmp_path / "out" / "capture.sqlite").read_bytes()
    assert Nsys(read_nsys).inspect([Path(artifacts[0].path)], {}).metrics.find("overlap")
    assert "TARGET_INFO_SYSTEM_ENV" in dict(artifacts[0].parameters)["dropped"]


def test_a_child_that_fails_shows_what_it_said(fake_nsys, tmp_path) -> None:
    program = [sys.executable, "-c", "import sys; print('CUDA out of memory'); sys.exit(3)"]
    with pytest.raises(AssertionError, match="3"):
        take(NsysProfiler(scrub), program, tmp_path / "out")
    assert "CUDA out of memory" in ProfileFolders(tmp_path).tail(tmp_path, "log")


def test_a_child_that_hangs_is_ended_with_all_it_started(fake_nsys, tmp_path, monkeypatch) -> None:
    program = ["/bin/sh", "-c", f"echo $$ > {tmp_path}/pid; sleep 60"]
    patient(monkeypatch, lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    with pytest.raises(AssertionError, match="124"):
        take(NsysProfiler(scrub), program, tmp_path / "out", 0.5)
    assert ended(int((tmp_path / "pid").read_text()))


def test_a_range_that_never_opened_is_said(fake_nsys, tmp_path) -> None:
    fake_nsys(leave=":")
    with pytest.raises(PerfgateError, match="the capture range never started"):
        take(NsysProfiler(scrub), ["true"], tmp_path / "out")


@pytest.mark.parametrize(("version", "usable"), [("2021.5.1.118", False), ("2022.2.1.31", True), ("nonsense", False)])
def test_versions_are_checked(fake_nsys, version, usable) -> None:
    fake_nsys(version=version)
    available = NsysProfiler(scrub).availability()
    assert available.usable is usable
    assert usable or available.why


def test_without_nsys_the_reason_is_said(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    available = NsysProfiler(scrub).availability()
    assert not available.usable
    assert available.why == "nsys is not on the PATH"


def test_a_launcher_stands_before_nsys(fake_nsys, tmp_path) -> None:
    command = NsysProfiler(scrub, ("srun", "-N1")).command(["python", "-m", "pytest"], tmp_path, Plan())
    assert list(command[:4]) == ["srun", "-N1", "nsys", "profile"]
    assert list(command[-3:]) == ["python", "-m", "pytest"]


def test_a_remote_shell_is_given_one_quoted_line() -> None:
    launcher = ["ssh", "node1", "srun", "-N1"]
    assert with_launcher(launcher, ["nsys", "profile", "a b", "$HOME"]) == [*launcher, "nsys profile 'a b' '$HOME'"]
    assert with_launcher([], ["nsys"]) == ["nsys"]


def test_a_capture_goes_through_a_remote_shell(fake_nsys, tmp_path) -> None:
    ssh = tmp_path / "bin" / "ssh"
    ssh.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    ssh.chmod(0o755)
    program = [sys.executable, "-c", "print('a b $HOME')"]
    (artifact,) = take(NsysProfiler(scrub, ("ssh", "node1")), program, tmp_path / "out dir")
    assert Path(artifact.path).parent == tmp_path / "out dir"


PROGRAM = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
for step in range(5):
    lib.nvtxRangePushA(b"ProfilerStep#%d" % step)
    lib.nvtxRangePushA(b"layer0.stage2_f")
    lib.nvtxRangePop()
    lib.nvtxRangePop()
"""


def nvtx_library() -> str:
    """The library that nvidia-nvtx-cu12 12.1 and the CUDA toolkits before 12.9 bring."""
    places = [root / "nvidia/nvtx/lib" for root in map(Path, sys.path)]
    library = next((str(path) for place in places for path in place.glob("libnvToolsExt.so*")), None)
    return library or ctypes.util.find_library("nvToolsExt") or ""


@pytest.mark.skipif(shutil.which("nsys") is None, reason="nsys is not on the PATH")
def test_a_real_capture_of_ranges_goes_through_the_whole_path(tmp_path, monkeypatch) -> None:
    library = nvtx_library()
    if not library:
        pytest.skip("no libnvToolsExt writes the ranges")
    profiler = NsysProfiler(scrub, ranged=False, timeout_s=120)
    available = profiler.availability()
    if not available.usable:
        pytest.skip(available.why)
    monkeypatch.setenv("PERFGATE_TEST_TOKEN", SECRET)
    (artifact,) = take(profiler, [sys.executable, "-c", PROGRAM, library], tmp_path / "out")
    assert os.listdir(tmp_path / "out") == ["capture.sqlite"]
    path = Path(artifact.path)
    assert SECRET.encode() not in path.read_bytes()
    assert "TARGET_INFO_SYSTEM_ENV" in dict(artifact.parameters)["dropped"]
    ranges = Export(connect(path)).ranges()
    texts = [ranges.texts[at] for at in ranges.text]
    assert texts.count("layer0.stage2_f") == 5
    assert "ProfilerStep#4" in texts
    with pytest.raises(PerfgateError, match="no kernel table") as error:
        Nsys(read_nsys).inspect([path], {})
    assert error.value.code.name == "nsys-no-kernels"
