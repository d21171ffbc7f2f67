"""The pytest that a person started: it measures before the first test and reports after the last."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_perfgate.plugin.settings import Settings

if TYPE_CHECKING:
    from pytest_perfgate.plugin.fixture import Gate
    from pytest_perfgate.plugin.session import GateSession


SEEN = "perfgate_seen"
"""The attribute of a worker's report that names the calls its test made."""


class ControllerRole:
    """Hooks that cost nothing until a gated test is met."""

    def __init__(self, config: pytest.Config) -> None:
        self.settings = Settings(config)
        self._session: GateSession | None = None
        if config.pluginmanager.has_plugin("xdist"):
            from pytest_perfgate.plugin.distributed import DistributedRole

            config.pluginmanager.register(DistributedRole(self), "perfgate-distributed")

    @property
    def session(self) -> GateSession:
        if self._session is None:
            from pytest_perfgate.plugin.session import GateSession

            self._session = GateSession(self.settings)
        return self._session

    def gate(self, item: pytest.Item) -> Gate:
        return self.session.gate(item)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        if not session.config.option.collectonly and not self._failed(session):
            items = [item for item in getattr(session, "items", ()) if is_gated(item)]
            if items:
                self.session.prepare(items)
        result = yield
        if self._session is not None:
            self._session.close(not session.shouldstop and not session.shouldfail)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        session = self._session
        if session is None:
            return (yield)
        with session.readable():
            result = yield
        session.judge(item)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._session is not None:
            self._session.note(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        if self._session is not None:
            self._session.write()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._session is not None:
            from pytest_perfgate.plugin.summary import write_summary

            write_summary(terminalreporter, self._session)

    @staticmethod
    def _failed(session: pytest.Session) -> bool:
        return bool(session.testsfailed) and not session.config.option.continue_on_collection_errors


def is_gated(item: pytest.Item) -> bool:
    """Whether a test has the marker or asks for the fixture; asked of every test of every session."""
    return item.get_closest_marker("perfgate") is not None or "perfgate" in getattr(item, "fixturenames", ())
