from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.app.doctor import Level, Remark
from pytest_perfgate.cli.dispatch import Project
from pytest_perfgate.cli.doctor import DRIVER, baselines, build_faults, leftovers, merging, record
from pytest_perfgate.model.errors import PerfgateError
from tests.cli.conftest import Place
from tests.reports import baseline


def git(root: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    identity = ["-c", "user.name=A", "-c", "user.email=a@b.invalid", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *identity, *words], cwd=root, check=check, capture_output=True, text=True)


def finding_of(place: Place) -> Remark:
    """What the doctor says of merging."""
    (finding,) = merging(SimpleNamespace(root=place.root, config=SimpleNamespace(baselines="baselines")))
    return finding


def test_the_attribute_names_the_folder_of_the_settings_and_is_one_that_git_reads(place: Place) -> None:
    git(place.root, "init", "-q")
    for folder in ("perf/lines", "perf lines"):
        (place.root / folder).mkdir(parents=True)
        project = SimpleNamespace(root=place.root, config=SimpleNamespace(baselines=folder))
        (before,) = merging(project)
        subprocess.run(before.fix.partition("; ")[0], shell=True, cwd=place.root, check=True)
        (after,) = merging(project)
        assert "lacks" in after.what, "git asks for the driver, which this clone has not"


def test_a_run_that_could_not_write_its_record_is_one_that_ran(place: Place) -> None:
    project = Project(argparse.Namespace(root=str(place.root)))
    assert "no run has left" in next(record(project)).what
    older = place.root / ".perfgate" / "records" / "older.json"
    older.parent.mkdir(parents=True, exist_ok=True)
    older.write_text("{}")
    assert "could not write" in next(record(project)).what


def test_a_command_that_removes_a_leftover_names_that_file_alone(place: Place) -> None:
    left = place.root / ".perfgate" / ".a b$(id).yaml.new"
    left.parent.mkdir(exist_ok=True)
    left.write_text("")
    os.utime(left, (0, 0))
    (finding,) = leftovers(Project(argparse.Namespace(root=str(place.root))))
    assert shlex.split(finding.fix) == ["rm", ".perfgate/.a b$(id).yaml.new"]


def test_a_clone_that_no_run_was_in_has_nothing_to_ignore(place: Place) -> None:
    git(place.root, "init", "-q")
    project = Project(argparse.Namespace(root=str(place.root)))
    (place.root / ".gitignore").unlink(missing_ok=True)
    folder = place.root / ".perfgate"
    assert [folder.is_dir(), *leftovers(project)] == [False]
    folder.mkdir()
    assert [one.fix for one in leftovers(project)] == ["echo .perfgate/ >> .gitignore"]


def test_a_source_distribution_of_hatchling_takes_the_folder_unless_the_project_ignores_it(place: Place) -> None:
    project = Project(argparse.Namespace(root=str(place.root)))
    settings = place.root / "pyproject.toml"
    settings.write_text(settings.read_text() + '[build-system]\nbuild-backend = "hatchling.build"\n')
    assert [fault["fix"] for fault in build_faults(project)] == ["echo .perfgate/ >> .gitignore"]
    with_table = f"{settings.read_text()}[tool.hatch.build.targets.sdist]\n"
    for rule, faults in {'exclude = ["docs"]': 1, 'only-include = ["src"]': 0}.items():
        settings.write_text(f"{with_table}{rule}\n")
        assert len(list(build_faults(project))) == faults
    settings.write_text(with_table)
    (place.root / ".gitignore").write_text(".perfgate/\n")
    assert not list(build_faults(project))


@pytest.fixture
def project(place: Place) -> Place:
    git(place.root, "init", "-q")
    code = "import sys; from pytest_perfgate.cli import main; sys.exit(main(sys.argv[1:]))"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"
    place.baselines.write([baseline("test_a", 1e6), baseline("test_m", 1e6), baseline("test_z", 1e6)])
    assert finding_of(place).fix.startswith("echo 'baselines/**/*.yaml merge=perfgate'")
    (place.root / ".gitattributes").write_text("baselines/**/*.yaml merge=perfgate\n")
    assert "this clone's git config lacks" in finding_of(place).what
    git(place.root, "config", "merge.perfgate.driver", f"{command} merge-driver %O %A %B %P")
    assert "does not start" in finding_of(place).what
    git(place.root, "config", "merge.perfgate.driver", DRIVER.replace("perfgate", command, 1))
    assert finding_of(place).level is Level.GOOD
    git(place.root, "add", ".")
    git(place.root, "commit", "-qm", "one")
    return place


