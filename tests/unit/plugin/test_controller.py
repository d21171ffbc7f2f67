"""Tests of plugin/controller."""

from __future__ import annotations

import contextlib
import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.adapters.stores.records import Records
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.plugin.controller import interrupts_handled
from pytest_perfgate.plugin.ending import close_records


@pytest.mark.parametrize("reported", [False, True])
def test_what_cannot_be_marked_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, *, reported: bool) -> None:
    def refused(_records: Records, why: str) -> None:
        raise PerfgateError("file-unwritable", f"not written: {why}", place="last")

    monkeypatch.setattr(Records, "close", refused)
    lines: list[str] = []
    reporter = SimpleNamespace(write_line=lambda text, **_: lines.append(text))
    manager = SimpleNamespace(get_plugin={"terminalreporter": reporter}.get)
    config: Any = SimpleNamespace(rootpath=tmp_path, pluginmanager=manager)
    close_records(config, 2, reported=reported)
    message = "the last record here is of an earlier run, and cannot be marked as old"
    assert any(message in line for line in lines) != reported


def test_an_interrupt_that_was_swallowed_ends_the_run_all_the_same() -> None:
    before, reached = signal.getsignal(signal.SIGINT), []

    def swallowing() -> None:
        with interrupts_handled():
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            reached.append("the end")

    with pytest.raises(KeyboardInterrupt):
        swallowing()
    assert reached
    assert signal.getsignal(signal.SIGINT) is before


def test_what_ends_it_otherwise_goes_its_way_and_nothing_is_heard_of_nothing() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupts_handled():
        pass
    with pytest.raises(ZeroDivisionError), interrupts_handled():
        raise ZeroDivisionError
    with pytest.raises(KeyboardInterrupt), interrupts_handled():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_ignored_interrupt_and_another_thread_are_left_alone() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_handled():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    handlers = []

    def aside() -> None:
        with interrupts_handled():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=aside)
    thread.start()
    thread.join()
    assert handlers == [before]
