"""``-p pytest_perfgate.compat``: the ``benchmark`` fixture of pytest-benchmark, measured and judged by perfgate."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.plugin import ROLE
from pytest_perfgate.plugin.benchmark_compat import (
    add_benchmark_options,
    apply_options,
    earlier_plugin,
    gate_hidden,
    gate_test,
    measure_test,
    option_notes,
    reserve_plugin_names,
    select,
)
from pytest_perfgate.plugin.calls import FREE, Schedule

if TYPE_CHECKING:
    from pytest_perfgate.plugin.fixture import Perfgate

_LEAST = {"rounds": 1, "iterations": 1, "warmup_rounds": 0}


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Keep their plugins out, and add their options, so that ``addopts`` may contain them."""
    reserve_plugin_names(pluginmanager)
    add_benchmark_options(parser)


def pytest_plugin_registered(plugin: object, manager: pytest.PytestPluginManager) -> None:
    """Allow a conftest's hooks of pytest-benchmark, which are never called."""
    for name in dir(plugin):
        if name.startswith("pytest_benchmark_"):
            for implementation in getattr(manager.hook, name).get_hookimpls():
                implementation.optionalhook = True


class Stats:
    """``benchmark.stats``: figures by ``stats["mean"]`` and ``stats.stats.mean``, times in seconds.

    They cover all samples of this call in the measuring process, or in all processes if fresh ones measured before the
    tests.
    """

    def __init__(self, benchmark: Benchmark) -> None:
        self._benchmark = benchmark

    def __bool__(self) -> bool:
        return bool(self._benchmark.samples())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._benchmark, name)

    def __getitem__(self, name: str) -> Any:
        return getattr(self.stats, name) if hasattr(self.stats, name) else getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self.stats, name, getattr(self, name, default))

    @property
    def stats(self) -> Any:
        from pytest_perfgate.core.stats.inference import SampleStatistics

        samples = self._benchmark.samples()
        if not samples:
            what = f"benchmark.stats of {self._benchmark.fullname} was read, and no sample of it was kept"
            raise PerfgateError("not-measured", what)
        return SampleStatistics([duration / 1e9 for process in samples for duration in process.durations])

    @property
    def iterations(self) -> int:
        """The calls for each sample."""
        return max((process.batch for process in self._benchmark.samples()), default=1)

    def as_dict(self) -> dict[str, Any]:
        names = ("group", "name", "fullname", "params", "param", "extra_info")
        figures = {**self.stats.as_dict(), "data": self.stats.data, "iterations": self.iterations}
        return {**{name: getattr(self, name) for name in names}, "stats": figures}


class Benchmark:
    """Calls, ``pedantic``, ``extra_info``, ``group`` and the names of the test; ``weave`` is refused."""

    has_error = skipped = False
    cprofile = cprofile_stats = cprofile_loops = cprofile_dump = None

    def __init__(self, gate: Perfgate, node: Any) -> None:
        self._gate, self._node = gate, node
        marker = node.get_closest_marker("benchmark")
        self.name, self.fullname = node.name, node.nodeid
        callspec = getattr(node, "callspec", None)
        self.param: str | None = callspec.id if callspec else None
        self.params: dict[str, Any] | None = dict(callspec.params) if callspec else None
        self.group: str | None = marker.kwargs.get("group") if marker else None
        self._min_rounds: int = marker.kwargs.get("min_rounds", 1) if marker else 1
        self.extra_info: dict[str, Any] = {}
        self._view: Any = None

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        _check_schedule({"rounds": self._min_rounds})
        return self._measured(_bound(function, args, kwargs), schedule=Schedule(self._min_rounds))

    def pedantic(
        self,
        target: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        setup: Callable[[], Any] | None = None,
        teardown: Callable[..., Any] | None = None,
        **schedule: int,
    ) -> Any:
        """Take at least ``rounds`` samples of ``iterations`` calls each, after ``warmup_rounds`` that are not timed."""
        _check_schedule(schedule)
        planned = Schedule(schedule.get("rounds", 0), schedule.get("iterations", 1), schedule.get("warmup_rounds", 0))
        if setup is None and teardown is None:
            return self._measured(_bound(target, args, kwargs or {}), schedule=planned)
        if planned.iterations != 1 and setup is not None:
            raise ValueError("setup runs before each call: iterations must be 1")
        prepared = _Prepared(args, kwargs or {}, setup, teardown)
        try:
            return self._measured(lambda call: target(*call[0], **call[1]), prepared.arguments, planned)
        finally:
            prepared.clear()

    def weave(self, *_: object, **__: object) -> None:
        raise NotImplementedError(
            "benchmark.weave patches a function for the whole test: perfgate measures calls. "
            "Call benchmark(function, ...) instead"
        )

    patch = weave

    @property
    def stats(self) -> Stats | None:
        """The figures as in pytest-benchmark; ``None`` before the call, and if the run measures nothing."""
        return None if self._view is None or self.disabled else Stats(self)

    @property
    def enabled(self) -> bool:
        return self._gate.measures

    @property
    def disabled(self) -> bool:
        return not self._gate.measures

    def samples(self) -> Sequence[Any]:
        """The samples of each process; empty before the call, and if this run measures nothing."""
        return (
            () if self._view is None else [samples for samples in self._gate.kept(self._view.key) if samples.durations]
        )

    def junit_properties(self) -> Iterator[tuple[str, object]]:
        """Yield the test's own figures for its JUnit entry."""
        if self.group is not None:
            yield "benchmark.group", self.group
        yield from ((f"benchmark.extra_info.{name}", value) for name, value in self.extra_info.items())

    def _measured(
        self, call: Callable[..., Any], setup: Callable[[], Any] | None = None, schedule: Schedule = FREE
    ) -> Any:
        if self._view is not None:
            raise RuntimeError("benchmark was called already in this test")
        self._view = self._gate.scheduled(call, setup, schedule)
        return self._view.result


