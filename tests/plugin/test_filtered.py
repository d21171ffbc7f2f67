"""What leaves tests out: then nothing is said of baselines that nobody asked for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.plugin.ending import is_filtered

NOTHING = {"keyword": "", "markexpr": "", "deselect": None, "ignore": None, "ignore_glob": None}


def asked(tmp_path: Path, args: list[str] | None = None, **options: object) -> bool:
    given = pytest.Config.ArgsSource.ARGS if args is not None else pytest.Config.ArgsSource.INVOCATION_DIR
    config = SimpleNamespace(
        option=SimpleNamespace(**(NOTHING | options)),
        rootpath=tmp_path,
        invocation_params=SimpleNamespace(dir=tmp_path),
        args=args or [str(tmp_path)],
        args_source=given,
        getini=lambda name: ["tests"],
    )
    return is_filtered(config)  # type: ignore[arg-type]


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
        {"args": ["tests/test_a.py"]},
        {"args": ["tests/test_a.py::test_b"]},
    ],
)
def test_what_filters(tmp_path: Path, options: dict[str, object]) -> None:
    assert asked(tmp_path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("args", [None, ["tests"], ["."], ["tests", "tests/test_a.py"]])
def test_what_does_not(tmp_path: Path, args: list[str] | None) -> None:
    assert not asked(tmp_path, args)
