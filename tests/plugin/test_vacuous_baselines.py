"""Baselines that are gone, broken, foreign, old or edited: none of them lets a test pass in silence."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from pytest_perfgate.adapters.stores.baselines import Baselines
from pytest_perfgate.model.measurement import Baseline
from pytest_perfgate.model.plan import CaseKey
from tests.plugin.accepted_lines import DEVICE, DEVICES, accepted, git, repository
from tests.plugin.projects import Project, Run, failing
from tests.plugin.shared import Shared


@pytest.fixture
def in_ci(shared: Shared) -> Run:
    return shared("baselines", lambda project: repository(project).run(ci=True))


@pytest.fixture
def on_a_laptop(shared: Shared) -> Run:
    return shared("baselines-here", lambda project: repository(project).run())


def test_a_baseline_that_is_kept_and_one_that_is_not(in_ci: Run) -> None:
    assert in_ci.outcome("test_kept") == "passed", in_ci.text
    failing(in_ci, "test_slower", "REGRESSED", "+800")
    failing(in_ci, "test_edited", "REGRESSED")


def test_a_dropped_test(in_ci: Run, on_a_laptop: Run) -> None:
    failing(in_ci, "dropped", "test_it.py::test_gone")
    assert in_ci.code == 1
    assert "dropped" not in on_a_laptop.tests
    assert "\n  test_it.py::test_gone\n" in on_a_laptop.text, "a note"
    assert on_a_laptop.code == 0, on_a_laptop.text


def test_a_renamed_parameter(in_ci: Run, on_a_laptop: Run) -> None:
    failing(in_ci, "test_sized[two]", "UNBASELINED")
    renamed = "test_it.py::test_sized[2] (renamed to test_it.py::test_sized[two]?)"
    failing(in_ci, "dropped", renamed)
    assert renamed in on_a_laptop.text
    assert "unbaselined  test_it.py::test_sized[two] " in on_a_laptop.text


def test_another_identity(in_ci: Run, on_a_laptop: Run) -> None:
    failing(in_ci, "test_cold", "UNBASELINED", "cache cold -> warm")
    assert "unbaselined  test_it.py::test_cold " in on_a_laptop.text


def test_an_acceptance_that_expired(in_ci: Run, on_a_laptop: Run) -> None:
    expired = 'the acceptance expired on 2020-02-01: "until the new compiler"'
    failing(in_ci, "test_expired", "UNBASELINED", " ".join(expired.split()[:5]), "perfgate accept")
    failing(in_ci, "test_renewed", "UNBASELINED")
    assert "unbaselined  test_it.py::test_expired " in on_a_laptop.text


def test_a_baseline_edited_in_the_change_under_test(project: Project) -> None:
    """Without a reason it fails; with one, and a measurement that agrees, it is ACCEPTED and counted apart."""
    repository(project)
    store = Baselines(project.root, DEVICES)
    today = {"when": "2026-11-20"}
    store.write(
        [
            accepted("test_slower", 9.0, why="", **today),
            accepted("test_edited", 9.0, why="now in double precision", **today),
            accepted("test_expired", 1.0, expires="", why="until the new compiler"),
            accepted("test_renewed", 1.0, expires="2999-01-01", why="no new compiler yet", **today),
        ]
    )
    run = project.run(ci=True)
    failing(run, "test_slower", "REGRESSED", "without a reason")
    assert run.outcome("test_edited") == run.outcome("test_renewed") == "passed", run.text
    assert "2 accepted" in run.text
    (line,) = (line for line in run.text.splitlines() if line.startswith("  accepted line  test_it.py::test_edited"))
    assert "now in double precision" in line, "which, and why, stands on the terminal"
    failing(run, "test_expired", "UNBASELINED")


def test_a_skipped_test_with_a_baseline(in_ci: Run, on_a_laptop: Run) -> None:
    assert in_ci.outcome("test_skipped") == "skipped"
    failing(in_ci, "skipped", "1 gated test skipped that has an accepted baseline here", "no --run-bench")
    assert "warn  not measured: 1 gated test skipped" in on_a_laptop.text


def test_a_part_of_the_suite_is_asked_only_for_what_it_looked_at(project: Project) -> None:
    """What ``-m`` leaves out was found; what went from a folder that was named is missed all the same."""
    repository(project)
    Baselines(project.root, DEVICES).write([replace(accepted("test_gone", 1.0), key=CaseKey(nodeid="other/t.py::a"))])
    run = project.run("test_it.py", "-m", "chosen", ci=True)
    assert set(run.tests) == {"test_kept", "dropped"}, run.text
    failing(run, "dropped", "2 accepted cases", "\n  test_it.py::test_gone", "test_it.py::test_sized[2]")
    assert "test_slower" not in run.says("dropped")
    assert "other/t.py" not in run.text
    project.write("test_it.py", "def test_plain(): pass")
    assert project.run("-m", "not chosen", ci=True).outcome("dropped") == "failed", "no gated test is left"


def test_another_device(project: Project) -> None:
    repository(project)
    folder = project.root / "baselines"
    git(project, "checkout", "-q", "-")
    (folder / DEVICE).rename(folder / "host-another-96")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "accepted elsewhere")
    git(project, "checkout", "-qb", "later")
    git(project, "commit", "-qm", "nothing", "--allow-empty")
    away = project.run("-m", "chosen", ci=True)
    failing(away, "test_kept", "UNBASELINED", f"nothing has been accepted for this case on {DEVICE} yet")


def test_a_corrupt_baseline(project: Project) -> None:
    file = next((repository(project).root / "baselines").rglob("*.yaml"))
    file.write_text(file.read_text().replace("time:", "time: [").replace("1", "x"))
    run = project.run(ci=True)
    assert run.code == 4, run.text
    assert f"{file.relative_to(project.root).as_posix()}: " in run.text
    assert "[baseline-unreadable]" in run.text
    assert "Traceback" not in run.text


def test_the_last_gated_test_deleted_with_all_baselines(project: Project) -> None:
    """Nothing that lies here could miss it: the merge base is asked."""
    project.configure(settings=f"devices = {DEVICES!r}")
    project.write("test_gone.py", "def test_gone(perfgate):\n    perfgate.record([1.0] * 30, unit='ms')\n")
    project.write("test_plain.py", "def test_plain():\n    pass\n")
    project.write(".gitignore", ".perfgate/\n__pycache__/\njunit.xml\n")
    line = Baseline(
        key=CaseKey(nodeid="test_gone.py::test_gone"), device=DEVICE, time=1e6, commit="c0ffee1", why="it is so"
    )
    Baselines(project.root, DEVICES).write([line])
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "one"), ("checkout", "-qb", "change")):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=project.root, check=True)
    for words in (("rm", "-qr", "baselines", "test_gone.py"), ("commit", "-qm", "two")):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=project.root, check=True)
    note = "this change edits its own gate\n  removed test  test_gone.py::test_gone\n"
    run = project.run(ci=True, GITHUB_BASE_REF="main")
    assert run.code == 0, run.text
    assert note in run.text
    assert "perfgate" not in project.run().text, "on a laptop nobody is asked"
    workers = project.run("-n", "1", ci=True, GITHUB_BASE_REF="main")
    assert note in workers.text
