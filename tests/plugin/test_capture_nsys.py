"""``capture="nsys"`` on a marker: a run of its own after the timing, whose figures meet the limits."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.fake_nsys import write_fake
from tests.nsys_file import SECRET, small_export
from tests.plugin.projects import Project

TORCH = """
    class cuda:
        is_available = staticmethod(lambda: True)
        is_initialized = staticmethod(lambda: False)
        synchronize = staticmethod(lambda: None)
        @staticmethod
        def cudart():
            nothing = staticmethod(lambda: None)
            return type("Rt", (), {"cudaProfilerStart": nothing, "cudaProfilerStop": nothing})
"""
SUITE = """
    import pathlib, pytest, torch

    def note(word):
        with open("calls.txt", "a") as file:
            file.write(word + "\\n")

    @pytest.mark.perfgate("overlap(stage=stage2) >= 80%", "time <= 10s", capture="nsys")
    def test_call(perfgate):
        perfgate(lambda: None)

    @pytest.mark.perfgate("overlap(stage=stage2) >= 40%", capture="nsys")
    @pytest.mark.parametrize("n", [4])
    def test_region(perfgate, n):
        with perfgate.region("step"):
            note("step")
"""


@pytest.fixture
def staged(project: Project, tmp_path: Path) -> Project:
    made = small_export(tmp_path / "made.sqlite", secrets=True)
    write_fake(tmp_path / "bin", made, tmp_path / "flags")
    project.write("torch.py", TORCH)
    project.write("test_it.py", SUITE)
    project.configure("rounds = 1")
    return project


def path_of(*folders: Path) -> str:
    return os.pathsep.join([*map(str, folders), os.environ["PATH"]])


def test_a_capture_meets_its_limits_and_is_kept(staged: Project, tmp_path: Path) -> None:
    run = staged.run("--perfgate=full", "--perfgate-json=run.json", "--perfgate-html=run.html", ci=True,
                     PATH=path_of(tmp_path / "bin"), API_TOKEN=SECRET)  # fmt: skip
    assert run.outcome("test_region[4]") == "passed", run.text
    text = " ".join(run.says("test_call").split())
    assert "BROKEN test_call overlap(rank=0, stage=stage2_f) 50 % limit >= 80 %" in text
    assert "seen captured by nsys 2024.6.2.225: window 1000..21000 ns" in text
    assert "kept in" in text
    assert (tmp_path / "flags").read_text().split().count("run") == 2, "one run for each call"
    assert (staged.root / "calls.txt").read_text().split() == ["step"] * 4, "timed, tuned, captured, tested"
    (folder,) = (staged.root / ".perfgate/profiles/nsys/test_it.py-test_region-step/4").iterdir()
    names = {path.name for path in folder.iterdir()}
    assert {"capture.sqlite", "params.json", "report.md", "metrics.json", "timeline.svg", "tables"} <= names
    params = json.loads((folder / "params.json").read_text())
    assert (params["call"], params["parameters"], params["second_try"]) == ("step", {"n": "4"}, False)
    assert params["device"]["kind"] == "host"
    written = [path for path in staged.root.rglob("*") if path.is_file() and path.name != "made.sqlite"]
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]


def test_without_the_tool_it_is_not_measured_and_says_what_to_install(staged: Project, tmp_path: Path) -> None:
    lone = tmp_path / "lone"
    lone.mkdir()
    (lone / "git").symlink_to(shutil.which("git") or "/usr/bin/git")
    run = staged.run("--perfgate=full", ci=True, PATH=str(lone))
    first, other = (" ".join(run.says(test).split()) for test in ("test_call", "test_region[4]"))
    assert "NOT MEASURED" in first
    assert "nsys is not on the PATH" in first
    assert "install Nsight Systems" in first
    assert "NOT MEASURED" in other
    assert "the same reason as test_it.py::test_call" in other


def test_quick_mode_says_how_to_take_a_capture_whether_a_limit_needs_it_or_not(staged: Project) -> None:
    staged.write("test_it.py", """
        import pytest

        @pytest.mark.perfgate("time <= 10s", capture=("event", "nsys"))
        def test_call(perfgate):
            perfgate(lambda: None)

        @pytest.mark.perfgate("overlap >= 10%", capture="nsys")
        def test_needed(perfgate):
            perfgate(lambda: None)

        @pytest.mark.perfgate("time <= 10s", capture="nsis")
        def test_misspelt(perfgate):
            perfgate(lambda: None)
    """)  # fmt: skip
    run = staged.run("--perfgate=quick")
    assert run.outcome("test_call") == "passed"
    shown = " ".join(run.text.split())
    assert "1 capture asked for and not taken" in shown
    assert "next: pytest test_it.py::test_call --perfgate=full, or perfgate profile" in shown
    assert run.outcome("test_needed") == "passed"
    assert "needs a run of its own, and --perfgate=quick has none" in shown
    assert "next pytest test_it.py::test_needed --perfgate=full, or perfgate profile" in shown
    assert "there is no capture 'nsis'" in run.says("test_misspelt")
    assert "nsys" in run.says("test_misspelt")


WHOLE = """
    from pytest_perfgate.adapters.profilers.tools import Nsys
    from pytest_perfgate.adapters.readers.nsys_report import scrub

    class Whole(Nsys):
        name = "whole"

        def __init__(self):
            super().__init__(scrub, (), 120.0, ranged=False)

    def pytest_perfgate_profilers():
        return [Whole()]
"""


@pytest.mark.skipif(shutil.which("nsys") is None, reason="nsys is not on the PATH")
def test_a_real_capture_goes_the_whole_way(project: Project) -> None:
    """Without a GPU an nsys of the machine captures the host, and the reader says that there are no kernels."""
    project.write("torch.py", TORCH)
    project.write("conftest.py", WHOLE)
    project.write("test_it.py", """
        import pytest, torch

        @pytest.mark.perfgate("overlap >= 80%", capture="whole")
        def test_step(perfgate):
            with perfgate.region():
                sum(range(1000))
    """)  # fmt: skip
    project.configure("rounds = 1")
    run = project.run("--perfgate=full", ci=True, API_TOKEN=SECRET)
    text = " ".join(run.says("test_step").split())
    assert "NOT MEASURED" in text
    assert "capture whole was not taken" in text, text
    if "took over" in text or "ended with exit code" in text:
        pytest.skip(f"the nsys of this machine does not capture here: {text}")
    assert "no kernel table" in text
    (export,) = (project.root / ".perfgate/profiles/whole").rglob("capture.sqlite")
    assert json.loads((export.parent / "params.json").read_text())["mode"] == "whole"
    assert not [p for p in project.root.rglob("*") if p.is_file() and SECRET.encode() in p.read_bytes()]
