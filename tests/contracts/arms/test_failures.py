"""What goes wrong with revisions and builds, and what is said then."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from pytest_perfgate.adapters.arms.store import ArmStore
from pytest_perfgate.model.verdict import ArmSettings
from tests.contracts.arms.made import failure
from tests.layouts import commit, git


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
    error = failure(repo, ArmSettings(mode="overlay"))
    assert (error.code.name, error.mend) == ("arm-no-project", error.code.mend)
    (repo / "deep" / "one").mkdir(parents=True)
    (repo / "deep" / "one" / "setup.py").write_text("")
    (repo / "deep" / "one" / "one.py").write_text("SPEED = 1")
    (repo / "k.py").unlink()
    commit(repo, "the package lies deeper")
    for mode in ("overlay", "auto"):
        error = failure(repo, ArmSettings(mode=mode))
        assert error.code.name == "arm-no-project"
        assert error.mend.startswith('set projects = ["deep/one"]')
    assert ArmStore(repo, ArmSettings(packages=("found_otherwise",))).prepare("base", "HEAD").mode == "worktree"


def test_a_command_builds_what_pip_cannot(repo: Path) -> None:
    arm = ArmStore(repo, ArmSettings(mode="overlay", build=("cp {source}/k.py {site}/k.py",))).prepare("base", "HEAD")
    assert arm.modules == ("k",)
    said = subprocess.run(
        [arm.python, "-c", "import sys; del sys.path[0]; import k; print(k.__file__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == str(Path(arm.root) / "k.py")


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


def test_a_project_can_have_a_command_of_its_own_and_its_folder_must_be_there(repo: Path) -> None:
    for name in ("one", "two"):
        (repo / name).mkdir()
        (repo / name / f"{name}.py").write_text("SPEED = 1\n")
    commit(repo, "two packages")
    builds = tuple((name, f"cp {{source}}/{name}.py {{site}}/{name}.py") for name in ("one", "two"))
    settings = ArmSettings(projects=("one", "two"), builds=builds)
    arm = ArmStore(repo, settings).prepare("base", "HEAD")
    assert (arm.mode, arm.modules) == ("overlay", ("one", "two"))
    only = ArmStore(repo, ArmSettings(projects=("one", "two"), builds=builds, packages=("two",)))
    assert only.prepare("base", "HEAD").modules == ("two",)
    gone = failure(repo, settings, "HEAD~1")
    assert gone.code.name == "arm-no-project"
    assert gone.what.startswith("the base arm (HEAD~1, ")
    assert gone.what.endswith("): the revision has no folder 'one'")


def test_projects_are_named_from_the_root_that_pytest_has(repo: Path) -> None:
    """A monorepo in which pytest runs in one package's folder."""
    (repo / "deep").mkdir()
    (repo / "deep" / "inner.py").write_text("SPEED = 1\n")
    commit(repo, "a package further down")
    built = ArmStore(repo / "deep", ArmSettings(mode="overlay", build=("cp {source}/inner.py {site}/inner.py",)))
    assert built.prepare("base", "HEAD").modules == ("inner",)
    checkout = ArmStore(repo / "deep", ArmSettings(mode="worktree")).prepare("base", "HEAD")
    assert checkout.cwd.endswith("tree/deep")
    assert checkout.modules == ("inner",)
    both = ArmStore(repo, ArmSettings(mode="worktree", projects=(".", "deep"))).prepare("base", "HEAD")
    assert both.modules == ("inner", "k")
    assert any(part.endswith("tree/deep") for part in dict(both.environment)["PYTHONPATH"].split(":"))


def test_arms_of_the_same_code_have_the_same_content_and_others_have_not(repo: Path) -> None:
    (repo / "README").write_text("words\n")
    commit(repo, "only words")
    build = ArmSettings(mode="overlay", build=("cp {source}/k.py {site}/k.py",))
    store = ArmStore(repo, build)
    first, second = store.prepare("base", "HEAD~1"), store.prepare("head", "HEAD")
    assert first.digest != second.digest
    assert first.content == second.content != ""
    (repo / "k.py").write_text("SPEED = 2\n")
    assert store.prepare("head", "").content != first.content


def test_what_a_killed_run_leaves_is_listed(repo: Path) -> None:
    settings = ArmSettings(mode="worktree")
    arm = ArmStore(repo, settings).prepare("base", "HEAD")
    rounds = repo / ".perfgate" / "rounds"
    rounds.mkdir()
    (rounds / "a-b.bin").write_bytes(b"[]")
    (waiting,) = ArmStore(repo, settings).leftovers()
    assert (waiting.path, waiting.mend) == (str(rounds / "a-b.bin"), f"rm '{rounds / 'a-b.bin'}'")
    (rounds / "a-b.bin").unlink()
    shutil.rmtree(repo / ".perfgate")
    (lost,) = ArmStore(repo, settings).leftovers()
    assert lost.path == str(Path(arm.cwd))
    subprocess.run(lost.mend, shell=True, cwd=repo, check=True)
    assert ArmStore(repo, settings).leftovers() == ()