def _bound(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[[], Any]:
    return partial(function, *args, **kwargs) if args or kwargs else function


class _Prepared:
    """Arguments made anew before each call, and torn down before the next; neither is timed."""

    def __init__(self, args: Sequence[Any], kwargs: Mapping[str, Any], setup: Any, teardown: Any) -> None:
        self._given = (args, kwargs)
        self._setup, self._teardown = setup, teardown
        self._pending: tuple[Any, Any] | None = None

    def arguments(self) -> tuple[tuple[Any, Any]]:
        self.clear()
        prepared = self._setup() if self._setup is not None else None
        if prepared and any(self._given):
            raise TypeError("setup returned arguments, and args or kwargs were given as well")
        self._pending = (prepared[0], prepared[1]) if prepared else self._given
        return (self._pending,)

    def clear(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None and self._teardown is not None:
            self._teardown(*pending[0], **pending[1])


def _check_schedule(schedule: Mapping[str, int]) -> None:
    unknown = set(schedule) - set(_LEAST)
    if unknown:
        raise TypeError(f"pedantic() has no argument {min(unknown)!r}")
    for name, count in schedule.items():
        if not isinstance(count, int) or count < _LEAST[name]:
            raise ValueError(f"{name}={count!r} is not a whole number from {_LEAST[name]}")


def pytest_configure(config: pytest.Config) -> None:
    name = earlier_plugin(config.pluginmanager)
    if name:
        raise pytest.UsageError(
            f"{name} is loaded and has a fixture of the same name: load pytest_perfgate.compat by -p"
        )
    config.addinivalue_line(
        "markers", "benchmark(group=, min_rounds=, ...): of pytest-benchmark; others have no effect"
    )
    config.addinivalue_line("markers", "codspeed_benchmark(**schedule): of pytest-codspeed; the whole test is measured")
    apply_options(config)
    if config.option.benchmark_json and not config.pluginmanager.has_plugin(ROLE):
        from pytest_perfgate.plugin.benchmark_compat import BenchmarkJson

        config.pluginmanager.register(BenchmarkJson(config.option.benchmark_json), "perfgate-benchmark-json")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    gate_test(items)
    gate_hidden(items)
    select(config.option, items)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    return measure_test(pyfuncitem, Benchmark)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any) -> Generator[None, Any, Any]:
    report = yield
    if item.config.option.benchmark_json and report.when == "call":
        from pytest_perfgate.plugin.benchmark_compat import FIGURES, plain

        benchmark = getattr(item, "funcargs", {}).get("benchmark")
        if isinstance(benchmark, Benchmark) and benchmark.stats:
            setattr(report, FIGURES, plain(benchmark.stats.as_dict()))
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    from pytest_perfgate.plugin.reporting import columns, folded

    width = columns(terminalreporter.config)
    for line in (line for note in option_notes(terminalreporter.config) for line in folded(note, width)):
        terminalreporter.write_line(line)


@pytest.fixture
def benchmark(perfgate: Perfgate, request: pytest.FixtureRequest) -> Iterator[Benchmark]:
    """pytest-benchmark's fixture, measured and judged by perfgate."""
    bench = Benchmark(perfgate, request.node)
    perfgate.offer(lambda: bench.extra_info)
    yield bench
    request.node.user_properties.extend(bench.junit_properties())


@pytest.fixture
def benchmark_weave(benchmark: Benchmark) -> Callable[..., None]:
    """Refuse ``benchmark.weave``, with the reason."""
    return benchmark.weave


@pytest.fixture
def codspeed_benchmark(benchmark: Benchmark) -> Benchmark:
    """Return the fixture under the name of pytest-codspeed."""
    return benchmark
