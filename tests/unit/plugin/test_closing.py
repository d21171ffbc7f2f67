"""A run in CI that broke off, in a folder that takes nothing: the pointer to the record before it stays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.adapters.stores.records import Records
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.plugin.ending import close_records


@pytest.mark.parametrize("told", [False, True])
def test_what_cannot_be_marked_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, *, told: bool) -> None:
    def refused(_records: Records, why: str) -> None:
        raise PerfgateError("file-unwritable", f"not written: {why}", place="last")

    monkeypatch.setattr(Records, "close", refused)
    lines: list[str] = []
    reporter = SimpleNamespace(write_line=lambda text, **_: lines.append(text))
    manager = SimpleNamespace(get_plugin={"terminalreporter": reporter}.get)
    config: Any = SimpleNamespace(rootpath=tmp_path, pluginmanager=manager)
    close_records(config, 2, told=told)
    said = "the last record that lies here is of an earlier run, and cannot be marked so"
    assert any(said in line for line in lines) != told
