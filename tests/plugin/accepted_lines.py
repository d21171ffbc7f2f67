"""A project with accepted lines on its target branch, and a change beside it."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from pytest_perfgate.adapters.devices.host import probe_affinity, probe_host, probe_threads
from pytest_perfgate.adapters.stores.baselines import Baselines
from pytest_perfgate.model.measurement import Baseline, Identity
from pytest_perfgate.model.plan import CaseKey
from tests.plugin.forked import forked, inherited
from tests.plugin.projects import Project

DEVICE = probe_host().key
DEVICES = ["host-*"]
RECORDED = """
    import pytest

    gate = pytest.mark.perfgate

    @gate
    @pytest.mark.chosen
    def test_kept(perfgate):
        perfgate.record([1.0] * 30, unit="ms")

    @gate
    def test_slower(perfgate):
        perfgate.record([9.0] * 30, unit="ms")

    @gate
    def test_edited(perfgate):
        perfgate.record([9.0] * 30, unit="ms")

    @gate
    def test_cold(perfgate):
        perfgate.record([1.0] * 30, unit="ms")

    @gate
    def test_expired(perfgate):
        perfgate.record([1.0] * 30, unit="ms")

    @gate
    def test_renewed(perfgate):
        perfgate.record([1.0] * 30, unit="ms")

    @gate
    @pytest.mark.skip(reason="no --run-bench")
    def test_skipped(perfgate):
        perfgate.record([1.0] * 30, unit="ms")

    @gate
    @pytest.mark.parametrize("n", ["two"])
    def test_sized(perfgate, n):
        perfgate.record([1.0] * 30, unit="ms")
"""


def here() -> Identity:
    """As a child that inherits this process would say now."""
    return Identity(device=DEVICE, timer="record", threads=probe_threads(), affinity=probe_affinity())


def accepted(test: str, ms: float, **fields: object) -> Baseline:
    values = {"who": "me", "when": "2026-01-02", "why": "measured", "identity": here(), "commit": "abc1234", **fields}
    return Baseline(key=CaseKey(nodeid=f"test_it.py::{test}"), device=DEVICE, time=ms * 1e6, **values)  # type: ignore[arg-type]


def git(project: Project, *words: str) -> None:
    who = ["-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "init.defaultBranch=release"]
    subprocess.run(["git", *who, *words], cwd=project.root, check=True, capture_output=True)


def repository(project: Project) -> Project:
    """A project with accepted tests on the branch that it names for its target, and a branch off it."""
    project.configure('devices = ["host-*"]\nconfirmation = "interval"\nrounds = 2\ntarget = "release"')
    project.write("test_it.py", RECORDED)
    project.write(".gitignore", ".perfgate/\njunit.xml\n")
    Baselines(project.root, DEVICES).write(
        [
            *(
                accepted(name, 1.0)
                for name in ("test_kept", "test_slower", "test_edited", "test_skipped", "test_sized[2]", "test_gone")
            ),
            accepted("test_cold", 1.0, identity=replace(here(), cache="cold")),
            accepted("test_expired", 1.0, expires="2020-02-01", why="until the new compiler"),
            accepted("test_renewed", 1.0, expires="2020-02-01"),
        ]
    )
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "accepted")
    git(project, "checkout", "-qb", "change")
    git(project, "commit", "-qm", "nothing", "--allow-empty")
    return project


def swap(file: Path, old: str, new: str) -> None:
    """Put one text in place of another; of a file of baselines, with nothing in its place, take the line away."""
    text = file.read_text(encoding="utf-8")
    assert old in text, text
    if file.suffix == ".yaml" and not new:
        text = "".join(line for line in text.splitlines(keepends=True) if old not in line)
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def reported(project: Project) -> int:
    """The exit code of ``perfgate report`` in CI."""
    command = "import sys; from pytest_perfgate.cli import main; sys.exit(main(sys.argv[1:]))"
    return forked(("-c", command, "report"), project.root, {**inherited(), "CI": "true"})[0]
