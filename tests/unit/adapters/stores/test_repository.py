"""Tests of adapters/stores/repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores import repository
from pytest_perfgate.adapters.stores.repository import GitRepository
from pytest_perfgate.model.errors import PerfgateError

LINES = "perfgate: 1\nbaselines:\n  'test_a': {time: 1us}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one commit, in a folder below its top."""
    (tmp_path / "bench").mkdir()
    (tmp_path / ".gitignore").write_text("made_*.py\n")
    (tmp_path / "bench" / "k.py").write_text("A = 1\n")
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "one")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path / "bench"


def test_a_commit_holds_its_files(project: Path) -> None:
    assert not GitRepository(project).dirty()
    (project / "k.py").write_text("A = 2\n")
    assert GitRepository(project).dirty()


def test_a_file_of_a_commit_is_asked_for_once_and_one_of_a_branch_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    ask = repository.ask_git
    monkeypatch.setattr(repository, "ask_git", lambda *words, **more: (calls.append(words[1]), ask(*words, **more))[1])
    there = GitRepository(project)
    commit = there.head()
    assert [there.show(commit, path) for path in ("k.py", "k.py", "none.py", "none.py")] == ["A = 1\n"] * 2 + [None] * 2
    assert calls.count("show") == 2
    (project / "k.py").write_text("A = 2\n")
    assert there.show("HEAD", "k.py") == "A = 1\n"
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "2"], cwd=project, check=True)
    assert there.show("HEAD", "k.py") == "A = 2\n"
    with pytest.raises(PerfgateError) as error:
        there.show("0" * 40, "k.py")
    assert error.value.code.name == "repository-missing"


def test_a_file_that_git_has_and_cannot_read_is_not_absent(project: Path) -> None:
    """In a partial clone without its remote, the accepted lines of before were none, and the change's own judged."""
    blob = subprocess.run(["git", "rev-parse", "HEAD:./k.py"], cwd=project, check=True, capture_output=True, text=True)
    (project.parent / ".git" / "objects" / blob.stdout[:2] / blob.stdout[2:].strip()).unlink()
    with pytest.raises(PerfgateError) as error:
        GitRepository(project).show("HEAD", "k.py")
    assert (error.value.code.name, "clone without --filter" in error.value.fix) == ("repository-missing", True)


@pytest.mark.parametrize("name", ["test_k.py", "deep/below/kernel.cu", "pyproject.toml"])
def test_code_that_git_was_never_given_is_not_in_the_commit(project: Path, name: str) -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text("")
    assert GitRepository(project).dirty()


@pytest.mark.parametrize(
    "name",
    [
        "made_here.py",
        "junit.xml",
        "baselines/host/test_k.py.yaml",
        ".perfgate/arms/k.py",
        "__pycache__/k.cpython-311.pyc",
        "env/lib/site-packages/numpy.py",
    ],
)
def test_what_a_run_leaves_behind_is_no_work(project: Path, name: str) -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_text("")
    assert not GitRepository(project).dirty()


def test_python_files_with_a_word_that_are_other_here_than_in_a_revision(project: Path) -> None:
    repository = GitRepository(project)
    head = repository.head()
    assert repository.touched(head, ["A ="]) == {}
    (project / "k.py").write_text("B = 1\n")
    (project / "ä b.py").write_text("A = 1\n")
    (project / "plain.py").write_text("B = 1\n")
    (project / "k.txt").write_text("A = 1\n")
    (project.parent / "outside.py").write_text("A = 1\n")
    both = {"k.py": ("A = 1\n", "B = 1\n"), "ä b.py": (None, "A = 1\n")}
    assert repository.touched(head, ["A =", "C ="]) == both
    (project / "k.py").unlink()
    assert repository.touched(head, ["A ="]) == {**both, "k.py": ("A = 1\n", None)}
    assert repository.touched(head, ["C ="]) == {}
    assert repository.touched("gone", ["A ="]) is None


