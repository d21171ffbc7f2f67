"""How pytest is started in an arm: the same tests, which find what lies beside them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.model.plan import Case, Plan
from pytest_perfgate.plugin.child_arguments import (
    arm_arguments,
    code_folders,
    cold_for,
    environment,
    possible_differences,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (
        "package/__init__.py",
        "tests/test_a.py",
        "tests/deep/__init__.py",
        "tests/deep/test_b.py",
        "test_c.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def arguments_of(
    root: Path, mode: str, import_mode: str = "prepend", *names: str, inipath: Path | None = None
) -> list[str]:
    option = SimpleNamespace(importmode=import_mode, plugins=(), override_ini=(), pythonwarnings=(), noconftest=False)
    config: Any = SimpleNamespace(option=option, rootpath=root, inipath=inipath, getini=lambda name: [root / "extra"])
    arm: Any = SimpleNamespace(mode=mode, cwd=str(root / "checkout"), modules=("package",))
    cases = [Case(nodeid=f"{name}::test", limits=(), plan=Plan()) for name in names]
    return arm_arguments(config, cases, arm)


def test_a_checkout_without_the_heads_file_of_settings_takes_its_own(root: Path) -> None:
    added, checkout = root / "pytest.toml", root / "checkout"
    added.write_text("[pytest]")

    def settings() -> list[str]:
        words = arguments_of(root, "worktree", "prepend", "tests/test_a.py", inipath=added)
        return [file for word, file in pairwise(words) if word == "-c"]

    checkout.mkdir()
    assert settings() == []
    (checkout / "setup.cfg").write_text("")
    (checkout / "pyproject.toml").write_text("")
    assert settings() == [str(checkout / "pyproject.toml")]
    (checkout / "pytest.toml").write_text("")
    assert settings() == [str(checkout / "pytest.toml")]


@pytest.mark.parametrize("mode", ["prepend", "append", "importlib"])
def test_a_checkout_keeps_the_import_mode(root: Path, mode: str) -> None:
    words = arguments_of(root, "worktree", mode, "tests/test_a.py")
    assert [word for word in words if "import-mode" in word] == [f"--import-mode={mode}"]
    assert words[-1] == str(root / "checkout" / "tests" / "test_a.py")


@pytest.mark.parametrize(
    ("name", "folder"), [("tests/test_a.py", "tests"), ("tests/deep/test_b.py", "tests"), ("test_c.py", "")]
)
def test_tests_of_an_installed_package_find_their_helpers_and_never_the_heads_package(
    root: Path, name: str, folder: str
) -> None:
    words = arguments_of(root, "overlay", "prepend", name)
    (path,) = [word for word in words if word.startswith("pythonpath=")]
    assert path == f"pythonpath={root / 'extra'}" + (f" {root / folder}" if folder else "")
    assert [word for word in words if "import-mode" in word] == ["--import-mode=importlib"]


def test_no_plugin_selects_or_repeats_tests_a_second_time_in_a_child(root: Path) -> None:
    words = arguments_of(root, "worktree", "prepend", "tests/test_a.py")
    assert {"no:xdist", "no:rerunfailures", "no:stepwise", "no:pytest-testmon", "no:pytest_forked"} <= {*words}


def test_who_asked_for_importlib_has_no_folders_added(root: Path) -> None:
    assert f"pythonpath={root / 'extra'}" in arguments_of(root, "overlay", "importlib", "tests/test_a.py")


def test_the_folder_that_the_shell_named_is_the_child_s_own(tmp_path: Path) -> None:
    """Code that opens files below $PWD would read those of the head in both builds."""
    (checkout := tmp_path / "checkout").mkdir()
    (link := tmp_path / "link").symlink_to(checkout)
    shell = {"PWD": str(tmp_path), "PYTEST_ADDOPTS": "-x"}.items()
    assert environment(shell, str(checkout))["PWD"] == str(checkout)
    assert environment(shell)["PWD"] == str(tmp_path)
    assert environment({"PWD": str(link)}.items(), str(checkout))["PWD"] == str(link)
    assert environment({}.items(), str(checkout))["PWD"] == str(checkout)


_SAME = "the package is the same in both builds; "
_NOTHING = "base and head hold the same code: only the machine, or a file that both read, can differ"


@pytest.mark.parametrize(
    ("mode", "own", "edited", "text"),
    [
        ("overlay", "", ("README.md",), _NOTHING),
        ("worktree", "", ("README.md", "k.py"), _NOTHING),
        ("overlay", "", ("README.md", "k.py"), f"{_SAME}each runs its own k.py where a test imports it"),
        ("overlay", "", ("tests/conftest.py",), f"{_SAME}both read the head's tests/conftest.py"),
        ("overlay", "", ("t.py", "h/a.py"), f"{_SAME}both read the head's t.py, h/a.py"),
        ("overlay", "k.py", ("k.py",), f"{_SAME}each runs its own k.py where a test imports it"),
        ("overlay", "t.py", ("t.py",), f"{_SAME}each runs its own t.py"),
        ("overlay", "t.py", ("t.py", "h/a.py"), f"{_SAME}each runs its own t.py; both read the head's h/a.py"),
    ],
)
def test_edited_files_are_named_beside_the_same_package(mode: str, own: str, edited: Any, text: str) -> None:
    session: Any = SimpleNamespace(
        gate_judge=SimpleNamespace(
            tools=SimpleNamespace(repository=SimpleNamespace(changed=lambda revision: edited)),
            environment_edits=SimpleNamespace(text=lambda: ""),
        ),
        settings=SimpleNamespace(project=SimpleNamespace(test_paths=("./h",))),
        cases=(cases := {"t.py::test_a": SimpleNamespace(path="t.py", nodeid="t.py::test_a")}),
    )
    for base, words in [("c0ffee", text), ("", f"{_SAME}each runs its own t.py" if own == "t.py" else _NOTHING)]:
        arms = (SimpleNamespace(revision=base, mode=mode),)
        comparison: Any = SimpleNamespace(arms=arms, cases=cases, own=SimpleNamespace(paths=lambda case: (own,)))
        assert possible_differences(session, comparison) == words


def test_folders_of_code_are_below_the_root_and_hold_no_test(root: Path) -> None:
    places = [root / "lib", root, root / "tests", root.parent / "beside"]
    config: Any = SimpleNamespace(rootpath=root, getini=lambda name: places)
    assert code_folders(config, ["tests/test_a.py"]) == ["lib", "."]


def test_a_first_call_finds_no_output_of_a_compiler() -> None:
    case = Case(nodeid="test_a.py::test", limits=(), plan=Plan())
    assert cold_for([case]) == {}
    first, second = (cold_for([replace(case, plan=Plan(figures=("compile_time",)))]) for _ in range(2))
    caches = {"TRITON_CACHE_DIR", "POCL_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "WARP_CACHE_PATH", "TVM_FFI_CACHE_DIR"}
    assert all(first[name] != second[name] and not Path(first[name]).exists() for name in caches)
    assert first["PYOPENCL_NO_CACHE"] == "1"
