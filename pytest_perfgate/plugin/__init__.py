"""The pytest shell: nothing is imported here that pytest has not loaded already."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from pytest_perfgate.plugin.options import add_options

if TYPE_CHECKING:
    from pytest_perfgate.plugin.fixture import Gate

_MARKER = (
    "perfgate(*limits, on=, capture=, timer=, runtime=, cache=, clocks=, data=, rounds=, budget=): "
    "what this test's measurement must keep, such as 'time <= 3 ms' or 'slowdown <= 3%'"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_perfgate import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    address = os.environ.pop("PERFGATE_CHANNEL", "")
    role: Any
    if address:
        from pytest_perfgate.plugin.child import ChildRole

        role = ChildRole(config, address)
    elif hasattr(config, "workerinput"):
        from pytest_perfgate.plugin.workers import WorkerRole

        role = WorkerRole(config)
    else:
        from pytest_perfgate.plugin.controller import ControllerRole

        role = ControllerRole(config)
    config.pluginmanager.register(role, "perfgate-role")


@pytest.fixture
def perfgate(request: pytest.FixtureRequest) -> Gate:
    """Measures what it is called with and judges it by the test's ``perfgate`` marker.

    ``perfgate(fn, *args, setup=, work=, check=, calls=1, name=, limits=())`` calls ``fn`` and
    returns a view whose ``result`` is what ``fn`` returned and whose ``time`` is its time.
    """
    role: Any = request.config.pluginmanager.get_plugin("perfgate-role")
    gate: Gate = role.gate(request.node)
    return gate
