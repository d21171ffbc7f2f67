from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_perfgate.adapters.stores.baselines import Baselines
from pytest_perfgate.adapters.stores.history import SqliteHistory
from pytest_perfgate.adapters.stores.records import Records
from pytest_perfgate.cli import main
from pytest_perfgate.model.project import SERVERS
from pytest_perfgate.model.verdict import RunReport


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Place:
    """A project with records, and the command run in it."""

    def __init__(self, root: Path, command: Callable[..., Done]) -> None:
        self.root, self.perfgate = root, command
        self.baselines = Baselines(root, devices=("NVIDIA-*",))
        self.history = SqliteHistory(root / ".perfgate" / "history.db")

    def record(self, report: RunReport) -> Path:
        return Records(self.root).write(report)

    def times(self) -> dict[str, float]:
        return {b.key.test: b.time for b in self.baselines.read_all("NVIDIA-H200").values()}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    (tmp_path / "pyproject.toml").write_text('[tool.perfgate]\ndevices = ["NVIDIA-*"]\n')
    monkeypatch.chdir(tmp_path)
    for name in ("CI", *SERVERS, "GITHUB_BASE_REF", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)

    def command(*words: object) -> Done:
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as ending:  # argparse's own
            code = int(ending.code or 0)
        return Done(code, *capsys.readouterr())

    return Place(tmp_path, command)
