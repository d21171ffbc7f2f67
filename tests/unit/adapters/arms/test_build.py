"""Tests of adapters/arms/build."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from pytest_perfgate.adapters.arms import build
from pytest_perfgate.adapters.arms.build import is_buildable, missing_tools, packaging_fix, scripts_first, toolchain
from pytest_perfgate.adapters.arms.store import ArmStore
from pytest_perfgate.model.verdict import ArmSettings
from tests.layouts import commit, git
from tests.unit.adapters.arms.failing import failure


def test_a_failed_build_shows_the_tail_of_its_log_and_leaves_no_worktree(repo: Path) -> None:
    settings = ArmSettings(mode="overlay", build=("{python} -c 'print(\"linking\"); raise SystemExit(3)'",))
    error = failure(repo, settings)
    assert error.code.name == "arm-build-failed"
    assert "exit 3" in error.what
    assert "linking" in error.what
    assert error.place.endswith("build.log")
    assert len(git(repo, "worktree", "list").splitlines()) == 1
    leftovers = ArmStore(repo, settings).leftovers()
    assert [item.what for item in leftovers] == ["an unfinished build"]


def test_a_missing_builder_is_named(repo: Path) -> None:
    error = failure(repo, ArmSettings(mode="overlay", build=("no-such-builder {source}",)))
    assert "no-such-builder is not installed" in error.what


def test_a_build_that_hangs_is_ended(repo: Path) -> None:
    error = failure(repo, ArmSettings(mode="overlay", build=("sleep 60",), timeout_s=0.2))
    assert "no end after" in error.what


def test_a_build_that_installs_nothing(repo: Path) -> None:
    assert failure(repo, ArmSettings(mode="overlay", build=("{python} -c pass",))).code.name == "arm-empty"


def test_a_build_of_tests_alone_has_no_code_that_could_differ(repo: Path) -> None:
    """setuptools takes a test file beside pyproject.toml for a module of the project."""
    (repo / "test_k.py").write_text("def test_k(perfgate): ...\n")
    commit(repo, "a test")
    settings = ArmSettings(mode="overlay", build=("cp {source}/test_k.py {site}/",))
    assert failure(repo, settings).code.name == "arm-empty", "k.py was not built"
    (repo / "k.py").unlink()
    commit(repo, "only a test")
    assert ArmStore(repo, settings).prepare("base", "HEAD").modules == ()


def test_nothing_to_build(repo: Path) -> None:
    error = failure(repo, ArmSettings(mode="overlay"))
    assert (error.code.name, error.fix) == ("arm-no-project", error.code.fix)
    (repo / "deep" / "one").mkdir(parents=True)
    (repo / "deep" / "one" / "setup.py").write_text("")
    (repo / "deep" / "one" / "one.py").write_text("SPEED = 1")
    (repo / "k.py").unlink()
    commit(repo, "the package lies deeper")
    for mode in ("overlay", "auto"):
        error = failure(repo, ArmSettings(mode=mode))
        assert error.code.name == "arm-no-project"
        assert error.fix.startswith('set projects = ["deep/one"]')
    assert ArmStore(repo, ArmSettings(packages=("found_otherwise",))).prepare("base", "HEAD").mode == "worktree"


def test_a_folder_of_modules_is_named_where_nothing_can_be_imported(repo: Path) -> None:
    for path in ("lib/kern.py", "checks/test_kern.py", "docs/conf.py"):
        (repo / path).parent.mkdir()
        (repo / path).write_text("SPEED = 1\n")
    (repo / "k.py").unlink()
    commit(repo, "the modules lie in a folder that is no package")
    assert failure(repo, ArmSettings()).fix.startswith('set projects = ["lib"]')
    assert ArmStore(repo, ArmSettings(projects=("lib",))).prepare("base", "HEAD").modules == ("kern",)


def test_a_command_builds_what_pip_cannot(repo: Path) -> None:
    arm = ArmStore(repo, ArmSettings(mode="overlay", build=("cp {source}/k.py {site}/k.py",))).prepare("base", "HEAD")
    assert arm.modules == ("k",)
    done = subprocess.run(
        [arm.python, "-c", "import sys; del sys.path[0]; import k; print(k.__file__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(Path(arm.root) / "k.py")


def test_a_program_that_a_command_builds_needs_no_package(repo: Path) -> None:
    """A test starts the benchmarks of a C++ library, and nothing in the checkout can be imported."""
    git(repo, "mv", "k.py", "k.cpp")
    commit(repo, "no Python")
    assert failure(repo, ArmSettings(mode="worktree")).code.name == "arm-no-project"
    arm = ArmStore(repo, ArmSettings(mode="worktree", build=("cp k.cpp bench",))).prepare("base", "HEAD")
    assert (arm.modules, (Path(arm.root) / "bench").exists()) == ((), True)


def test_a_build_knows_its_own_folder_by_the_name_that_a_shell_gives_it(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PWD", str(repo))
    code = "import os, sys; open(sys.argv[1], 'w').write(os.environ['PWD'])"
    line = f'{{python}} -c "{code}" {{site}}/k.py'
    arm = ArmStore(repo, ArmSettings(mode="overlay", build=(line,))).prepare("base", "HEAD")
    pwd = Path((Path(arm.root) / "k.py").read_text())
    assert pwd.is_relative_to(repo / ".perfgate")


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
    missing = failure(repo, settings, "HEAD~1")
    assert missing.code.name == "arm-no-project"
    assert missing.what.startswith("the base build (HEAD~1, ")
    assert missing.what.endswith("): the revision has no folder 'one'")
    full = git(repo, "rev-parse", "HEAD~1").strip()
    assert failure(repo, settings, full).what.startswith(f"the base build ({full[:10]}): "), "named once"


def installed(name: str) -> str:
    if name != "pytest":
        raise metadata.PackageNotFoundError(name)
    return "9"


def project(folder: Path, requires: str, backend: str) -> Path:
    text = f'[build-system]\nrequires = [{requires}]\nbuild-backend = "{backend}"\n'
    (folder / "pyproject.toml").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("requires", "missing"),
    [
        ('"pytest"', ()),
        ('"pytest>=1", "no-such-builder>=2"', ("no-such-builder>=2",)),
        ('"pytest>=999"', ("pytest>=999",)),
        ("\"no-such-builder; python_version < '3'\"", ()),
        ('"not a requirement"', ("not a requirement",)),
    ],
)
def test_requirements_are_met_or_named(tmp_path: Path, requires: str, missing: tuple[str, ...]) -> None:
    assert missing_tools(project(tmp_path, requires, "some.backend")) == missing


def test_programs_that_a_backend_starts_are_required_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    monkeypatch.setattr(sys, "executable", str(bare / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("pytest_perfgate.adapters.arms.build.metadata.version", installed)
    (tmp_path / "cmake").mkdir()  # a folder of that name in the repository is no cmake
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = project(tmp_path, '"pytest"', "scikit_build_core.build")
    assert missing_tools(folder) == ("cmake", "ninja")
    for name in ("cmake", "make"):
        (bare / name).write_text("")
        (bare / name).chmod(0o755)
    assert missing_tools(folder) == ()
    assert scripts_first().split(":")[0] == str(bare)


def test_without_a_build_table_setuptools_builds(tmp_path: Path) -> None:
    assert set(missing_tools(tmp_path)) <= {"setuptools", "wheel"}


def test_tables_of_tools_make_no_project(tmp_path: Path) -> None:
    assert not is_buildable(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\n# [project]\n")
    assert not is_buildable(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[project]\r\nname = "k"\r\n')
    assert is_buildable(tmp_path)
    (tmp_path / "pyproject.toml").write_text("not toml [")
    assert not is_buildable(tmp_path)
    (tmp_path / "setup.py").write_text("")
    assert is_buildable(tmp_path)


FOUND = '[tool.setuptools.packages.find] include = ["k*"] in pyproject.toml'


@pytest.mark.parametrize(
    ("files", "fix"),
    [
        ({"pyproject.toml": "[project]\nname = 'k'\n"}, FOUND),
        ({"setup.py": "setup(name='k')"}, FOUND),
        ({"setup.py": "setup(packages=['k'])"}, ""),
        ({"setup.py": "", "setup.cfg": "[options]\npackages = k\n"}, ""),
        ({"setup.py": "", "src/k/__init__.py": ""}, ""),
        ({"pyproject.toml": "[project]\nname = 'k'\n[tool.setuptools]\npy-modules = ['k']\n"}, ""),
        ({"pyproject.toml": "[build-system]\nbuild-backend = 'hatchling.build'\n[project]\nname = 'k'\n"}, ""),
        ({"pyproject.toml": "[tool.perfgate]\nrounds = 1\n"}, ""),
    ],
)
def test_setuptools_takes_a_folder_of_baselines_for_a_package_unless_they_are_named(
    tmp_path: Path, files: dict[str, str], fix: str
) -> None:
    for name, text in {"k/__init__.py": "", "tests/__init__.py": "", **files}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    assert packaging_fix(tmp_path, "baselines") == fix
    assert packaging_fix(tmp_path, "tests/base-lines") == ""


def test_of_modules_alone_it_would_install_only_that_folder(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("setup()")
    (tmp_path / "fast.py").write_text("")
    assert packaging_fix(tmp_path, "baselines") == '[tool.setuptools] py-modules = ["fast"] in pyproject.toml'


def test_a_build_for_another_processor_card_or_compiler_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines may share a folder: under -march=native a base from one and a head from another differ by that."""
    card, nvcc = tmp_path / "driver/nvidia/gpus/0000:01:00.0/information", tmp_path / "bin/nvcc"
    for file in (card, nvcc):
        file.parent.mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{nvcc.parent}:{os.environ['PATH']}")
    keys = []
    for model, flags, name, version in (
        ("A", "avx2", "H100", "12.8"),
        ("A", "avx2 avx512f", "H100", "12.8"),
        ("B", "avx2", "H100", "12.8"),
        ("A", "avx2", "H200", "12.8"),
        ("A", "avx2", "H100", "12.9"),
    ):
        for mhz in (1000, 2000):
            text = f"processor\t: 0\nmodel name\t: {model}\ncpu MHz\t\t: {mhz}\nflags\t\t: {flags}\n"
            (tmp_path / "cpuinfo").write_text(text, encoding="utf-8")
            card.write_text(f"Model: \t\t {name}\nIRQ:   \t\t {mhz}\n", encoding="utf-8")
            nvcc.write_text(f"#!/bin/sh\necho nvcc\necho Copyright\necho release {version}\n", encoding="utf-8")
            nvcc.chmod(0o755)
            keys.append(toolchain(tmp_path))
    assert [keys[::2], len({*keys})] == [keys[1::2], 5]
    assert toolchain(tmp_path / "missing")


