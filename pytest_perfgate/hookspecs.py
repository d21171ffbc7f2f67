"""The hooks of plugins, one line each; called by pytest in tests, and by the command line itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_perfgate.model.metric import MetricKind
    from pytest_perfgate.model.ports import Delivery, Inspector, Profiler, Runtime, Timer
    from pytest_perfgate.model.values import Work


hookspec = pluggy.HookspecMarker("pytest")


@hookspec
def pytest_perfgate_metrics() -> Sequence[MetricKind]:
    """Kinds of metrics that limits may name."""
    raise NotImplementedError


@hookspec
def pytest_perfgate_runtimes() -> Sequence[Runtime]:
    """GPU libraries that timers can use."""
    raise NotImplementedError


@hookspec
def pytest_perfgate_timers() -> Sequence[Timer]:
    """Instruments that turn a call into samples."""
    raise NotImplementedError


@hookspec
def pytest_perfgate_profilers() -> Sequence[Profiler]:
    """Instruments that leave an artifact."""
    raise NotImplementedError


@hookspec
def pytest_perfgate_inspectors() -> Sequence[Inspector]:
    """Kinds of files that ``inspect``, ``check`` and ``compare`` understand."""
    raise NotImplementedError


@hookspec
def pytest_perfgate_operators() -> Mapping[str, Callable[..., Work]]:
    """Work of the user's own operators, by the name a trace gives them."""
    raise NotImplementedError


@hookspec
def pytest_perfgate_deliveries() -> Sequence[Delivery]:
    """Destinations of reports."""
    raise NotImplementedError
