"""``-p pytest_perfgate.perf_report``: benchmarks of ``triton.testing.perf_report``, measured and judged by perfgate.

Each point of each line is one case. The file stays as it is: ``do_bench`` asks perfgate for its samples.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any

import pytest

from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.values import TIME_UNITS

if TYPE_CHECKING:
    from pytest_perfgate.plugin.fixture import Perfgate

_TIMERS = ("do_bench", "do_bench_cudagraph")
"""The library's timers of such benchmarks; only the first one clears caches before each call."""

_SUMMARIES: Mapping[str, Callable[[Sequence[float]], Any]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "min": min,
    "max": max,
    "all": list,
}


class CurrentBenchmark:
    """Measures the current benchmark; outside of a test the library's own timers do."""

    gate: Perfgate | None = None
    calls = 0


def pytest_configure(config: pytest.Config) -> None:
    """Replace the library's timers before a file with benchmarks imports them."""
    if find_spec("triton") is None:
        raise pytest.UsageError("-p pytest_perfgate.perf_report reads benchmarks of Triton: pip install triton")
    from triton import testing

    for name in _TIMERS:
        if timer := getattr(testing, name, None):
            setattr(testing, name, _measured(timer))
            config.add_cleanup(partial(setattr, testing, name, timer))


def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> Any:
    """Return the cases of a decorated benchmark, as the parameters of one test."""
    from triton.testing import Mark

    if not isinstance(obj, Mark):
        return None
    title = name if collector.funcnamefilter(name) else f"test_{name}"
    test = _test(obj.fn, title, list(_points(obj)))
    setattr(collector.obj, title, test)
    return collector.ihook.pytest_pycollect_makeitem(collector=collector, name=title, obj=test)


def _points(mark: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the id and the arguments of each point, in the library's order."""
    benchmarks = mark.benchmarks if isinstance(mark.benchmarks, (list, tuple)) else [mark.benchmarks]
    for benchmark in benchmarks:
        for values in benchmark.x_vals:
            along = values if isinstance(values, (list, tuple)) else [values for _ in benchmark.x_names]
            place = "-".join(f"{one}={value}" for one, value in zip(benchmark.x_names, along))
            for line in benchmark.line_vals:
                point = {**dict(zip(benchmark.x_names, along)), benchmark.line_arg: line, **benchmark.args}
                plot = f"{benchmark.plot_name}-" if len(benchmarks) > 1 else ""
                yield f"{plot}{place}-{line}", point


def _test(
    benchmark: Callable[..., Any], name: str, points: Sequence[tuple[str, dict[str, Any]]]
) -> Callable[..., None]:
    def test(perfgate: Perfgate, point: Mapping[str, Any]) -> None:
        CurrentBenchmark.gate, CurrentBenchmark.calls = perfgate, 0
        try:
            benchmark(**point)
        finally:
            CurrentBenchmark.gate = None

    test.__name__ = test.__qualname__ = name
    test.__module__, test.__doc__ = benchmark.__module__, benchmark.__doc__
    mark = pytest.mark.parametrize("point", [one for _, one in points], ids=[text for text, _ in points])
    marked: Callable[..., None] = mark(test)
    return pytest.mark.perfgate(cache="cold")(marked) if _has_device() else marked


def _has_device() -> bool:
    """Return whether the library would clear a device's cache before each call; it never clears the host's."""
    from triton.backends import backends

    return any(one.driver.is_active() for one in backends.values())


def _measured(timer: Callable[..., Any]) -> Callable[..., Any]:
    form = signature(timer)

    def measure(fn: Callable[[], Any], *args: Any, **named: Any) -> Any:
        gate = CurrentBenchmark.gate
        if gate is None:
            return timer(fn, *args, **named)
        options = form.bind(fn, *args, **named).arguments
        inputs = options.get("grad_to_none") or ()
        begin = HOST_CLOCK.wall()
        CurrentBenchmark.calls += 1
        name = f"timing {CurrentBenchmark.calls}" if CurrentBenchmark.calls > 1 else ""
        view = gate(fn, setup=partial(_clear_gradients, inputs) if inputs else None, name=name)
        once = HOST_CLOCK.wall() - begin
        durations = [one for process in gate.kept(view.key) for one in process.durations] if gate.measures else [once]
        if not durations:
            raise PerfgateError("not-measured", f"{view.key} kept no sample")
        times = sorted(duration / TIME_UNITS["ms"] for duration in durations)
        shares = options.get("quantiles")
        if shares:
            values = [_quantile(times, share) for share in shares]
            return values if len(values) > 1 else values[0]
        return _SUMMARIES[options.get("return_mode", "mean")](times)

    return measure


def _clear_gradients(inputs: Sequence[Any]) -> None:
    """Clear gradients, so that those of the previous call are not added to."""
    for one in inputs:
        one.grad = None


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
