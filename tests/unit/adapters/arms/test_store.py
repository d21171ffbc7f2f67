"""Tests of adapters/arms/store."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_perfgate.adapters.arms.build import explained
from pytest_perfgate.adapters.arms.store import READY, ArmStore, remove_unused
from pytest_perfgate.adapters.system.files import exclusive
from pytest_perfgate.adapters.system.git import Git, ending
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.verdict import ArmSettings
from tests.layouts import commit, git
from tests.unit.adapters.arms.failing import failure


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


LOAD = """
import ctypes, sys
from pytest_perfgate.adapters.arms.overlay import loaded_modules
ctypes.CDLL(sys.argv[1])
print(*(file for file, _ in loaded_modules(["libk"])))
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no cc to build a library with")
@pytest.mark.parametrize("mode", ["auto", "worktree"])
def test_a_library_that_commands_build_in_the_checkout_is_loaded_from_there(repo: Path, mode: str) -> None:
    (repo / "k.py").unlink()
    (repo / "k.c").write_text("int k(void) { return 1; }\n")
    commit(repo, "a library alone")
    build = ("mkdir -p out", "cc -shared -fPIC -o out/libk.so k.c")
    arm = ArmStore(repo, ArmSettings(mode=mode, build=build)).prepare("base", "HEAD")
    assert (arm.mode, arm.modules) == ("worktree", ("libk",))
    own = Path(arm.root) / "out" / "libk.so"
    foreign = str(shutil.copy(own, repo / "libk.so"))
    for file in (str(own), foreign):
        done = subprocess.run([arm.python, "-c", LOAD, file], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [file], (
            "with its own file, and with one from elsewhere, which foreign_modules names"
        )


def test_commands_that_install_make_an_overlay(repo: Path) -> None:
    for line, mode in (("cp k.py {site}/k.py", "overlay"), ("true", "worktree")):
        assert ArmStore(repo, ArmSettings(build=(line,))).prepare("base", "HEAD").mode == mode
        own = ArmSettings(builds=((".", line),))
        assert ArmStore(repo, own).prepare("base", "HEAD").mode == mode


@pytest.mark.parametrize("text", ["", '{"python": "x', "[]", '{"python": "x"}', "[" * 10**6, "python"])
def test_an_arm_whose_facts_do_not_read_is_built_again(repo: Path, text: str) -> None:
    store = ArmStore(repo, ArmSettings(mode="worktree"))
    first = store.prepare("base", "HEAD")
    file = repo / ".perfgate" / "arms" / first.digest / READY
    file.write_text(json.dumps({**json.loads(file.read_text()), text: ["x"]}) if text == "python" else text)
    again, then = store.prepare("base", "HEAD"), store.prepare("base", "HEAD")
    assert (again.reused, then.reused) == (False, True)
    assert again.modules == then.modules == first.modules


def test_each_build_is_announced_before_it_starts_and_a_reused_arm_is_not(repo: Path) -> None:
    store, lines = ArmStore(repo, ArmSettings(mode="overlay", build=("false",))), list[str]()
    store.tell = lines.append
    with pytest.raises(PerfgateError) as error:
        store.prepare("base", "HEAD")
    assert error.value.code.name == "arm-build-failed"
    assert [line.partition(" (HEAD, ")[0] for line in lines] == ["making the base build"]
    store = ArmStore(repo, ArmSettings(mode="worktree"))
    store.tell = lines.append
    assert [store.prepare("head", "").reused for _ in range(2)] == [False, True]
    assert len(lines) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="the file system refuses such a name")
def test_a_folder_whose_name_is_not_utf_8_says_that_it_has_to_move(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / "k.py").write_text("SPEED = 1\n")
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "one")
    error = failure(folder, ArmSettings(mode="worktree"))
    assert (error.code.name, "UTF-8" in error.fix) == ("arm-not-made", True)


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
    (rounds / "it's.bin").write_bytes(b"[]")
    (waiting,) = ArmStore(repo, settings).leftovers()
    assert waiting.path == str(rounds / "it's.bin")
    subprocess.run(waiting.fix, shell=True, check=True)
    assert list(rounds.iterdir()) == []
    shutil.rmtree(repo / ".perfgate")
    (lost,) = ArmStore(repo, settings).leftovers()
    assert lost.path == str(Path(arm.cwd))
    subprocess.run(lost.fix, shell=True, cwd=repo, check=True)
    assert ArmStore(repo, settings).leftovers() == ()


