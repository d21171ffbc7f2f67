"""The role of the pytest process that the user started."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Container, Generator, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.plugin.ending import close_session, keep_failing, receive_reports, write_session
from pytest_perfgate.plugin.options import child_environment
from pytest_perfgate.plugin.reporting import UsersFrames, for_terminal, headed, readable
from pytest_perfgate.plugin.selection import division
from pytest_perfgate.plugin.session import GateSession
from pytest_perfgate.plugin.state import ReadablePhases, Settings
from pytest_perfgate.plugin.summary import write_summary

if TYPE_CHECKING:
    from pytest_perfgate.plugin.fixture import Perfgate


class ControllerRole(ReadablePhases):
    """The controller's hooks, registered when the first gated test is found."""

    def __init__(self, config: pytest.Config) -> None:
        self.session = GateSession(Settings(config))
        self.recorded = False
        """Whether this run has written a record, or had none to write."""

    def gate(self, item: pytest.Item) -> Perfgate:
        return self.session.gate(item)

    def died(self) -> Container[str]:
        return self.session.died

    def before(self, session: pytest.Session, gated: list[pytest.Item]) -> None:
        """Measure, unless collection failed and no test will run."""
        if not session.testsfailed or session.config.option.continue_on_collection_errors:
            self.session.prepare(gated)

    def after(self, session: pytest.Session) -> None:
        close_session(self.session, complete=not session.shouldstop and not session.shouldfail)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        __tracebackhide__ = True
        with readable(), UsersFrames(item.config):
            result = yield
        self.session.judge(item)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
        report = yield
        headed(call, report)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        receive_reports(self.session, report)
        self.session.note(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and division(session.config) is not None:
            session.exitstatus = exitstatus = pytest.ExitCode.OK  # a shard without tests
        write_session(self.session, exitstatus)
        without = not self.session.cases and exitstatus in {0, 1, 5}  # such as a second job that runs other tests
        self.recorded = self.session.recorded or without

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        keep_failing(self.session, config)

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:
        shard = division(self.session.settings.pytest)
        if shard is not None:
            counts = f"{len(shard.chosen)} of {len(shard.universe.cases)} gated tests"
            terminalreporter.write_line(f"perfgate: shard {shard.index}/{shard.count}, {counts}")
        write_summary(terminalreporter, self.session, cut_short=exitstatus == pytest.ExitCode.INTERRUPTED)


LISTING = {
    "collectonly": ("--collect-only", "--collectonly", "--co"),
    "setupplan": ("--setup-plan",),
    "setuponly": ("--setup-only", "--setup-plan"),
    "showfixtures": ("--fixtures", "--funcargs"),
    "show_fixtures_per_test": ("--fixtures-per-test",),
    "markers": ("--markers",),
    "cacheshow": ("--cache-show",),
    "help": ("--help", "-h"),
    "version": ("--version", "-V"),
}
"""For each option that runs no test: its name in pytest, and its spellings; ``--setup-plan`` sets setuponly too."""


def refused(config: pytest.Config) -> int | None:
    """Return the exit code of a listing in a project with a gate; ``None`` if the command line asked for it."""
    options = tuple(_listing_options(config))
    if not options or hasattr(config, "workerinput"):
        return None
    from pytest_perfgate.plugin.selection import has_gate

    if not has_gate(config.rootpath, child_environment(config)):
        return None
    from pytest_perfgate.plugin.ending import close_records

    what = f"nothing was measured: {options[0]} stands in addopts, not on the command line"
    sys.stderr.write(for_terminal(f"ERROR: {PerfgateError('run-listed', what).text()}\n"))
    close_records(config, pytest.ExitCode.NO_TESTS_COLLECTED, reported=True)
    return pytest.ExitCode.NO_TESTS_COLLECTED


def _listing_options(config: pytest.Config) -> Iterator[str]:
    """Yield the listing options that are set, but neither by the command line nor by its environment."""
    words = [str(word) for word in config.invocation_params.args] + os.environ.get("PYTEST_ADDOPTS", "").split()
    for name, spellings in LISTING.items():
        if getattr(config.option, name, None) and not any(is_option(word, spellings) for word in words):
            yield spellings[0]


def is_option(word: str, spellings: Container[str]) -> bool:
    """Return whether a word of the command line is this option, with or without a value."""
    # ``--color`` only begins with ``--co``; a short option is doubled in ``-VV``
    return word.partition("=")[0] in spellings or word[:2] in spellings


def end_as_interrupted(config: pytest.Config) -> None:
    """Make SIGTERM end a run as an interrupt does, with a record and without leftover children."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        return
    own = os.getpid()

    def interrupt(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL if os.getpid() != own else signal.SIG_IGN)
        if os.getpid() != own:  # a fork of the user's ends as it would without us
            os.kill(os.getpid(), number)
        raise KeyboardInterrupt

    def restore() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    signal.signal(signal.SIGTERM, interrupt)
    config.add_cleanup(restore)


@contextmanager
def interrupts_handled() -> Iterator[None]:
    """Raise an interrupt again if Python lost it, as it does with one that is raised in a finaliser."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    received: list[int] = []
    served = before

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)
        served(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, before)
    if received:
        raise KeyboardInterrupt
