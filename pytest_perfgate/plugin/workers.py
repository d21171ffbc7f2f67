"""A pytest-xdist worker: it says which tests are gated, waits, and judges by what the controller measured."""

from __future__ import annotations

from collections.abc import Container, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_perfgate.plugin.phases import ReadablePhases
from pytest_perfgate.plugin.properties import SEEN
from pytest_perfgate.plugin.roles import is_gated
from pytest_perfgate.plugin.settings import Settings

if TYPE_CHECKING:
    from pytest_perfgate.plugin.fixture import Gate
    from pytest_perfgate.plugin.session import GateSession

CASES, VERDICTS, FAULTS, DIED = "cases-{}.json", "verdicts.json", "faults.json", "died.json"
LEFT_OUT = "left-out-{}.json"


class WorkerRole(ReadablePhases):
    """Hooks of a worker."""

    def __init__(self, config: pytest.Config) -> None:
        self.settings = Settings(config)
        told: dict[str, Any] = getattr(config, "workerinput", {})
        self._folder = Path(told.get("perfgate", ""))
        self._name = str(told.get("workerid", ""))
        self._session: GateSession | None = None
        self._loaded = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Before the worker tells the controller that it has collected."""
        items = [item for item in session.items if is_gated(item)]
        if items:
            from pytest_perfgate.plugin.reaching import deselected
            from pytest_perfgate.plugin.session import GateSession
            from pytest_perfgate.wiring import write_values

            self._session = GateSession(self.settings, ahead=True)
            self._session.collect(items)
            write_values(self._folder / CASES.format(self._name), tuple(self._session.cases.values()))
            write_values(
                self._folder / LEFT_OUT.format(self._name), sorted({*deselected(session.config), *self._session.faults})
            )

    def before(self, session: pytest.Session, gated: list[pytest.Item]) -> None:
        """The controller measures."""

    def after(self, session: pytest.Session) -> None:
        """The controller reports."""

    def gate(self, item: pytest.Item) -> Gate:
        return self._told().gate(item)

    def died(self) -> Container[str]:
        return self._told().died if self._session is not None else ()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        __tracebackhide__ = True
        if self._session is None:
            result = yield
            self._judged_late(item)
            return result
        from pytest_perfgate.plugin.complaints import readable
        from pytest_perfgate.plugin.frames import UsersFrames

        session = self._told()
        with readable(), UsersFrames(item.config):
            result = yield
        session.judge(item)
        return result

    def _judged_late(self, item: pytest.Item) -> None:
        """A test without a marker may ask for the fixture while it runs."""
        if self._session is not None:
            self._session.judge(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
        report = yield
        if self._session is not None:
            from pytest_perfgate.plugin.complaints import headed

            headed(item, call, report)
        if self._session is not None and report.when == "call" and item.nodeid in self._session.judged:
            setattr(report, SEEN, self._session.seen(item.nodeid))
        return report

    def _told(self) -> GateSession:
        """The session with the verdicts that the controller wrote, once all had collected."""
        if self._session is None:  # nothing was gated when this worker collected
            from pytest_perfgate.plugin.session import GateSession

            self._session = GateSession(self.settings, ahead=True)
        if not self._loaded:
            from pytest_perfgate.model.children import Fault
            from pytest_perfgate.model.verdict import CaseReport
            from pytest_perfgate.wiring import read_values

            self._loaded = True
            for report in read_values(self._folder / VERDICTS, CaseReport):
                self._session.store(report)
            self._session.died.update(read_values(self._folder / DIED, str))
            for fault in read_values(self._folder / FAULTS, Fault):
                self._session.faults[fault.nodeid] = fault.error()
        return self._session