def test_an_environment_without_pip_builds_with_uv(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo / "pyproject.toml").write_text('[project]\nname = "k"\nversion = "1"\n')
    commit(repo, "a project")
    monkeypatch.setattr(build, "_is_met", lambda text: text != "pip")
    monkeypatch.setattr(shutil, "which", lambda name, path="": None)
    monkeypatch.delenv("UV", raising=False)
    error = failure(repo, ArmSettings(mode="overlay"))
    assert (error.code.name, error.fix) == ("arm-build-failed", "install pip beside the tests")
    uv = tmp_path / "uv"
    uv.write_text('#!/bin/sh\nwhile [ "$1" != --target ]; do shift; done\ncp k.py "$2/k.py"\n')
    uv.chmod(0o755)
    monkeypatch.setenv("UV", str(uv))
    assert ArmStore(repo, ArmSettings(mode="overlay")).prepare("base", "HEAD").modules == ("k",)


def test_nobody_looks_for_the_module_pip(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Python 3.12 setuptools takes it for a start of pip, and torch.compile then fails in this process."""
    names: list[str] = []

    class Recorder:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            names.append(name)

    (repo / "setup.py").write_text("from setuptools import setup; setup(name='k', py_modules=['k'])")
    commit(repo, "a project")
    monkeypatch.setattr(sys, "meta_path", [Recorder, *sys.meta_path])
    ArmStore(repo, ArmSettings(mode="overlay")).prepare("base", "HEAD")
    assert "pip" not in names


def test_a_folder_of_pytest_s_pythonpath_holds_code_of_its_side(repo: Path) -> None:
    (repo / "lib").mkdir()
    (repo / "k.py").rename(repo / "lib" / "kern.py")
    (repo / "tests").mkdir()
    (repo / "tests" / "test_kern.py").write_text("import kern\n")
    commit(repo, "code in a folder of its own")
    assert failure(repo, ArmSettings()).code.name == "arm-no-project"
    arm = ArmStore(repo, ArmSettings(imported=("lib", "elsewhere")), ["tests/test_kern.py"]).prepare("base", "HEAD")
    assert (arm.mode, arm.modules) == ("worktree", ("kern",))


def test_an_environment_without_pip_and_uv_builds_with_a_pip_from_elsewhere(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / "setup.py").write_text("from setuptools import setup; setup(name='k', py_modules=['k'])")
    commit(repo, "a project")
    elsewhere = str(Path(sys.executable).with_name("pip"))
    monkeypatch.setattr(build, "_is_met", lambda text: text != "pip")
    monkeypatch.setattr(shutil, "which", lambda name, path="": elsewhere if name == "pip" else None)
    monkeypatch.delenv("UV", raising=False)
    assert ArmStore(repo, ArmSettings(mode="overlay")).prepare("base", "HEAD").modules == ("k",)