def test_the_same_changes_have_one_digest_whatever_lies_about(project: Path) -> None:
    repository = GitRepository(project)
    assert repository.changes() == ""
    (project / "k.py").write_text("A = 2\n")
    one = repository.changes()
    (project / "record.json").write_text("{}")
    (project / "junit.xml").write_text("<x/>")
    assert repository.changes() == one != ""
    (project / "new.py").write_text("B = 1\n")
    two = repository.changes()
    (project / "new.py").write_text("B = 2\n")
    assert len({one, two, repository.changes()}) == 3


@pytest.mark.parametrize("data", ["sizes: {}\n", "perfgate: 1\nsizes: {}\nbaselines:\n"])
def test_data_beside_the_accepted_lines_is_not_one_of_them(project: Path, data: str) -> None:
    lines, other = (project / "baselines" / "host" / name for name in ("t.py.yaml", "n.yaml"))
    lines.parent.mkdir(parents=True)
    lines.write_text(LINES)
    other.write_text(data.format(1))
    git(project, "add", ".")
    git(project, "commit", "-qm", "two")
    repository = GitRepository(project)
    lines.write_text(LINES.replace("1us", "2us"))
    assert (repository.dirty(), repository.changes()) == (False, "")
    assert repository.pages_alone("HEAD", "baselines") == ("bench/baselines/host/t.py.yaml",)
    other.write_text(data.format(2))
    assert repository.dirty()
    assert repository.changes()
    assert repository.pages_alone("HEAD", "baselines") is None
    other.write_text(LINES)
    assert repository.dirty(), "data that becomes a line is read by what was there"


def test_a_file_that_git_shows_nothing_of_is_named(project: Path) -> None:
    repository = GitRepository(project)
    assert repository.untracked("baselines") == ()
    for name in ("baselines/host/t.py.yaml", "baselines/n.json", "n.txt", "README.md", "made_n.py", ".perfgate/n.txt"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(LINES)
    assert repository.untracked("baselines") == ("baselines/n.json", "n.txt")
    git(project, "add", "n.txt")
    assert repository.untracked("baselines/") == ("baselines/n.json",)
    assert repository.dirty()


def test_without_git_nothing_is_said(tmp_path: Path) -> None:
    assert not GitRepository(tmp_path).dirty()


def test_a_tree_that_git_cannot_compare_is_not_called_clean(project: Path) -> None:
    (project.parent / ".git" / "index").write_bytes(b"DIRC, and no index")
    assert GitRepository(project).head()
    assert GitRepository(project).dirty()


def test_what_a_squash_left_behind_is_found_by_the_commit_that_brought_its_line(project: Path) -> None:
    def commit(subject: str) -> str:
        git("add", ".")
        git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", subject)
        return GitRepository(project).head()

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=project, check=True)

    file = project / "baselines" / "host" / "tests" / "test_k.py.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("'a': {commit: 81a158630d7b}\n")
    brought = commit("squashed")
    file.write_text("'b': {commit: 81a158630d7b}\n'a': {commit: 81a158630d7b}\n")
    repository, last = GitRepository(project), commit("another line")
    assert repository.missing([last[:12], "81a158630d7b", "nowhere"]) == {"81a158630d7b", "nowhere"}
    assert repository.missing([]) == frozenset()
    assert repository.brought("81a158630d7b", "baselines") == brought
    assert repository.brought("0000000", "baselines") == ""
    assert repository.files("HEAD", "baselines/host") == ("baselines/host/tests/test_k.py.yaml",)
    assert repository.files("HEAD", "nowhere") == repository.files("nowhere", "baselines") == ()
    assert repository.brought("81a158630d7b", "baselines", f"{brought}^") == "", "the change itself brought it"
    git("clone", "-q", "--depth", "1", f"file://{project.parent}", "shallow")
    assert GitRepository(project / "shallow" / "bench").brought("81a158630d7b", "baselines") == "", (
        "its end is no origin"
    )


def test_what_changed_since_a_revision_is_what_git_knows(project: Path) -> None:
    (project / "k.py").write_text("A = 2\n")
    (project / "junit.xml").write_text("")
    assert GitRepository(project).changed("HEAD") == ("k.py",)
    assert GitRepository(project).changed("nowhere") == ()


