"""The controller of pytest-xdist: it measures when every worker has collected, and they wait for it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from pytest_perfgate.plugin.roles import role_of
from pytest_perfgate.plugin.told import told
from pytest_perfgate.plugin.workers import CASES, DIED, FAULTS, LEFT_OUT, VERDICTS


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
        """Before there is a worker: what this process shows of devices is what workers and children inherit."""
        from pytest_perfgate.plugin.complaints import usage_errors
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
        self._heard_of(node)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._heard_of(node)

    def pytest_unconfigure(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def _heard_of(self, node: Any) -> None:
        """The last worker to finish collecting lets the measuring begin; none has a test yet."""
        self._collecting.discard(node.gateway.id)
        if not self._collecting and not self._measured and self._folder is not None:
            self._measured = True
            self._measure(Path(self._folder.name))

    def _measure(self, folder: Path) -> None:
        from pytest_perfgate.plugin.reaching import deselected, keeps_baselines

        listed = sorted(folder.glob(CASES.format("*")))
        ci = told(self._config)
        if not listed and not (ci.get("CI") and keeps_baselines(self._config.rootpath, ci)):
            return
        from pytest_perfgate.model.children import Fault
        from pytest_perfgate.model.plan import Case
        from pytest_perfgate.plugin.complaints import usage_errors
        from pytest_perfgate.wiring import read_values, write_values

        session = role_of(self._config).session
        for path in listed:
            session.cases.update((case.nodeid, case) for case in read_values(path, Case))
        for path in folder.glob(LEFT_OUT.format("*")):
            deselected(self._config).update(read_values(path, str))
        if not getattr(self._config.option, "setuponly", False):
            session.measure()
        with usage_errors():
            write_values(folder / FAULTS, [Fault.of(nodeid, error) for nodeid, error in session.faults.items()])
            write_values(folder / DIED, sorted(session.died))
            write_values(folder / VERDICTS, [report for found in session.reports.values() for report in found])
