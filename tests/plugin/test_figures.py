"""Any figure of a test against its accepted value, from the first run to the reviewed line."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_perfgate.cli import main
from tests.plugin.projects import Project
from tests.plugin.two_builds import SLOW, git
from tests.tools import keep_listings, needs_tools

CUBINS = Path(__file__).parents[1] / "artifacts" / "cubins"

TESTS = """
    import pathlib
    import pytest

    HERE = pathlib.Path(__file__).parent

    def figure(name):
        return float((HERE / name).read_text())

    @pytest.mark.perfgate("change(sent) <= 0", "change(loss) <= 10%")
    def test_own(perfgate):
        perfgate(lambda: sum(range(100)))
        perfgate.metric("sent", figure("sent"), unit="B", exact=True)
        perfgate.metric("loss", figure("loss"))

    @pytest.mark.perfgate("change(registers) <= 0", "change(spills) <= 0")
    def test_read(perfgate):
        perfgate.read(HERE / "kernel.cubin")
"""


@pytest.fixture(scope="module", autouse=True)
def _one_listing_of_a_cubin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("bin")
    keep_listings(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(folder), prepend=os.pathsep)
        yield


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose figures were accepted: 4096 bytes sent, a loss of 0.05, 80 registers."""
    project = Project(tmp_path_factory.mktemp("accepted"))
    project.configure('devices = ["*"]')
    project.write("test_gate.py", TESTS)
    for name, text in (("sent", "4096"), ("loss", "0.05")):
        project.write(name, text)
    (project.root / "kernel.cubin").write_bytes((CUBINS / "attention_tile.sm_90.cubin").read_bytes())
    first = project.run("--perfgate=quick")
    assert first.code == 0, first.text
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root)
        patch.delenv("CI", raising=False)
        assert main(["accept", "--new"]) == 0
    return project.root


@pytest.fixture
def gated(accepted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A copy of it to change."""
    root = shutil.copytree(accepted, tmp_path / "gated")
    configured = (root / "pyproject.toml").read_text(encoding="utf-8")
    project = Project(root)
    project.write("pyproject.toml", configured)
    monkeypatch.chdir(root)
    monkeypatch.delenv("CI", raising=False)
    return project


def line_of(project: Project, name: str) -> str:
    files = sorted((project.root / "baselines").rglob("test_gate.py.yaml"))
    assert [file.parent.name for file in files][-1] == "sm_90", "what a file says is of the device that it names"
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return next(line for line in lines if f"'{name}'" in line)


@needs_tools
def test_figures_are_accepted_kept_and_broken(gated: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert "{loss: 0.05, sent: 4KiB, " in line_of(gated, "test_own")
    assert "'registers(arch=sm_90, kernel=attention_tile)': 80, 'spills(" in line_of(gated, "test_read")
    result = gated.run("--perfgate=quick", ci=True)
    assert result.code == 0, result.text
    assert "4 KiB -> 4 KiB" in result.properties["test_own"]["perfgate.change(sent)"]

    gated.write("sent", "4100")
    gated.write("loss", "0.054")
    worse = gated.run("--perfgate=quick", ci=True)
    assert [worse.outcome(name) for name in ("test_own", "test_read")] == ["failed", "passed"]
    assert "REGRESSED" in worse.says("test_own")
    assert "4 KiB -> 4.004 KiB" in worse.says("test_own")

    assert main(["accept"]) != 0, "a figure that got worse needs a reason"
    assert "sent: 4KiB" in line_of(gated, "test_own")
    capsys.readouterr()
    assert main(["accept", "--reason", "one more field"]) == 0
    output = capsys.readouterr().out
    assert "sent  4 KiB -> 4.004 KiB  +0.1 %  worse" in output
    assert "loss" not in output, "what keeps its limit within its noise is not told"
    assert 'why: "one more field"' in line_of(gated, "test_own")
    again = gated.run("--perfgate=quick", ci=True)
    assert again.code == 0, again.text


@needs_tools
def test_a_figure_that_is_gone_fails_and_a_new_one_is_unbaselined_in_ci(gated: Project) -> None:
    (gated.root / "kernel.cubin").write_bytes((CUBINS / "copy.sm_90.cubin").read_bytes())
    other = gated.run("--perfgate=quick")
    assert other.outcome("test_read") == "failed"
    assert "80 -> gone" in other.says("test_read")

    text = (gated.root / "test_gate.py").read_text(encoding="utf-8")
    gated.write(
        "test_gate.py", text.replace('"change(loss) <= 10%"', '"change(loss) <= 10%", "change(time_spent) <= 1%"')
    )
    strange = gated.run("--perfgate=quick")
    assert "limit-unknown-metric" in strange.text
    gated.write("test_gate.py", text.replace("change(spills) <= 0", "change(stack) <= 0"))
    (gated.root / "kernel.cubin").write_bytes((CUBINS / "attention_tile.sm_90.cubin").read_bytes())
    new = gated.run("--perfgate=quick", ci=True)
    assert new.outcome("test_read") == "failed"
    assert "UNBASELINED" in new.says("test_read")


@needs_tools
def test_a_machine_that_is_not_listed_keeps_its_own_figures(gated: Project) -> None:
    gated.configure()
    first = gated.run("--perfgate=quick")
    assert first.code == 0, first.text
    own, _ = sorted((gated.root / ".perfgate" / "baselines").rglob("test_gate.py.yaml"))
    assert "sent: 4KiB" in own.read_text(encoding="utf-8")
    gated.write("sent", "4100")
    assert gated.run("--perfgate=quick").outcome("test_own") == "failed"


PACKAGE = """
    import random

    SENT, SCALE = 4096, 1.0

    def loss():
        return 0.05 * SCALE * random.SystemRandom().gauss(1, 0.005)
"""

BESIDE = """
    import pytest
    import kern

    @pytest.mark.perfgate("change(sent) <= 0", "change(loss) <= 5%")
    def test_own(perfgate):
        perfgate(lambda: sum(range(300)))
        perfgate.metric("sent", kern.SENT, unit="B", exact=True)
        perfgate.metric("loss", kern.loss())
"""


@SLOW
@pytest.mark.parametrize(
    ("now", "outcome"), [("4096, 1.0", "passed"), ("4100, 1.0", "failed"), ("4096, 1.2", "failed")]
)
def test_figures_of_two_builds_are_held_against_each_other(project: Project, now: str, outcome: str) -> None:
    project.configure(settings='arms = "worktree"\nbudget = "20 ms"', pytest_ini='pythonpath = ["."]')
    project.write("kern.py", PACKAGE)
    project.write("tests/test_gate.py", BESIDE)
    project.write(".gitignore", ".perfgate/\n__pycache__/\njunit.xml\n")
    for words in (
        ("init", "-q", "-b", "main"),
        ("config", "user.email", "a@example.com"),
        ("config", "user.name", "a"),
    ):
        git(project.root, *words)
    git(project.root, "add", "-A")
    git(project.root, "commit", "-qm", "one")
    project.write("kern.py", PACKAGE.replace("4096, 1.0", now) + "    # edited\n")
    done = project.run("--perfgate=full", "--perfgate-against", "HEAD")
    assert done.outcome("test_own") == outcome, done.text
