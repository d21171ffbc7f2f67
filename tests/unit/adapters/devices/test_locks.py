"""Who locked a device's clocks, on file: what does not read names nobody and ends nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pytest_perfgate.adapters.devices.clock_locks import (
    lock_path,
    read_lock,
    read_locks,
    remove_lock,
    run_head,
    write_lock,
)
from pytest_perfgate.model.errors import PerfgateError

CARD = "GPU-1"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PERFGATE_LOCKS", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "\x00",
        '{"pid": 1',
        '{"pid": "abc", "started": "5"}',
        '{"pid": null, "sm_hz": "fast"}',
        json.dumps({"pid": 2**70, "started": "5"}),
        json.dumps({"pid": 1, "started": "5", "sm_hz": 1.5e9}),
    ],
)
def test_a_file_that_names_no_living_owner_is_a_lock_left_behind(text) -> None:
    lock_path(CARD).write_text(text)
    (lock,) = read_locks()
    assert (lock.device, lock.stale, lock.by_hand) == (CARD, True, False)
    assert isinstance(lock.sm_hz, (float, type(None)))


def test_a_lock_is_read_as_it_was_written() -> None:
    write_lock(CARD, 1.5e9, memory=True)
    lock = read_lock(CARD)
    assert lock is not None
    assert (lock.pid, lock.sm_hz, lock.memory, lock.mine, lock.stale) == (os.getpid(), 1.5e9, True, True, False)
    remove_lock(CARD)
    assert read_lock(CARD) is None


def test_a_file_of_another_user_is_named_and_no_draft_is_left(folder, monkeypatch) -> None:
    def refused(*given: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(PerfgateError, match=r"GPU-1\.clocks\.json: Operation not permitted"):
        write_lock(CARD, 1.5e9)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("said", "head"), [("", None), ("abc", None), ("-1", None), ("²", None), ("7", 7)])
def test_a_run_without_a_head_that_reads_is_led_by_this_process(monkeypatch, said, head) -> None:
    monkeypatch.setenv("PERFGATE_ROOT_PID", said)
    assert run_head() == (head or os.getpid())


def test_a_folder_that_cannot_be_used_is_an_error(folder, monkeypatch) -> None:
    (folder / "file").write_text("")
    monkeypatch.setenv("PERFGATE_LOCKS", str(folder / "file"))
    with pytest.raises(PerfgateError, match="File exists") as raised:
        write_lock(CARD, 1.5e9)
    assert raised.value.code.name == "locks-unusable"
