from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pytest_perfgate.adapters.stores.history import SqliteHistory
from pytest_perfgate.adapters.stores.records import Records
from pytest_perfgate.app.doctor import Finding, Level, examined
from pytest_perfgate.cli.doctor import told_lines
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.plugin.measure_ahead import insist_on_folder
from pytest_perfgate.plugin.reporting import told_once, usage_errors


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


def test_a_fault_that_two_checks_meet_is_told_once() -> None:
    checks = [("baselines", lambda project: denied("/x/b.yaml")), ("commits", lambda project: denied("/x/b.yaml"))]
    assert [finding.name for finding in examined(checks, None)] == ["baselines"]


def test_what_mends_it_can_be_copied_whole() -> None:
    long = "echo 'baselines/**/*.yaml merge=perfgate' >> .gitattributes; " + "git config merge.perfgate.driver x; " * 4
    told = told_lines(Finding(name="merging", level=Level.NOTE, what="it may conflict", mend=long), verbose=False)
    assert told == ["note  merging    it may conflict", f"{' ' * 17}> {long}"]
    short = Finding(name="record", level=Level.NOTE, what="none", mend="pytest --perfgate=full")
    assert told_lines(short, verbose=False) == ["note  record     none > pytest --perfgate=full"]
    assert told_lines(short, verbose=True)[1] == f"{' ' * 17}next: pytest --perfgate=full"
    assert told_lines(Finding(name="git", level=Level.GOOD, what="x" * 99), verbose=False)[0].endswith("x …")


def test_a_fault_that_many_tests_meet_is_told_whole_once() -> None:
    fault, told = PerfgateError("baseline-value", "expected a time", place="baselines/h/t.py.yaml"), {}
    assert told_once(fault, "t.py::a", told) == fault.text()
    short = "baselines/h/t.py.yaml: expected a time  [baseline-value]\n  why   t.py::a says it whole"
    assert (told_once(fault, "t.py::b", told), told_once(fault, "t.py::a", told)) == (short, fault.text())
    with usage_errors(told):
        raise fault
    with pytest.raises(pytest.UsageError, match="another"), usage_errors(told):
        raise PerfgateError("baseline-value", "another")
