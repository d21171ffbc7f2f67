from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pytest_perfgate.adapters.stores.history import SqliteHistory
from pytest_perfgate.adapters.stores.records import Records
from pytest_perfgate.app.doctor import examined
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.plugin.keeping import insist_on_folder


def denied(path: Any, *given: Any, **named: Any) -> Any:
    raise PermissionError(13, "Permission denied", str(path))


def test_a_folder_that_may_not_be_looked_into_is_an_error_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    insist_on_folder(tmp_path)
    insist_on_folder(tmp_path / "none")
    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(PerfgateError) as caught:
        insist_on_folder(tmp_path)
    assert caught.value.code.name == "file-refused"
    assert "Permission denied: local baselines" in caught.value.what
    assert f"chmod u+rwx {tmp_path}" in caught.value.mend


def test_what_may_not_be_read_is_not_taken_for_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", denied)
    with pytest.raises(PerfgateError, match="Permission denied") as caught:
        Records(tmp_path).last()
    assert caught.value.code.name == "file-refused"
    monkeypatch.setattr(Path, "stat", denied)
    with pytest.raises(PerfgateError, match="Permission denied"):
        SqliteHistory(tmp_path / "history.db").read(CaseKey(nodeid="t.py::test"), "host")


def test_the_doctor_says_what_to_do_about_a_refusal() -> None:
    (finding,) = examined([("record", lambda project: denied("/x/last"))], None)
    assert finding.what == "/x/last: Permission denied  [file-refused]"
    assert "ls -l" in finding.mend
