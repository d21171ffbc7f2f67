"""The roles of pytest-xdist's workers and controller."""

from __future__ import annotations

import tempfile
from collections.abc import Container, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_perfgate.plugin import is_gated, role_of
from pytest_perfgate.plugin.options import child_environment
from pytest_perfgate.plugin.reporting import SEEN, usage_errors
from pytest_perfgate.plugin.state import ReadablePhases, Settings

if TYPE_CHECKING:
    from pytest_perfgate.plugin.fixture import Perfgate
    from pytest_perfgate.plugin.session import GateSession


CASES, VERDICTS, FAULTS, DIED = "cases-{}.json", "verdicts.json", "faults.json", "died.json"

LEFT_OUT = "left-out-{}.json"

SHARDS = "shard-{}.json"

REFUSED = "refused-{}.json"


class WorkerRole(ReadablePhases):
    """Hooks of a worker."""

    def __init__(self, config: pytest.Config) -> None:
        self.settings = Settings(config)
        inputs: dict[str, Any] = getattr(config, "workerinput", {})
        self._folder = Path(inputs.get("perfgate", ""))
        self._name = str(inputs.get("workerid", ""))
        self._session: GateSession | None = None
        self._loaded = False

    @contextmanager
    def _sending_refusals(self) -> Iterator[None]:
        """Send an error of usage to the controller, which ends the run with it; here it would end the worker alone."""
        try:
            with usage_errors():
                yield
        except pytest.UsageError as fault:
            from pytest_perfgate.wiring import write_values

            write_values(self._folder / REFUSED.format(self._name), [str(fault)])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self) -> Generator[None, Any, Any]:
        with self._sending_refusals():
            yield

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Write this worker's cases before it tells the controller that it has collected."""
        with self._sending_refusals():
            self._divided(session.config)
            self._collected([item for item in session.items if is_gated(item)], session.config)

    def _collected(self, items: list[pytest.Item], config: pytest.Config) -> None:
        if items:
            from pytest_perfgate.plugin.selection import deselected
            from pytest_perfgate.plugin.session import GateSession
            from pytest_perfgate.wiring import write_values

            self._session = GateSession(self.settings, ahead=True)
            self._session.collect(items)
            write_values(self._folder / CASES.format(self._name), tuple(self._session.cases.values()))
            write_values(
                self._folder / LEFT_OUT.format(self._name), sorted({*deselected(config), *self._session.faults})
            )

    def _divided(self, config: pytest.Config) -> None:
        """Tell the controller, which collects nothing, which shard this is and what the others run."""
        if not config.option.perfgate_shard:
            return
        from pytest_perfgate.plugin.selection import division
        from pytest_perfgate.wiring import write_values

        shard = division(config)
        write_values(self._folder / SHARDS.format(self._name), (shard,) if shard is not None else ())

    def before(self, session: pytest.Session, gated: list[pytest.Item]) -> None:
        """Do nothing: the controller measures."""

    def after(self, session: pytest.Session) -> None:
        """Do nothing: the controller reports."""

    def gate(self, item: pytest.Item) -> Perfgate:
        return self._loaded_session().gate(item)

    def died(self) -> Container[str]:
        return self._loaded_session().died if self._session is not None else ()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        __tracebackhide__ = True
        if self._session is None:
            result = yield
            self._judged_late(item)
            return result
        from pytest_perfgate.plugin.reporting import UsersFrames, readable

        session = self._loaded_session()
        with readable(), UsersFrames(item.config):
            result = yield
        session.judge(item)
        return result

    def _judged_late(self, item: pytest.Item) -> None:
        """Judge a test without a marker that requested the fixture while it ran."""
        if self._session is not None:
            self._session.judge(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
        report = yield
        if self._session is not None:
            from pytest_perfgate.plugin.reporting import headed

            headed(call, report)
        if self._session is not None and report.when == "call" and item.nodeid in self._session.judged:
            setattr(report, SEEN, self._session.call_names(item.nodeid))
        return report

    def _loaded_session(self) -> GateSession:
        """Return the session with the verdicts that the controller wrote after all workers had collected."""
        if self._session is None:  # this worker collected no gated test
            from pytest_perfgate.plugin.session import GateSession

            self._session = GateSession(self.settings, ahead=True)
        if not self._loaded:
            from pytest_perfgate.model.protocol import Fault
            from pytest_perfgate.model.verdict import CaseReport
            from pytest_perfgate.wiring import read_values

            self._loaded = True
            for report in read_values(self._folder / VERDICTS, CaseReport):
                self._session.store(report)
            self._session.died.update(read_values(self._folder / DIED, str))
            for fault in read_values(self._folder / FAULTS, Fault):
                self._session.faults[fault.nodeid] = fault.error()
        return self._session


class DistributedRole:
    """Hooks that pytest-xdist calls in its controller."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._collecting: set[str] = set()
        self._measured = False
        if getattr(config.option, "perfgate_device", None):
            self._narrow()

    def _narrow(self) -> None:
        """Select the device before a worker starts, since workers and children inherit the visible devices."""
        from pytest_perfgate.wiring.devices import pick_device

        with usage_errors():
            pick_device(self._config.option)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="perfgate-")
        node.workerinput["perfgate"] = self._folder.name
        self._collecting.add(node.gateway.id)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any) -> None:
        self._collected_on(node)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._collected_on(node)

    def pytest_unconfigure(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def _collected_on(self, node: Any) -> None:
        """Measure when the last worker has collected; no worker has started a test before that."""
        self._collecting.discard(node.gateway.id)
        if not self._collecting and not self._measured and self._folder is not None:
            self._measured = True
            self._measure(Path(self._folder.name))

    def _measure(self, folder: Path) -> None:
        from pytest_perfgate.plugin.selection import deselected, has_gate

        _raise_refusal(folder)
        listed, shards = sorted(folder.glob(CASES.format("*"))), sorted(folder.glob(SHARDS.format("*")))
        ci = child_environment(self._config)
        if not (listed or shards) and not (ci.get("CI") and has_gate(self._config.rootpath, ci)):
            return
        from pytest_perfgate.model.plan import Case
        from pytest_perfgate.model.protocol import Fault
        from pytest_perfgate.model.verdict import Shard
        from pytest_perfgate.plugin.controller import end_as_interrupted
        from pytest_perfgate.plugin.selection import DIVISION, refuse_shard_of_change
        from pytest_perfgate.wiring import read_values, write_values

        session = role_of(self._config).session
        with usage_errors():
            session.settings.read()
            if shards:
                refuse_shard_of_change(self._config)
        for shard in (shard for path in shards for shard in read_values(path, Shard)):
            self._config.stash[DIVISION] = shard
        for path in listed:
            session.cases.update((case.nodeid, case) for case in read_values(path, Case))
        if session.cases:
            end_as_interrupted(self._config)
        for path in folder.glob(LEFT_OUT.format("*")):
            deselected(self._config).update(read_values(path, str))
        if not getattr(self._config.option, "setuponly", False):
            session.measure()
        with usage_errors():
            write_values(folder / FAULTS, [Fault.of(nodeid, error) for nodeid, error in session.faults.items()])
            write_values(folder / DIED, sorted(session.died))
            write_values(folder / VERDICTS, [report for reports in session.reports.values() for report in reports])


def _raise_refusal(folder: Path) -> None:
    """Raise the error of usage that a worker met."""
    for path in sorted(folder.glob(REFUSED.format("*"))):
        from pytest_perfgate.wiring import read_values

        raise pytest.UsageError(*read_values(path, str))