@pytest.mark.parametrize(
    ("files", "alone"),
    [
        ({}, ()),
        ({"../README.md": "more\n", "docs/a.PNG": ""}, ("README.md", "bench/docs/a.PNG")),
        ({"baselines/host/t.py.yaml": LINES}, ("bench/baselines/host/t.py.yaml",)),
        ({"baselines/host/t.py.yaml": f"{LINES}sizes: 3\n"}, None),
        ({"baselines/host/sizes.yaml": "sizes: 3\n"}, None),
        ({"baselines/n.json": "3\n"}, None),
        ({"baselines/host/environments/0123456789.json": "3\n"}, None),
        ({"baselines/host/ceilings.json": '{"device": "host"}'}, ("bench/baselines/host/ceilings.json",)),
        ({"README.md": "", "junit.xml": None}, ("bench/README.md",)),
        ({"README.md": "", "k.py": "A = 2\n"}, None),
        ({"README.md": "", "../other/kernel.cu": ""}, None),
        ({"README.md": "", "../new.py": None}, None),
        ({"README.md": "", "sizes.csv": ""}, None),
        (
            {"README.txt": "", "../docs/use.txt": "", "LICENSE": ""},
            ("bench/LICENSE", "bench/README.txt", "docs/use.txt"),
        ),
        ({"README.md": "", "requirements.txt": ""}, None),
        ({"CMakeLists.txt": ""}, None),
        ({"data/sizes.txt": ""}, None),
        ({"docs/sizes.txt": ""}, None),
        ({"../docs/api/CMakeLists.txt": ""}, None),
        ({"../docs/requirements-dev.txt": ""}, None),
        ({"license_key.txt": ""}, None),
        ({"../.github/workflows/ci.yml": ""}, None),
        ({"pyproject.toml": "[tool.perfgate]\n"}, None),
        ({"other/baselines/notes.yaml": ""}, None),
    ],
)
def test_a_change_of_pages_alone_is_told_from_one_that_code_may_read(
    project: Path, files: dict[str, str | None], alone: tuple[str, ...] | None
) -> None:
    """What is None was never given to git."""
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text or "")
    if named := [name for name, text in files.items() if text is not None]:
        git(project, "add", "-f", *named)
    pages_alone = GitRepository(project).pages_alone("HEAD", "baselines")
    assert pages_alone == alone
    assert GitRepository(project).pages_alone("nowhere", "baselines") is None


@pytest.mark.parametrize("ignored", ["all", "dirty", "untracked"])
def test_a_submodule_whose_changes_git_is_told_to_ignore_is_code(tmp_path: Path, ignored: str) -> None:
    other, project = tmp_path / "other", tmp_path / "project"
    for folder in (other, project):
        folder.mkdir()
        git(folder, "init", "-q")
    (other / "dep.py").write_text("A = 1\n")
    git(other, "add", ".")
    git(other, "commit", "-qm", "one")
    git(project, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "vend")
    git(project, "config", "-f", ".gitmodules", "submodule.vend.ignore", ignored)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "one")
    repository = GitRepository(project)
    assert (repository.dirty(), repository.changes(), repository.pages_alone("HEAD", "baselines")) == (False, "", ())
    digests = set()
    for text in ("A = 2\n", "A = 3\n"):
        (project / "vend" / "dep.py").write_text(text)
        assert repository.dirty()
        assert repository.changed("HEAD") == ("vend",)
        assert repository.pages_alone("HEAD", "baselines") is None
        digests.add(repository.changes())
    assert len(digests) == 2
    git(project / "vend", "commit", "-qam", "two")
    git(project, "add", "-f", "vend")
    git(project, "commit", "-qm", "two")
    assert repository.changed("HEAD~1") == ("vend",)
    assert repository.pages_alone("HEAD~1", "baselines") is None
    assert not repository.dirty()