COPY = ArmSettings(mode="overlay", build=("cp {source}/k.py {site}/k.py",))
DEEP = ArmSettings(mode="overlay", build=("cp {source}/deep/deep.py {site}/deep.py",))


def code_of(store: ArmStore, revision: str, name: str = "k.py") -> str:
    """What an arm has in a module."""
    return (Path(store.prepare("base", revision).root) / name).read_text()


def test_a_program_of_the_package_is_that_of_its_arm(repo: Path) -> None:
    program = ("mkdir {site}/bin", "cp {source}/k.py {site}/bin/tool", "cp {source}/k.py {site}/bin/python")
    arm = ArmStore(repo, ArmSettings(mode="overlay", build=(*COPY.build, *program))).prepare("base", "HEAD")
    assert (Path(arm.root) / "bin" / "tool").samefile(Path(arm.python).with_name("tool"))
    assert Path(arm.python).with_name("python").samefile(sys.executable), "no program replaces the interpreter"
    assert dict(arm.environment)["PATH"].split(os.pathsep)[0] == str(Path(arm.root) / "bin")


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError) as caught:
        ArmStore(tmp_path, ArmSettings())
    assert caught.value.code.name == "no-repository"


def test_a_refusal_of_git_shows_the_cause_that_it_prints_first() -> None:
    lines = ("error: unable to create temporary file: Read-only file system", "error: .gitattributes: failed to insert",
             "error: unable to index file '.gitattributes'", "fatal: updating files failed")  # fmt: skip
    assert ending("\n".join(lines)) == " / ".join(lines)


def test_git_is_told_nothing_of_what_a_run_that_is_cut_short_leaves(repo: Path) -> None:
    (repo / ".gitignore").unlink()
    commit(repo, "nothing is ignored")
    ArmStore(repo, COPY).prepare("base", "HEAD")
    assert git(repo, "status", "--porcelain") == ""
    (repo / ".perfgate" / ".gitignore").write_text("mine\n")
    ArmStore(repo, COPY).prepare("head", "HEAD")
    assert (repo / ".perfgate" / ".gitignore").read_text() == "mine\n", "whoever wrote it has a reason"


def test_a_checkout_with_letters_that_the_locale_does_not_have(tmp_path: Path) -> None:
    folder = tmp_path / "päth ✓"
    folder.mkdir()
    (folder / "k.py").write_text("SPEED = 1\n")
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "one")
    script = (
        "from pathlib import Path; from pytest_perfgate.adapters.arms.store import ArmStore;"
        "from pytest_perfgate.model.verdict import ArmSettings;"
        "print(Path(ArmStore(Path.cwd(), ArmSettings(mode='worktree')).prepare('base', 'HEAD').root, 'k.py').read_text())"
    )
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder, env={**os.environ, **plain}, capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "SPEED = 1", done.stderr


def test_a_shallow_clone_is_named(repo: Path, tmp_path: Path) -> None:
    (repo / "k.py").write_text("SPEED = 2\n")
    git(repo, "commit", "-qam", "two")
    first = git(repo, "rev-parse", "HEAD~1").strip()
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repo}", "shallow")
    error = failure(tmp_path / "shallow", ArmSettings(), first)
    assert error.code.name == "revision-shallow"
    assert "--unshallow" in error.fix


