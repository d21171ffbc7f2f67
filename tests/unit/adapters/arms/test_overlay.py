"""Tests of adapters/arms/overlay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType

import pytest

from pytest_perfgate.adapters.arms.overlay import (
    content_of,
    foreign_libraries,
    from_elsewhere,
    loaded_modules,
    loaded_origin,
    neighbour_modules,
    only_tests,
    parent_folders,
    source_modules,
    sources_of,
)
from pytest_perfgate.adapters.arms.store import ArmStore, discard
from pytest_perfgate.core.judge.against_revision import foreign_modules, same_code
from pytest_perfgate.model.verdict import ArmSettings
from tests.layouts import PLACES, contents, editable, git, make_repo, sources, write

TEST = """
import json, os
from pathlib import Path
from pytest_perfgate.adapters.arms.overlay import loaded_modules
{imports}

def test_speed():
    said = {{"speed": [{speeds}], "modules": loaded_modules(os.environ["ARM_MODULES"].split(","))}}
    Path(os.environ["ARM_SAYS"]).write_text(json.dumps(said))
"""
COMMANDS = (("two", "cp {source}/two.py {site}/two.py"),)


def speeds(packages: Sequence[str]) -> str:
    imports = "\n".join(f"import {name}" for name in packages)
    return TEST.format(imports=imports, speeds=", ".join(f"{name}.SPEED" for name in packages))


def repository(folder: Path, layout: str) -> Path:
    """Speed 1 in the commit, 2 in the working copy, which is the head build."""
    make_repo(folder, PLACES[layout], speeds, "", 1)
    write(folder, sources(PLACES[layout], 2))
    return folder


def run(arm, repo: Path, path: str) -> dict:
    says = repo / ".perfgate" / f"{arm.name}.json"
    variables = {**os.environ, **dict(arm.environment), "ARM_MODULES": ",".join(arm.modules), "ARM_SAYS": str(says)}
    variables.pop("PYTHONPYCACHEPREFIX")  # as rounds do: an arm's own cache begins empty, and pytest is compiled for it
    variables |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    line = [*arm.launch, "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-o", "addopts=", path]
    done = subprocess.run(line, cwd=arm.cwd, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(says.read_text())


@pytest.mark.parametrize("layout", PLACES)
def test_each_arm_loads_its_own_files(tmp_path: Path, layout: str) -> None:
    repo = repository(tmp_path / "ein Größer Pfad", layout)
    path = PLACES[layout].test
    mono = layout == "monorepo"
    settings = ArmSettings(projects=("one", "two"), builds=COMMANDS) if mono else ArmSettings()
    before = sorted(p.relative_to(repo) for p in repo.rglob("*") if ".git" not in p.parts)
    arms = ArmStore(repo, settings, [path])
    base, head = arms.prepare("base", "HEAD"), arms.prepare("head", "")

    says = {arm.name: run(arm, repo, path) for arm in (base, head)}

    assert set(says["base"]["speed"]) == {1}
    assert set(says["head"]["speed"]) == {2}
    assert (base.dirty, head.dirty) == (False, True)
    assert base.mode == head.mode == ("worktree" if layout in {"inside", "scripts"} else "overlay")
    loaded = {name: [tuple(pair) for pair in answer["modules"]] for name, answer in says.items()}
    assert foreign_modules(base, loaded["base"]) is None
    assert foreign_modules(head, loaded["head"]) is None
    assert foreign_modules(base, loaded["head"]).code == "arm-foreign-module"
    if layout in {"src", "inside"}:  # one of each mode: all read files alike
        for file, _ in loaded["base"]:
            with Path(file).open("a", encoding="utf-8") as text:
                text.write("# written while the rounds ran\n")
        spoilt = [tuple(pair) for pair in run(base, repo, path)["modules"]]
        assert "after the build" in foreign_modules(arms.prepare("base", "HEAD"), spoilt).what
    assert not same_code(loaded["base"], loaded["head"])
    after = sorted(p.relative_to(repo) for p in repo.rglob("*") if ".git" not in p.parts and ".perfgate" not in p.parts)
    assert after == before
    assert arms.prepare("base", "HEAD").reused
    assert arms.leftovers() == ()
    for folder in (repo / ".perfgate" / "arms").glob("*/"):
        discard(folder, arms.git)
    assert "tree" not in git(repo, "worktree", "list")


def test_an_editable_install_of_the_head_stays_out_of_the_base(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo", "src")
    user = tmp_path / "user"
    python = editable(user, repo / "src")
    before = contents(user)
    script = (
        "from pathlib import Path; import k, sys\n"
        "assert k.SPEED == 2\n"
        "from pytest_perfgate.adapters.arms.store import ArmStore\n"
        "from pytest_perfgate.model.verdict import ArmSettings\n"
        "arm = ArmStore(Path.cwd(), ArmSettings(), ['tests/test_k.py']).prepare('base', 'HEAD')\n"
        "import subprocess\n"
        "code = 'import sys; del sys.path[0]; import k; print(k.SPEED, k.__file__)'\n"
        "print(subprocess.run([arm.python, '-c', code], capture_output=True, text=True).stdout)\n"
        "import os; started = {**os.environ, **dict(arm.environment)}\n"  # what a test of an arm starts by a name
        "print(subprocess.run([sys.executable, '-c', 'import k; print(k.__file__)'], env=started, cwd='/', "
        "capture_output=True, text=True).stdout, started['PATH'].split(os.pathsep)[0])\n"
    )
    line = [str(python), "-B", "-c", script]
    done = subprocess.run(line, cwd=repo, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("1 "), done.stdout + done.stderr
    file, programs = done.stdout.split()[-2:]
    assert ".perfgate" in done.stdout.splitlines()[0]
    assert Path(file).parents[1] == Path(programs).parent
    assert ".perfgate" in file
    assert contents(user) == before


def test_a_checkout_of_tests_alone_has_no_package(tmp_path: Path) -> None:
    for name in ("test_sums.py", "conftest.py", "bench.py", "NOTES.md"):
        (tmp_path / name).touch()
    assert only_tests(tmp_path, ["bench.py"])
    assert not only_tests(tmp_path, [])
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "sums.c").touch()
    assert not only_tests(tmp_path, ["bench.py"])


def test_an_arm_lies_in_the_folder_that_is_left_out_of_a_checkout(tmp_path: Path) -> None:
    arm = tmp_path / ".perfgate" / "arms" / "base"
    (arm / "deep").mkdir(parents=True)
    (arm / "deep" / "kernel.py").touch()
    assert not only_tests(arm, [])


def test_a_library_that_the_arm_has_and_that_came_from_elsewhere(tmp_path: Path) -> None:
    arm = tmp_path / "arms" / "digest"
    site = arm / "env" / "lib" / "site-packages" / "fast"
    site.mkdir(parents=True)
    (site / "libfast.so.1").touch()
    inside, outside = str(site / "libfast.so.1"), str(tmp_path / "build" / "libfast.so.1")
    others = ["/usr/lib/libc.so.6", str(tmp_path / "build" / "libother.so")]
    assert foreign_libraries([inside, outside, *others], arm, ["fast"]) == []  # no arm: nothing says that it is one
    (arm / "ready.json").touch()
    assert foreign_libraries([inside, outside, *others], arm, ["fast"]) == [outside]
    assert foreign_libraries([inside], arm, ["fast"]) == []
    suffix = EXTENSION_SUFFIXES[0]
    (site / f"_core{suffix}").touch()
    (site / "_core.so").touch()
    environment = "/opt/env/lib/site-packages"
    for file, is_foreign in (
        (f"{environment}/another/_core{suffix}", False),  # many packages have an extension module of that name
        (f"{environment}/another/_core.so", False),
        (f"{environment}/another/libfast.so.1", False),
        (f"{environment}/fast/libfast.so.1", True),  # another copy of the package under test
        (f"{environment}/fast.libs/libfast.so.1", True),
        ("/opt/lib/_core.so", True),
    ):
        assert (foreign_libraries([inside, file], arm, ["fast"]) == [file]) is is_foreign, file


def test_an_import_is_found_wherever_it_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "proof_k.py").write_text("SPEED = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__("proof_k")
    try:
        ((file, digest),) = loaded_modules(["proof_k"])
        assert neighbour_modules(tmp_path, ["pkg"]) == (("proof_k.py", digest),)
        assert neighbour_modules(tmp_path, ["proof_k"]) == neighbour_modules(tmp_path / "other", ["pkg"]) == ()
        libraries = [tmp_path / at / "libk.so" for at in ("build", "lib/site-packages/k", tmp_path.parent)]
        monkeypatch.setattr("pytest_perfgate.adapters.arms.overlay.mapped_libraries", lambda: set(map(str, libraries)))
        assert [path for path, _ in neighbour_modules(tmp_path, ["proof_k"])] == ["build/libk.so"], "loaded by its path"
        for prefix, count in ((tmp_path.parent, 1), (tmp_path / "build", 0)):  # a Python around the project, and in it
            monkeypatch.setattr(sys, "base_prefix", str(prefix))
            assert len(neighbour_modules(tmp_path, ["proof_k"])) == count
        write(tmp_path, {"build/libk.so": ""})
        imported(monkeypatch, "ext_k", tmp_path / "build" / "libk.so")
        monkeypatch.setattr(sys, "base_prefix", str(tmp_path.parent))
        assert neighbour_modules(tmp_path, ["proof_k", "ext_k"]) == (), "an extension of the package"
    finally:
        del sys.modules["proof_k"]
    assert (file, len(digest)) == (str(tmp_path / "proof_k.py"), 16)


@pytest.mark.torch
def test_modules_that_a_library_makes_up_are_no_files_of_the_project(tmp_path: Path, monkeypatch) -> None:
    """``torch.ops`` and ``torch.classes`` stand in ``sys.modules`` with files such as ``_ops.py``."""
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    assert not Path(torch.ops.__file__).is_absolute()
    monkeypatch.chdir(tmp_path)
    assert neighbour_modules(tmp_path, ["pkg"]) == ()


def test_a_lazy_module_is_not_asked_and_one_that_is_gone_is_no_file(tmp_path: Path, monkeypatch) -> None:
    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise RuntimeError(f"asked for {name}")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "lazy_k", Lazy("lazy_k"))
    for name, file in (("made_up", "_ops.py"), ("gone", str(tmp_path / "gone.py"))):
        made = ModuleType(name)
        made.__file__ = file
        monkeypatch.setitem(sys.modules, name, made)
    assert neighbour_modules(tmp_path, ["pkg"]) == ()
    assert loaded_modules(["lazy_k", "made_up", "gone"]) == ()


def imported(monkeypatch: pytest.MonkeyPatch, name: str, file: Path | None) -> None:
    """Stand for a module that was loaded from this file; None is a namespace package."""
    module = ModuleType(name)
    module.__file__ = str(file) if file else None
    monkeypatch.setitem(sys.modules, name, module)


def clones(folder: Path) -> tuple[Path, Path]:
    for name in ("a", "c"):
        write(folder / name, {".git": "", "pyproject.toml": "", "src/pk_k/__init__.py": "", "src/pk_k/one.py": ""})
        write(folder / name, {"flat_k/__init__.py": "", "only_k.py": "", "libs/sub/setup.py": ""})
        write(folder / name, {"libs/sub/src/sub_k/__init__.py": ""})
        write(folder / name, {"src/space_k/in_k/__init__.py": "", "tests/__init__.py": "", "conftest.py": ""})
    return folder / "a", folder / "c"


@pytest.mark.parametrize(
    ("name", "path"),
    [("pk_k", "src/pk_k/__init__.py"), ("flat_k", "flat_k/__init__.py"), ("only_k", "only_k.py"),
     ("sub_k", "libs/sub/src/sub_k/__init__.py"), ("space_k.in_k", "src/space_k/in_k/__init__.py")],
)  # fmt: skip
def test_a_package_that_another_checkout_lent_is_named(tmp_path: Path, monkeypatch, name: str, path: str) -> None:
    other, own = clones(tmp_path)
    if "." in name:
        imported(monkeypatch, name.partition(".")[0], None)
    imported(monkeypatch, name, other / path)
    folder = (other / path).parents[name.count(".") + path.endswith("__init__.py")]
    lent = list(from_elsewhere(own, ["libs/sub"], (), loaded_origin))
    assert lent == [(name, own / path, folder)]
    assert list(from_elsewhere(own, ["libs/sub"], ["another"], loaded_origin)) == []
    assert list(from_elsewhere(own, ["libs/sub"], [name.partition(".")[0]], loaded_origin)) == lent
    imported(monkeypatch, name, own / path)
    assert list(from_elsewhere(own, ["libs/sub"], (), loaded_origin)) == []


def test_what_is_no_package_of_another_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, own = clones(tmp_path)
    write(tmp_path, {"site-packages/pk_k/__init__.py": "", "loose/flat/flat_k/__init__.py": "", "a/flat_k.py": ""})
    write(own, {"vendor/pk_k/__init__.py": "", ".perfgate/arms/1/src/pk_k/__init__.py": "", "docs_k/index.md": ""})
    write(own, {"wt/.git": "gitdir: ../.git/modules/wt", "wt/pyproject.toml": "", "wt/src/pk_k/__init__.py": ""})
    write(own, {"app/setup.py": ""})
    (other / "src" / "pk_k" / "__init__.py").rename(other / "real.py")
    (tmp_path / "linked").symlink_to(own)
    write(other, {"docs_k/__init__.py": ""})
    for name, file in (
        ("pk_k", tmp_path / "site-packages/pk_k/__init__.py"),  # an installed wheel
        ("pk_k", own / "vendor/pk_k/__init__.py"),
        ("pk_k", own / ".perfgate/arms/1/src/pk_k/__init__.py"),
        ("pk_k", own / "wt/src/pk_k/__init__.py"),
        ("pk_k", tmp_path / "linked/src/pk_k/__init__.py"),
        ("pk_k", other / "pk_k.zip/pk_k/__init__.py"),
        ("flat_k", tmp_path / "loose/flat/flat_k/__init__.py"),  # no source tree
        ("flat_k", other / "flat_k.py"),  # a module of that name is another thing
        ("docs_k", other / "docs_k/__init__.py"),
        ("tests", other / "tests/__init__.py"),
        ("conftest", other / "conftest.py"),
        ("space_k", None),
    ):
        with monkeypatch.context() as patch:
            imported(patch, name, file)
            assert list(from_elsewhere(own, ["."], (), loaded_origin)) == [], file
    with monkeypatch.context() as patch:
        imported(patch, "pk_k", own / "src/pk_k/__init__.py")
        assert list(from_elsewhere(own / "app", ["."], (), loaded_origin)) == [], "a monorepo"
        imported(patch, "pk_k", own / "wt/src/pk_k/__init__.py")
        write(own, {"wt/.git": f"gitdir: {own}/.git/worktrees/wt\n"})
        assert [name for name, *_ in from_elsewhere(own, ["."], (), loaded_origin)] == ["pk_k"], "a git worktree"


def test_what_a_build_leaves_beside_the_sources_is_code_of_its_arm(tmp_path: Path) -> None:
    names = ("kern.py", "ckern.cpython-311-x86_64-linux-gnu.so", "src/other.pyd", "libkern.so.1")
    for name in (*names, "cykern.pyx"):  # pyximport builds it in a folder of the user, for both arms
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert source_modules(tmp_path) == ("ckern", "cykern", "kern", "other")


def test_a_commit_of_accepted_times_or_pages_alone_leaves_the_same_code(tmp_path: Path) -> None:
    def written(name: str, text: str) -> str:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return content_of(tmp_path)

    first = written("k.py", "x = 1\n")
    line = "# Accepted\nperfgate: 1\nbaselines:\n  'test_k': {time: 1us}\n"
    assert written("baselines/host/test_k.yaml", line) == first
    assert written("baselines/host/environments/ab.json", "{}") == first
    assert written("baselines/other/tests/deep/test_k.yaml", line) == first
    assert written("baselines/other/environments/ab.json", "{}") == first, "lines lie as deep as their tests do"
    assert written("README.md", "one") == first
    described = written("pyproject.toml", 'readme = "README.md"')
    assert described != first, "what describes the package is content itself"
    assert written("README.md", "two") == described
    assert written("docs/a.rst", "two") == described
    assert written("other/environments/ab.json", "{}") != described
    data = written("data.yaml", "a: 1\n")
    assert written("data.yaml", "a: 2\n") != data
    code = written("k.py", "x = open('README.md')\n")
    assert written("docs/a.rst", "three") == code
    assert written("README.md", "three") != code, "code that speaks of pages may read one"


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("pk/bin/solver", True),
        ("bin/solver", True),
        ("pk/build/table.json", True),
        ("pk/model.pth", True),
        ("tests/texts/long.md", True),
        ("pk/long.md", False),
        ("pk-1.0.dist-info/entry_points.txt", True),
        ("pk-1.0.dist-info/RECORD", False),
        ("build/temp/k.o", False),
        ("pk/__pycache__/k.pyc", False),
        ("zz_perfgate_parent.pth", False),
    ],
)
def test_what_a_test_may_start_or_read_is_content_in_whatever_folder(tmp_path: Path, name: str, counts: bool) -> None:
    """Two builds with another program or model do not hold the same code, so that no round is left out."""
    empty = content_of(tmp_path)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("1")
    assert (content_of(tmp_path) != empty) is counts


def test_a_link_to_another_folder_is_other_content(tmp_path: Path) -> None:
    contents = set[str]()
    for target in ("one", "two", "gone"):
        (tmp_path / "data").symlink_to(target)
        contents.add(content_of(tmp_path))
        (tmp_path / "data").unlink()
    (tmp_path / "one").mkdir()
    (tmp_path / "data").symlink_to("one")
    assert content_of(tmp_path) in contents, "an empty folder holds nothing"
    assert len(contents) == 3


def test_a_name_that_is_no_utf_8_is_content_as_any_other(tmp_path: Path) -> None:
    empty = content_of(tmp_path)
    (tmp_path / os.fsdecode(b"data\xff.py")).write_bytes(b"1")
    assert content_of(tmp_path) != empty
    (tmp_path / "k.py").touch()
    assert [Path(name).name for name in sources_of(tmp_path)] == ["k.py"], "the others cannot be imported or sent"
    assert source_modules(tmp_path) == ("k",)


def test_data_beside_code_is_read_a_part_at_a_time(tmp_path: Path) -> None:
    """Gigabytes may lie there; and what speaks of pages may lie across two parts."""
    (tmp_path / "weights.bin").write_bytes(b"")
    os.truncate(tmp_path / "weights.bin", 64 << 20)
    tracemalloc.start()
    empty = content_of(tmp_path)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()
    (tmp_path / "README.md").write_text("one")
    assert content_of(tmp_path) == empty
    (tmp_path / "k.py").write_bytes(b"#" * ((1 << 20) - 2) + b".md")
    before = content_of(tmp_path)
    (tmp_path / "README.md").write_text("two")
    assert content_of(tmp_path) != before


def test_an_arm_sees_folders_inside_of_an_installed_package_that_are_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ``.pth`` of a package names one, as that of nvidia-cutlass-dsl does; the source of an editable lies apart."""
    inside, source = tmp_path / "our_vendor/site-packages/dsl/python_packages", tmp_path / "repo/src"
    for folder in (inside, source):
        folder.mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [*sys.path, str(inside), str(source)])
    assert str(inside) in (folders := parent_folders(()))
    assert str(source) not in folders