@pytest.mark.parametrize(
    ("file", "read"),
    [("reads.sh", True), ("bench/kernel.cu", True), ("setup.py", False), (".hooks/check.sh", False), ("b.rst", False)],
)
def test_a_page_of_a_kind_that_code_speaks_of_may_be_read(project: Path, file: str, read: bool) -> None:
    (project.parent / file).parent.mkdir(exist_ok=True)
    (project.parent / file).write_text("cat prompts.MD\n")
    git(project, "add", "-A", ":/")
    git(project, "commit", "-qm", "two")
    (project / "README.md").write_text("more\n")
    git(project, "add", "README.md")
    assert (GitRepository(project).pages_alone("HEAD", "baselines") is None) is read


@pytest.mark.parametrize(
    ("file", "read"),
    [("tests/a/b.png", True), ("data/a.md", True), ("images/a.png", False), ("tests/a/README.md", False)],
)
def test_a_page_among_tests_and_data_may_be_read_without_its_ending(project: Path, file: str, read: bool) -> None:
    (project.parent / file).parent.mkdir(parents=True)
    (project.parent / file).write_text("1")
    git(project, "add", "-A", ":/")
    git(project, "commit", "-qm", "two")
    (project.parent / file).write_text("2")
    assert (GitRepository(project).pages_alone("HEAD", "baselines") is None) is read


@pytest.mark.parametrize(
    ("page", "text", "read"),
    [("README.txt", "open('sizes.TXT')", True), ("README.txt", "open('x.md')", False),
     ("NOTICE", "Path('Notice').read_text()", True), ("NOTICE", "open('README.md')", False)],
)  # fmt: skip
def test_a_text_that_code_may_open_is_no_page(project: Path, page: str, text: str, read: bool) -> None:
    (project / "tool.py").write_text(text)
    git(project, "add", "-A", ":/")
    git(project, "commit", "-qm", "two")
    (project / page).write_text("more\n")
    git(project, "add", page)
    assert (GitRepository(project).pages_alone("HEAD", "baselines") is None) is read


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


@pytest.mark.parametrize(
    "setting",
    ["color.ui always", "color.grep always", "diff.relative true", "submodule.recurse true", "grep.fullName true"],
)
def test_the_settings_of_a_user_do_not_change_what_differs(project: Path, setting: str) -> None:
    subprocess.run(["git", "config", *setting.split()], cwd=project, check=True)
    (project / "k.py").write_text("A = 2  # perfgate\n")
    assert GitRepository(project).touched("HEAD", ["perfgate"]) == {"k.py": ("A = 1\n", "A = 2  # perfgate\n")}
    (project / "k.py").write_text("A = 1\n")
    (project.parent / "above.py").write_text("B = 1\n")
    subprocess.run(["git", "add", "-A"], cwd=project.parent, check=True)
    assert GitRepository(project).pages_alone("HEAD", "baselines") is None


@pytest.mark.parametrize("name", [" first.py", "k\udcff.py", "two\nlines.py"])
def test_code_of_any_name_is_part_of_the_changes(project: Path, name: str) -> None:
    digests = []
    for text in ("A = 1\n", "A = 2\n"):
        (project / name).write_text(text)
        digests.append(GitRepository(project).changes())
    assert len({*digests, ""}) == 3


def test_a_path_keeps_its_blanks(project: Path) -> None:
    (project / " first.py").write_text("")
    assert GitRepository(project).untracked("baselines") == (" first.py",)


def test_only_a_shallow_clone_can_be_deepened(project: Path) -> None:
    with pytest.raises(PerfgateError) as error:
        GitRepository(project).show("0" * 40, "k.py")
    assert "unshallow" not in error.value.fix
    shallow = project.parent / ".git" / "shallow"
    shallow.write_text(GitRepository(project).head() + "\n")
    with pytest.raises(PerfgateError) as error:
        GitRepository(project).show("0" * 40, "k.py")
    assert error.value.fix == "git fetch --unshallow"


def test_the_author_is_the_one_that_git_would_write(project: Path) -> None:
    subprocess.run(["git", "config", "user.name", "config"], cwd=project, check=True)
    assert GitRepository(project, {}).author() == "config"
    assert GitRepository(project, {"GIT_AUTHOR_NAME": "variable"}).author() == "variable"