def test_a_name_that_is_not_here_says_what_fetches_it(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(repo), "clone")
    clone = tmp_path / "clone"
    git(repo, "branch", "release")
    assert failure(clone, ArmSettings(), "origin/release").fix == "git fetch origin release"
    assert failure(clone, ArmSettings(), "v2").fix.startswith("git fetch origin v2, then name FETCH_HEAD")
    assert "fetch" not in failure(clone, ArmSettings(), "81a158630d7b").fix, "no server is asked for half a hash"
    git(clone, "fetch", "-q", "origin", "release")
    assert ArmStore(clone, COPY).prepare("base", "origin/release").modules == ("k",)
    assert failure(clone, ArmSettings(), "release~0").fix == "name the branch of the remote: origin/release~0"
    early = failure(clone, ArmSettings(), "HEAD~7")
    assert early.what == "'HEAD~7' is before the first commit: HEAD has a history of 1"
    (clone / "test_k.py").touch()
    path = failure(clone, ArmSettings(), "test_k.py")
    assert (path.what, path.fix[:14]) == ("'test_k.py' is a file here, not a revision", "name the file ")


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert (failure(tmp_path, ArmSettings()).what, failure(tmp_path, ArmSettings()).fix) == (
        "this repository has no commit",
        "git commit",
    )


def test_what_git_refuses_is_said_in_its_words(repo: Path) -> None:
    (repo / ".git" / "index").write_bytes(b"no index")
    error = failure(repo, ArmSettings(), "")
    assert error.code.name == "git-failed"
    assert "index" in error.what


NEWER = "install git 2.30 or newer; git --version shows yours"


@pytest.mark.parametrize(
    ("answer", "fix"),
    [
        ("git: 'worktree' is not a git command. See 'git --help'.", NEWER),
        ("usage: git worktree add", NEWER),
        ("error: unable to create temporary file: Read-only file system", "make the checkout writable, or copy it"),
    ],
)
def test_an_old_git_is_to_be_replaced_and_a_checkout_to_be_writable(
    repo: Path, monkeypatch: pytest.MonkeyPatch, answer: str, fix: str
) -> None:
    usual = str(shutil.which("git"))
    old = repo.parent / "bin" / "git"
    old.parent.mkdir()
    old.write_text(f'#!/bin/sh\ncase " $* " in *" worktree "*) echo "{answer}" >&2; exit 1;; esac\nexec {usual} "$@"\n')
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(old.parent), prepend=os.pathsep)
    error = failure(repo, ArmSettings(), "HEAD")
    assert (error.code.name, error.fix) == ("git-failed", fix)


def test_annotated_tags_and_hooks_of_the_repository(repo: Path) -> None:
    git(repo, "tag", "-a", "v1", "-m", "first")
    hook = repo / ".git" / "hooks" / "post-checkout"
    hook.write_text('#!/bin/sh\ntouch "$(git rev-parse --git-common-dir)/ran"\n')
    hook.chmod(0o755)
    store = ArmStore(repo, COPY)
    (repo / "k.py").write_text("SPEED = 2\n")
    assert code_of(store, "v1") == "SPEED = 1\n"
    assert code_of(store, "") == "SPEED = 2\n"
    assert not list(repo.rglob("ran"))


def test_what_every_run_changes_is_in_no_snapshot(repo: Path) -> None:
    """Also where git was never told to ignore it."""
    (repo / ".gitignore").unlink()
    commit(repo, "nothing is ignored")
    store = ArmStore(repo, COPY)
    assert store.prepare("base", "HEAD").reused is False
    (repo / "__pycache__").mkdir()
    (repo / "__pycache__" / "k.pyc").write_bytes(b"compiled")
    head = store.prepare("head", "")
    assert (head.dirty, head.reused) == (False, True)


def test_line_ends_that_git_would_change_are_no_reason_to_stop(repo: Path) -> None:
    git(repo, "config", "core.autocrlf", "input")
    git(repo, "config", "core.safecrlf", "true")
    (repo / "k.py").write_bytes(b"SPEED = 2\r\n")
    assert code_of(ArmStore(repo, COPY), "").split() == ["SPEED", "=", "2"]


def with_submodule(repo: Path, tmp_path: Path) -> Path:
    other = tmp_path / "other"
    other.mkdir()
    (other / "deep.py").write_text("SPEED = 7\n")
    git(other, "init", "-q")
    commit(other, "deep")
    git(repo, "submodule", "add", "-q", str(other), "deep")
    commit(repo, "with a submodule")
    return other


