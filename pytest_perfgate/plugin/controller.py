"""The pytest that a person started: it measures before the first test and reports after the last."""

from __future__ import annotations

from collections.abc import Container, Generator
from typing import Any

import pytest

from pytest_perfgate.plugin.complaints import headed, readable
from pytest_perfgate.plugin.ending import close_session, write_session
from pytest_perfgate.plugin.fixture import Gate
from pytest_perfgate.plugin.frames import UsersFrames
from pytest_perfgate.plugin.overruled import stand_by
from pytest_perfgate.plugin.phases import ReadablePhases
from pytest_perfgate.plugin.session import GateSession
from pytest_perfgate.plugin.settings import Settings
from pytest_perfgate.plugin.summary import write_summary
from pytest_perfgate.plugin.unreported import hear


class ControllerRole(ReadablePhases):
    """Hooks that are registered when the first gated test is met."""

    def __init__(self, config: pytest.Config) -> None:
        self.session = GateSession(Settings(config))
        self.recorded = False
        """Whether this run has left a record."""

    def gate(self, item: pytest.Item) -> Gate:
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
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
        report = yield
        headed(item, call, report)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hear(self.session, report)
        self.session.note(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        write_session(self.session, exitstatus)
        self.recorded = self.session.recorded

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        stand_by(self.session, config)

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:
        write_summary(terminalreporter, self.session, cut_short=exitstatus == pytest.ExitCode.INTERRUPTED)
