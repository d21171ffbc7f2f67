"""Baselines that are gone, broken, foreign or edited: none of them lets a test pass in silence."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from pytest_perfgate.adapters.devices.host import probe_host
from pytest_perfgate.adapters.devices.process import probe_affinity, probe_threads
from pytest_perfgate.adapters.stores.baselines import Baselines
from pytest_perfgate.model.baseline import Baseline
from pytest_perfgate.model.measurement import Identity
from pytest_perfgate.model.plan import CaseKey
from tests.plugin.projects import Project

DEVICE = probe_host().key
RECORDED = """
    import pytest
    @pytest.mark.perfgate
    def test_it(perfgate):
        perfgate.record([{ms}] * 30, unit="ms")
"""


def here() -> Identity:
    """As a child that inherits this process would say now; whatever else loaded torch here, it does not."""
    threads = probe_threads().partition("torch=")[0].strip()
    return Identity(device=DEVICE, timer="record", threads=threads, affinity=probe_affinity())


def accepted(test: str, ms: float, why: str = "measured", identity: Identity | None = None) -> Baseline:
    identity = identity or here()
    key = CaseKey(nodeid=f"test_it.py::{test}")
    return Baseline(
        key=key, device=DEVICE, time=ms * 1e6, who="me", when="2026-01-02", why=why, identity=identity, commit="abc1234"
    )


def git(project: Project, *words: str) -> None:
    who = ["-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *words], cwd=project.root, check=True, capture_output=True)


@pytest.fixture
def repository(project: Project) -> Project:
    """A project on main with one accepted test, and a branch off it."""
    project.configure('devices = ["host-*"]\nconviction = "interval"\nrounds = 2')
    project.write("test_it.py", RECORDED.format(ms=1.0))
    project.write(".gitignore", ".perfgate/\njunit.xml\n")
    Baselines(project.root, ["host-*"]).write([accepted("test_it", 1.0)])
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "accepted")
    git(project, "checkout", "-qb", "change")
    git(project, "commit", "-qm", "nothing", "--allow-empty")
    return project


def test_kept_then_slower_then_edited_without_and_with_a_reason(repository: Project) -> None:
    store = Baselines(repository.root, ["host-*"])
    assert repository.run(ci=True).outcome("test_it") == "passed"
    repository.write("test_it.py", RECORDED.format(ms=9.0))
    slower = repository.run(ci=True)
    assert slower.outcome("test_it") == "failed"
    assert "REGRESSED" in slower.says("test_it")
    assert "+800" in slower.says("test_it")
    store.write([accepted("test_it", 9.0, why="")])
    silent = repository.run(ci=True)
    assert silent.outcome("test_it") == "failed", silent.text
    store.write([accepted("test_it", 9.0, why="now in double precision")])
    said = repository.run(ci=True)
    assert said.outcome("test_it") == "passed", said.text
    assert "1 accepted" in said.text


def test_a_test_that_is_gone_fails_the_suite_and_not_when_filtered(repository: Project) -> None:
    Baselines(repository.root, ["host-*"]).write([accepted("test_gone[1]", 2.0)])
    run = repository.run(ci=True)
    assert run.outcome("test_it") == "passed"
    assert run.code == 1
    assert "test_gone[1]" in run.says("dropped")
    assert repository.run("-k", "test_it", ci=True).code == 0
    here = repository.run("--perfgate=full")
    assert here.code == 0
    assert "no longer collected" in here.text


def test_another_identity_and_another_device_are_not_compared(repository: Project) -> None:
    store = Baselines(repository.root, ["host-*"])
    store.write([accepted("test_it", 1.0, identity=replace(here(), cache="cold"))])
    git(repository, "commit", "-qam", "cold")
    git(repository, "branch", "-f", "main")
    git(repository, "commit", "-qm", "nothing", "--allow-empty")
    other = repository.run(ci=True)
    assert "UNBASELINED" in other.says("test_it")
    assert "cache" in other.says("test_it")
    folder = repository.root / "baselines"
    (folder / DEVICE).rename(folder / "host-another-96")
    away = repository.run(ci=True)
    assert "UNBASELINED" in away.says("test_it")


def test_a_corrupt_baseline_is_a_usage_error_with_its_place(repository: Project) -> None:
    file = next((repository.root / "baselines").rglob("*.yaml"))
    file.write_text(file.read_text().replace("time:", "time: [").replace("1", "x"))
    run = repository.run(ci=True)
    assert run.code == 4, run.text
    assert file.name in run.text
    assert "Traceback" not in run.text
