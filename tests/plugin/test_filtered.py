"""What leaves tests out, and where a run looked: of the rest nobody says that it is gone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.core.judge.suite import LeftOut
from pytest_perfgate.model.plan import Reach
from pytest_perfgate.plugin import pytest_deselected
from pytest_perfgate.plugin.selection import deselected, is_filtered, keeps_baselines, left_out, reach_of

NOTHING = {"keyword": "", "markexpr": "", "deselect": None, "ignore": None, "ignore_glob": None}


def config(tmp_path: Path, args: list[str] | None = None, **options: object) -> Any:
    source = pytest.Config.ArgsSource.ARGS if args is not None else pytest.Config.ArgsSource.INVOCATION_DIR
    return SimpleNamespace(
        option=SimpleNamespace(**(NOTHING | options)),
        rootpath=tmp_path,
        invocation_params=SimpleNamespace(dir=tmp_path),
        args=args or [str(tmp_path)],
        args_source=source,
        getini=lambda name: ["tests", "kern"],
        stash=pytest.Stash(),
    )


def filters(tmp_path: Path, args: list[str] | None = None, **options: object) -> bool:
    return is_filtered(config(tmp_path, args, **options))


@pytest.mark.parametrize(
    "options",
    [
        {"keyword": "gemm"},
        {"markexpr": "not slow"},
        {"deselect": ["tests/test_a.py::test_b"]},
        {"ignore": ["tests/slow"]},
        {"ignore_glob": ["*slow*"]},
        {"lf": True},
        {"last_failed": True},
        {"stepwise": True},
        {"testmon": True},
        {"args": ["tests/test_a.py"]},
        {"args": ["tests/test_a.py::test_b"]},
        {"args": ["tests"]},
    ],
)
def test_what_filters(tmp_path: Path, options: dict[str, object]) -> None:
    assert filters(tmp_path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("args", "reach"),
    [
        (None, ()),
        (["tests", "kern/"], ("tests", "kern")),
        (["."], ()),
        (["tests", "."], ()),
        (["tests", "kern", "tests/test_a.py"], ("tests", "kern", "tests/test_a.py")),
    ],
)
def test_what_does_not(tmp_path: Path, args: list[str] | None, reach: tuple[str, ...]) -> None:
    assert not filters(tmp_path, args)
    assert reach_of(config(tmp_path, args)) == Reach(beneath=reach)


def test_testpaths_are_all_of_it_and_a_folder_below_is_not(tmp_path: Path) -> None:
    session = config(tmp_path, ["tests", "kern"])
    session.args_source = pytest.Config.ArgsSource.TESTPATHS
    assert not is_filtered(session)
    assert reach_of(session) == Reach(beneath=("tests", "kern"))
    below = config(tmp_path)
    below.args = [str(tmp_path / "tests")]
    below.invocation_params.dir = tmp_path / "tests"
    assert is_filtered(below)
    assert reach_of(below) == Reach(beneath=("tests",))


def test_what_a_plugin_deselects_filters(tmp_path: Path) -> None:
    session = config(tmp_path)
    gated: Any = SimpleNamespace(nodeid="t.py::a", get_closest_marker=lambda name: None, fixturenames=["perfgate"])
    other: Any = SimpleNamespace(nodeid="t.py::b", get_closest_marker=lambda name: None, fixturenames=[])
    gated.config = other.config = session
    nameless: Any = SimpleNamespace(config=session)  # as pytest-testmon hands over
    pytest_deselected([other, nameless])
    assert not is_filtered(session)
    pytest_deselected([gated, other])
    assert is_filtered(session)
    assert deselected(session) == {"t.py::a"}


def test_what_no_word_of_the_command_line_left_out(tmp_path: Path) -> None:
    session = config(tmp_path, ignore=["docs"])
    deselected(session).add("t.py::a")
    for words in (["tests", "--maxfail=1"], []):
        session.invocation_params.args = words
        assert left_out(session) == LeftOut(deselected=frozenset({"t.py::a"}), reach=Reach(without=("docs",)))
    for words in (["-kgemm"], ["-m", "not slow"], ["--deselect=t.py::a"], ["--lf"]):
        session.invocation_params.args = words
        assert left_out(session) == LeftOut(deselected=frozenset({"t.py::a"}), commanded=True)


def test_where_a_run_looks(tmp_path: Path) -> None:
    below = config(
        tmp_path, ["bench", "t.py::test_a[1/2]", str(tmp_path / "x")], ignore=["docs"], ignore_glob=["*old*"]
    )
    below.invocation_params.dir = tmp_path / "tests"
    assert reach_of(below) == Reach(
        beneath=("tests/bench", "tests/t.py::test_a[1/2]", "x"), without=("tests/docs", "tests/*old*")
    )
    assert reach_of(config(tmp_path, lf=True)) == Reach(unknown="--lf")
    assert reach_of(config(tmp_path, ["pkg.tests"], pyargs=True)) == Reach(unknown="--pyargs")


def test_which_project_has_baselines(tmp_path: Path) -> None:
    assert not keeps_baselines(tmp_path, {})
    (tmp_path / "baselines").mkdir()
    assert keeps_baselines(tmp_path, {})
    (tmp_path / "pyproject.toml").write_text('[tool.perfgate]\nbaselines = "accepted"\n')
    assert not keeps_baselines(tmp_path, {})
    (tmp_path / "accepted").mkdir()
    assert keeps_baselines(tmp_path, {})
