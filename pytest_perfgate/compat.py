"""``-p pytest_perfgate.compat``: the ``benchmark`` fixture of pytest-benchmark, measured and judged by perfgate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from pytest_perfgate.plugin.fixture import Gate
from pytest_perfgate.plugin.view import View

_THEIRS = "pytest-benchmark is loaded and has a fixture of the same name: add -p no:benchmark"
_FLAGS = ("autosave", "disable-gc", "skip", "disable", "enable", "only", "save-data", "verbose", "quiet")
_VALUES = (
    "min-time", "max-time", "min-rounds", "timer", "calibration-precision", "warmup-iterations", "json", "cprofile",
    "cprofile-loops", "cprofile-top", "cprofile-dump", "storage", "netrc", "sort", "group-by", "columns", "name",
    "save", "time-unit", "compare-fail",
)  # fmt: skip
_EITHER = ("warmup", "compare", "histogram")


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Its options may stand in ``addopts``: they are accepted and do nothing. The plugin itself stays out."""
    pluginmanager.set_blocked("benchmark")
    group = parser.getgroup("benchmark", "pytest-benchmark's options, accepted and without effect")
    for name in _FLAGS:
        group.addoption(f"--benchmark-{name}", action="store_true", help="no effect")
    for name in _VALUES:
        group.addoption(f"--benchmark-{name}", action="append", help="no effect")
    for name in _EITHER:
        group.addoption(f"--benchmark-{name}", nargs="?", const="", help="no effect")


class Stats:
    """What ``benchmark.stats`` gives: times in seconds, as pytest-benchmark has them."""

    def __init__(self, view: View) -> None:
        self._view = view

    def __getitem__(self, name: str) -> float:
        return float(getattr(self, name))

    @property
    def median(self) -> float:
        return self._view.time / 1e9

    mean = min = max = median
    """One process is summed up by its median; the others are asked for by old suites alone."""


class Benchmark:
    """Calls, ``pedantic``, ``extra_info``, ``group`` and ``name``; ``weave`` is refused."""

    disabled = False

    def __init__(self, gate: Gate, name: str) -> None:
        self._gate, self.name, self.fullname = gate, name, name
        self.group: str | None = None
        self.extra_info: dict[str, Any] = {}
        self._view: View | None = None

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._measured(partial(function, *args, **kwargs) if args or kwargs else function)

    def pedantic(
        self,
        target: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        **schedule: int,
    ) -> Any:
        """``rounds``, ``warmup_rounds`` and ``iterations`` are accepted; perfgate's own stopping rule decides."""
        unknown = set(schedule) - {"rounds", "warmup_rounds", "iterations"}
        if unknown:
            raise TypeError(f"pedantic() has no argument {min(unknown)!r}")
        if setup is None:
            return self(target, *args, **(kwargs or {}))
        if schedule.get("iterations", 1) != 1:
            raise ValueError("setup runs before each call: iterations must be 1")
        if args or kwargs:
            return self._measured(lambda: target(*args, **(kwargs or {})), setup=lambda: _nothing(setup()))
        return self._measured(lambda given: target(*given[0], **given[1]), setup=lambda: (_arguments(setup()),))

    def weave(self, *_: object, **__: object) -> None:
        raise NotImplementedError(
            "benchmark.weave patches a function for the whole test: perfgate measures calls. "
            "Call benchmark(function, ...) instead"
        )

    patch = weave

    @property
    def stats(self) -> Stats:
        if self._view is None:
            raise AttributeError("benchmark.stats is there after the benchmark ran")
        return Stats(self._view)

    @property
    def enabled(self) -> bool:
        return self._gate.measures

    def _measured(self, call: Callable[..., Any], setup: Callable[[], Any] | None = None) -> Any:
        if self._view is not None:
            raise RuntimeError("benchmark was called already in this test")
        self._view = self._gate(call, setup=setup)
        return self._view.result


def _nothing(returned: object) -> None:
    """With arguments given, a setup must not give them too."""
    if returned is not None:
        raise TypeError("setup returned arguments, and args or kwargs were given as well")


def _arguments(returned: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    return ((), {}) if returned is None else (returned[0], returned[1])


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.pluginmanager.has_plugin("benchmark"):
        raise pytest.UsageError(_THEIRS)
    config.addinivalue_line("markers", "benchmark(**schedule): of pytest-benchmark; perfgate's own rule decides")


@pytest.fixture
def benchmark(perfgate: Gate, request: pytest.FixtureRequest) -> Benchmark:
    """pytest-benchmark's fixture, measured and judged by perfgate."""
    return Benchmark(perfgate, request.node.name)
