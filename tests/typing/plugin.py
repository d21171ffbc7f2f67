"""A plugin as its author types it: a runtime, a timer, an inspector, a metric, the work of an operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_perfgate import PerfgateError, work
from pytest_perfgate.model import (
    Analysis,
    Availability,
    Better,
    Call,
    Column,
    Delivery,
    Device,
    Dimension,
    Document,
    Event,
    Inspector,
    Metric,
    MetricKind,
    MetricSet,
    Plan,
    QueueRuntime,
    RunReport,
    Runtime,
    Samples,
    Stop,
    SupportsClock,
    Table,
    Timer,
    Work,
)
from pytest_perfgate.testing import FakeRuntime, SimulatedGpu


class Mark:
    """An event of the library."""

    def record(self) -> None: ...

    def since(self, earlier: Any) -> float:
        return 0.0 if earlier is self else 1.0


class Library:
    """A runtime of the author's own."""

    name = "library"

    def availability(self) -> Availability:
        return Availability(name=self.name, usable=False, why="no device", fix="plug one in")

    def recognises(self, module_names: frozenset[str]) -> bool:
        return "library" in module_names

    def device(self, index: int = 0) -> Device:
        return Device(key="library", name="Library", kind="gpu", index=index)

    def synchronize(self) -> None: ...

    def event(self) -> Event:
        return Mark()

    def capture(self, call: Call) -> Call:
        raise PerfgateError("graph-unsupported", f"{call} cannot be captured")

    def flush(self) -> None: ...


class Stopwatch:
    """A timer of the author's own."""

    name = "stopwatch"

    def availability(self, runtime: Runtime) -> Availability:
        return Availability(name=self.name, usable=runtime.availability().usable)

    def measure(self, call: Call, plan: Plan, runtime: Runtime, setup: Call | None = None) -> Samples:
        if setup is not None:
            setup()
        begin, end = runtime.event(), runtime.event()
        begin.record()
        call()
        end.record()
        runtime.synchronize()
        return Samples(durations=(end.since(begin),) * plan.min_samples, timer=self.name, stop=Stop.COUNT)


class Tally:
    """Files that hold a number."""

    name = "tally"
    views = ("number",)
    options = (("floor", "what counts at least"),)

    def recognises(self, path: Path, head: bytes) -> bool:
        return path.suffix == ".tally" and head.startswith(b"TALLY")

    def inspect(self, paths: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        count = float(options.get("floor", len(paths)))
        table = Table(columns=(Column(name="atomics", dimension=Dimension.COUNT),), rows=((count,),))
        metrics = MetricSet(metrics=(Metric(name="atomics", value=count, dimension=Dimension.COUNT),))
        document = Document(title="Tally", blocks=(table,))
        return Analysis(kind=self.name, subject="tally", metrics=metrics, views={"number": lambda: document})

    def compare(self, before: Sequence[Path], after: Sequence[Path], options: Mapping[str, str]) -> Analysis:
        return self.inspect([*before, *after], options)


class Mail:
    """A place that reports go to."""

    name = "mail"

    def deliver(self, report: RunReport, target: str) -> str:
        return f"{len(report.cases)} cases to {target}"


def pytest_perfgate_runtimes() -> Sequence[Runtime]:
    return [Library()]


def pytest_perfgate_timers() -> Sequence[Timer]:
    return [Stopwatch()]


def pytest_perfgate_inspectors() -> Sequence[Inspector]:
    return [Tally()]


def pytest_perfgate_deliveries() -> Sequence[Delivery]:
    return [Mail()]


def pytest_perfgate_metrics() -> Sequence[MetricKind]:
    return [MetricKind(name="atomics", dimension=Dimension.COUNT, better=Better.LOWER, doc="atomic operations")]


def pytest_perfgate_operators() -> Mapping[str, Callable[..., Work]]:
    return {"library::gate": lambda call: work.elementwise(call.shape(0), dtype=call.dtype(0), inputs=2)}


def tried() -> Samples:
    """The timer on runtimes of known times."""
    fake: Runtime = FakeRuntime([5_000.0])
    gpu: QueueRuntime = SimulatedGpu()
    clocks: Sequence[SupportsClock] = [FakeRuntime([5_000.0]), SimulatedGpu()]
    assert all(clock.clock() >= 0 for clock in clocks)
    Stopwatch().measure(lambda: None, Plan(), gpu)
    return Stopwatch().measure(lambda: None, Plan(min_samples=4), fake, setup=lambda: None)