def test_submodules_come_from_the_clone_that_is_here(repo: Path, tmp_path: Path) -> None:
    other = with_submodule(repo, tmp_path)
    git(repo, "config", "-f", ".gitmodules", "submodule.deep.url", str(tmp_path / "gone"))
    git(repo, "commit", "-qam", "its server is gone")
    assert ArmStore(repo, DEEP).prepare("base", "HEAD").modules == ("deep",)
    for place in (repo / ".git" / "modules").glob("*"):
        place.rename(tmp_path / "moved away")
    other.rename(tmp_path / "gone for good")
    shutil.rmtree(repo / ".perfgate")
    assert failure(repo, DEEP).code.name == "submodule-missing"


def test_changes_inside_a_submodule_belong_to_the_working_copy(repo: Path, tmp_path: Path) -> None:
    with_submodule(repo, tmp_path)
    (repo / "deep" / "deep.py").write_text("SPEED = 8\n")
    store = ArmStore(repo, DEEP)
    assert code_of(store, "HEAD", "deep.py") == "SPEED = 7\n"
    assert code_of(store, "", "deep.py") == "SPEED = 8\n"
    assert git(repo, "-C", "deep", "status", "--porcelain") == " M deep.py\n"


def test_a_submodule_that_was_never_initialised_is_left_as_it_is(repo: Path, tmp_path: Path) -> None:
    with_submodule(repo, tmp_path)
    git(tmp_path, "clone", "-q", str(repo), "clone")
    assert ArmStore(tmp_path / "clone", COPY).prepare("base", "HEAD").modules == ("k",)
    error = failure(tmp_path / "clone", DEEP)
    assert error.code.name == "arm-build-failed"
    assert error.what.endswith("submodules that are not initialised here were left empty: deep")
    assert error.fix.startswith("git submodule update --init --recursive")
    assert "submodule.deep" not in git(tmp_path / "clone", "config", "--local", "--list")


def test_pointers_of_git_lfs_are_no_contents(repo: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
    (repo / ".gitattributes").write_text("*.bin filter=lfs -text\n")
    (repo / "table.bin").write_text(pointer)
    commit(repo, "a table")
    assert ArmStore(repo, COPY).prepare("base", "HEAD").modules == ("k",)  # nobody has the contents here
    (repo / "table.bin").write_bytes(b"contents.")
    shutil.rmtree(repo / ".perfgate")
    error = failure(repo, COPY)
    assert (error.code.name, error.what.rpartition(": ")[2]) == ("lfs-missing", "table.bin")
    assert len(git(repo, "worktree", "list").splitlines()) == 1


def dead() -> str:
    process = subprocess.Popen(["true"])
    process.wait()
    return str(process.pid)


def test_arms_that_nobody_used_for_a_day_are_removed_beyond_ten(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    home = tmp_path / ".perfgate" / "arms"
    for number in range(14):
        (home / f"arm{number:02}").mkdir(parents=True)
        (home / f"arm{number:02}" / READY).write_text("{}")
        os.utime(home / f"arm{number:02}" / READY, (1e9 + number, 1e9 + number))
    os.utime(home / "arm01" / READY)
    for name, used in (("killed", 1e9), ("failed", None)):
        (home / name).mkdir()
        os.utime(home / name, None if used is None else (used, used))
    (home / "killed.lock").write_text(dead())
    with exclusive(home / "arm02.lock"):
        remove_unused(home, Git(tmp_path))
    remaining = {path.name for path in home.iterdir()}
    assert {f"arm{number:02}" for number in range(14)} - remaining == {"arm00", "arm03", "arm04"}
    assert remaining - {f"arm{number:02}" for number in range(14)} == {"failed"}


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "arm-no-room"),
        (
            PerfgateError("arm-build-failed", "pip: exit 1\n    OSError: [Errno 28] No space left on device"),
            "arm-no-room",
        ),
        (PerfgateError("arm-build-failed", "pip: exit 1"), "arm-build-failed"),
        (PermissionError(errno.EACCES, "no"), "arm-not-made"),
    ],
)
def test_a_full_disk_is_said_to_be_one(tmp_path: Path, fault: Exception, code: str) -> None:
    with pytest.raises(PerfgateError) as caught, explained("the base build", tmp_path / "not yet" / "made"):
        raise fault
    assert caught.value.code.name == code
    assert caught.value.what.startswith("the base build: ")
    assert ("left free" in caught.value.what) == (code == "arm-no-room")