def branches(place: Place, theirs: list, ours: list) -> subprocess.CompletedProcess[str]:
    git(place.root, "checkout", "-qb", "theirs")
    place.baselines.write(theirs)
    git(place.root, "commit", "-qam", "theirs")
    git(place.root, "checkout", "-q", "main")
    place.baselines.write(ours)
    git(place.root, "commit", "-qam", "ours")
    return git(place.root, "merge", "theirs", "-m", "both", check=False)


def test_both_sides_accept_beside_each_other(project: Place) -> None:
    done = branches(
        project, [baseline("test_b", 2e6), baseline("test_m", 3e6)], [baseline("test_c", 4e6), baseline("test_a", 5e6)]
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.times() == {"test_a": 5e6, "test_b": 2e6, "test_c": 4e6, "test_m": 3e6, "test_z": 1e6}


def test_the_same_case_twice_is_a_conflict_of_one_line(project: Place) -> None:
    done = branches(project, [baseline("test_m", 2e6), baseline("test_b", 1e6)], [baseline("test_m", 3e6)])
    assert done.returncode == 1
    text = project.baselines.path("NVIDIA-H200", "tests/test_k.py").read_text()
    assert text.count("<<<<<<<") == 1
    assert text.count("'test_m'") == 2
    assert text.count("'test_b'") == 1
    with pytest.raises(PerfgateError, match="baseline-conflict"):
        project.times()
    assert "test_k.py.yaml: test_m: ours and theirs accepted it differently" in done.stdout + done.stderr


def test_a_side_that_does_not_read_is_no_merge(place: Place) -> None:
    place.baselines.write([baseline("test_a", 1e6)])
    good = place.baselines.path("NVIDIA-H200", "tests/test_k.py")
    bad = place.root / "bad"
    bad.write_text("perfgate: 1\nbaselines:\n  'a': {time: 1us")
    before = good.read_text()
    done = place.perfgate("merge-driver", good, good, bad, "b.yaml")
    assert (done.code, "both sides between markers" in done.err) == (11, True)
    assert good.read_text() == f"<<<<<<< ours\n{before}=======\n{bad.read_text()}\n>>>>>>> theirs\n"


@pytest.mark.parametrize(
    "driver",
    [DRIVER.replace("perfgate ", "perfgate-is-not-here ", 1), DRIVER.replace("perfgate merge-driver", "false")],
)
def test_where_the_driver_does_not_start_both_sides_stand_between_markers(project: Place, driver: str) -> None:
    git(project.root, "config", "merge.perfgate.driver", driver)
    done = branches(project, [baseline("test_m", 2e6)], [baseline("test_m", 3e6)])
    assert done.returncode == 1
    text = project.baselines.path("NVIDIA-H200", "tests/test_k.py").read_text()
    assert (text.count("<<<<<<<"), text.count("'test_m'")) == (1, 2)


def test_the_doctor_says_whether_lines_are_in_the_last_commit(place: Place) -> None:
    def whereabouts() -> tuple[Level, str]:
        options = SimpleNamespace(root=str(place.root))
        finding = next(one for one in baselines(Project(options)) if one.what.startswith("NVIDIA-H200"))
        return finding.level, finding.what.partition("cases, ")[2]

    place.baselines.write([baseline("test_a", 1e6), baseline("test_m", 1e6)])
    assert whereabouts() == (Level.GOOD, "not committed: there is no git repository here")
    git(place.root, "init", "-q")
    git(place.root, "add", ".")
    assert whereabouts() == (Level.NOTE, "not committed: there is no commit yet")
    git(place.root, "commit", "-qm", "one", "--", "pyproject.toml")
    assert whereabouts() == (Level.NOTE, "not committed: the file is not in the last commit as here")
    git(place.root, "commit", "-qam", "two")
    assert whereabouts() == (Level.GOOD, "committed")
    place.baselines.write([baseline("test_m", 2e6)])
    assert whereabouts()[0] is Level.NOTE
    for file in (place.root / "baselines").rglob("*.yaml"):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    git(place.root, "commit", "-qam", "three")
    assert whereabouts() == (Level.GOOD, "committed"), "with the line ends of Windows"
