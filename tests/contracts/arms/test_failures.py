"""What goes wrong with revisions and builds, and what is said then."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_perfgate.adapters.arms.store import ArmStore
from pytest_perfgate.model.arm import ArmSettings
from pytest_perfgate.model.errors import PerfgateError


def git(repo: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "protocol.file.allow=always"]
    return subprocess.run(["git", *identity, *arguments], cwd=repo, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / ".gitignore").write_text(".perfgate/\n")
    (folder / "k.py").write_text("SPEED = 1\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    return folder


def failure(repo: Path, settings: ArmSettings, revision: str = "HEAD") -> PerfgateError:
    with pytest.raises(PerfgateError) as caught:
        ArmStore(repo, settings).prepare("base", revision)
    return caught.value


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError) as caught:
        ArmStore(tmp_path, ArmSettings())
    assert caught.value.code.name == "no-repository"


def test_a_missing_revision_names_the_fetch(repo: Path) -> None:
    error = failure(repo, ArmSettings(), "origin/release")
    assert (error.code.name, error.mend) == ("revision-missing", "git fetch origin release")


def test_a_shallow_clone_is_named(repo: Path, tmp_path: Path) -> None:
    (repo / "k.py").write_text("SPEED = 2\n")
    git(repo, "commit", "-qam", "two")
    first = git(repo, "rev-parse", "HEAD~1").strip()
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repo}", "shallow")
    error = failure(tmp_path / "shallow", ArmSettings(), first)
    assert error.code.name == "revision-shallow"
    assert "--unshallow" in error.mend


def test_a_failed_build_shows_the_tail_of_its_log_and_leaves_no_worktree(repo: Path) -> None:
    settings = ArmSettings(mode="overlay", build=("{python} -c 'print(\"linking\"); raise SystemExit(3)'",))
    error = failure(repo, settings)
    assert error.code.name == "arm-build-failed"
    assert "exit 3" in error.what
    assert "linking" in error.what
    assert error.place.endswith("build.log")
    assert len(git(repo, "worktree", "list").splitlines()) == 1
    left = ArmStore(repo, settings).leftovers()
    assert [item.what for item in left] == ["an arm that was never finished"]


def test_a_missing_builder_is_named(repo: Path) -> None:
    error = failure(repo, ArmSettings(mode="overlay", build=("no-such-builder {source}",)))
    assert "no-such-builder is not installed" in error.what


def test_a_build_that_hangs_is_ended(repo: Path) -> None:
    error = failure(repo, ArmSettings(mode="overlay", build=("sleep 60",), timeout_s=0.2))
    assert "no end after" in error.what


def test_a_build_that_installs_nothing(repo: Path) -> None:
    assert failure(repo, ArmSettings(mode="overlay", build=("{python} -c pass",))).code.name == "arm-empty"


def test_nothing_to_build(repo: Path) -> None:
    assert failure(repo, ArmSettings(mode="overlay")).code.name == "arm-no-project"


def test_a_command_builds_what_pip_cannot(repo: Path) -> None:
    arm = ArmStore(repo, ArmSettings(mode="overlay", build=("cp {source}/k.py {site}/k.py",))).prepare("base", "HEAD")
    assert arm.modules == ("k",)
    said = subprocess.run(
        [arm.python, "-P", "-c", "import k; print(k.__file__)"], capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == str(Path(arm.root) / "k.py")


def test_submodules_come_from_the_clone_that_is_here(repo: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "deep.py").write_text("SPEED = 7\n")
    git(other, "init", "-q")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "deep")
    git(repo, "submodule", "add", "-q", str(other), "deep")
    git(repo, "commit", "-qam", "with a submodule")
    settings = ArmSettings(mode="overlay", build=("cp {source}/deep/deep.py {site}/deep.py",))
    git(repo, "config", "-f", ".gitmodules", "submodule.deep.url", str(tmp_path / "gone"))
    git(repo, "commit", "-qam", "its server is gone")
    assert ArmStore(repo, settings).prepare("base", "HEAD").modules == ("deep",)
    for place in (repo / ".git" / "modules").glob("*"):
        place.rename(tmp_path / "moved away")
    other.rename(tmp_path / "gone for good")
    assert (
        failure(repo, ArmSettings(mode="overlay", build=("cp {source}/deep/deep.py {site}/d.py",))).code.name
        == "submodule-missing"
    )


def test_a_lock_of_a_dead_process_is_taken_over(repo: Path) -> None:
    settings = ArmSettings(mode="worktree")
    arm = ArmStore(repo, settings).prepare("base", "HEAD")
    dead = subprocess.Popen(["true"])
    dead.wait()
    lock = repo / ".perfgate" / "arms" / f"{arm.digest}.lock"
    lock.write_text(str(dead.pid))
    assert [item.what for item in ArmStore(repo, settings).leftovers()] == ["a lock whose owner is gone"]
    assert ArmStore(repo, settings).prepare("base", "HEAD").reused
    assert not lock.exists()
