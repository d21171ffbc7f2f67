"""What a call of the fixture does in each mode: off, full and quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from glob import glob
from pathlib import Path
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any

from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import MetricSet
from pytest_perfgate.model.plan import SPEEDUP, CaseKey
from pytest_perfgate.model.protocol import OWN, STATIC
from pytest_perfgate.plugin.calls import Brought, MeasuredCall, View

if TYPE_CHECKING:
    from pytest_perfgate.app.passes import References
    from pytest_perfgate.model.measurement import Artifact, Measurement, Reading, Reference, Samples
    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.model.ports import Inspector
    from pytest_perfgate.model.protocol import Capture
    from pytest_perfgate.plugin.measuring import Measuring

_PENDING = "\0"
"""Stands for the name of the first call in figures that came before it."""


_WAITS = {"jax": "block_until_ready", "mlx.core": "eval"}
"""Libraries that return arrays before they are computed, and their functions that wait for these."""


def awaited(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the call with a wait for the arrays that it returns, if such a library is loaded."""
    functions = (getattr(sys.modules.get(name), wait, None) for name, wait in _WAITS.items())  # a module may be blocked
    return partial(_after, waits, fn) if (waits := [wait for wait in functions if wait is not None]) else fn


def _after(waits: Iterable[Callable[[Any], Any]], fn: Callable[..., Any], *args: Any) -> Any:
    result = fn(*args)
    if type(result) in (list, tuple, dict) or type(result).__module__ not in ("builtins", "numpy"):
        for wait in waits:
            wait(result)
    return result


class Nesting:
    """Knows the thread that is inside a measured call; there is one at a time, since two would slow each other."""

    def __init__(self) -> None:
        self._turn, self._thread = Lock(), 0

    @contextmanager
    def entered(self) -> Iterator[None]:
        if not self._turn.acquire(blocking=False):
            what, fix = "called while another thread was in a measured call", "make one call after the other"
            raise PerfgateError("call-wrong", what, fix=fix)
        self._thread = get_ident()
        try:
            yield
        finally:
            self._thread = 0
            self._turn.release()

    def refuse(self, nodeid: str) -> None:
        if get_ident() == self._thread:
            what, fix = "called inside a measured call", "measure each by itself; for a part of a call: region()"
            raise PerfgateError("call-wrong", what, fix=fix, place=nodeid)


class Bench:
    """``off``: each call runs once and nothing is measured."""

    measures = False

    def __init__(self, case: Case) -> None:
        self.case = case
        self.notes: dict[str, str] = {}
        self.artifacts: list[Artifact] = []
        self.calls: list[CaseKey] = []
        """The calls that the test measured, or would have."""
        self.figures: dict[CaseKey, list[Reading]] = {}
        """Figures of the test's own, under the call that preceded them."""
        self.offered: Callable[[], Mapping[str, object]] = dict
        """Figures that the test reported itself and that a limit may name."""
        self.raised: dict[CaseKey, str] = {}
        """Errors of its calls, even if the test catches them."""

    @property
    def call_keys(self) -> list[CaseKey]:
        """Return the calls of the test, or the test itself if it made no call and took figures."""
        return self.calls or [CaseKey(nodeid=self.case.nodeid) for _ in list(self.figures)[:1]]

    def figure(self, reading: Reading) -> None:
        """Add a figure to the call measured last, or to the first call if there was none yet."""
        key = self.calls[-1] if self.calls else CaseKey(nodeid=self.case.nodeid, name=_PENDING)
        self.figures.setdefault(key, []).append(reading)

    def readings(self, key: CaseKey) -> tuple[Reading, ...]:
        """Return the figures of one call; the first call also has those that came before it."""
        first = key in self.call_keys[:1]
        pending = CaseKey(nodeid=self.case.nodeid, name=_PENDING) if first else key
        return (*self.figures.get(pending, ()), *(self.figures.get(key, ()) if key != pending else ()))

    def take(self, call: MeasuredCall) -> View:
        self.calls.append(call.key)
        return View(call.key, call.once(), metrics=self.metrics, reason=self.reason)

    def drop(self, key: CaseKey) -> None:
        """Discard the measurement of a call that raised: the time was not that of its work."""

    def bring(self, brought: Brought) -> None:
        self.calls.append(brought.key)

    def read(self, brought: Brought, sources: Sequence[str]) -> None:
        del sources
        self.bring(brought)

    @contextmanager
    def around(self, brought: Brought) -> Iterator[None]:
        """Context manager around a region."""
        del brought
        yield

    def metrics(self, key: CaseKey) -> MetricSet | None:
        del key
        return None

    def samples(self, key: CaseKey) -> tuple[Samples, ...]:
        del key
        return ()

    def reason(self, key: CaseKey) -> str:
        """Return why a call has no measurement."""
        del key
        return ""


class JudgedBench(Bench):
    """``full``: each call was measured before the tests, runs once, and returns that measurement."""

    measures = True

    def __init__(
        self, case: Case, measured: Callable[[CaseKey], Measurement | None], reason: Callable[[CaseKey], str]
    ) -> None:
        super().__init__(case)
        self._measured, self._reason = measured, reason

    def metrics(self, key: CaseKey) -> MetricSet | None:
        measurement = self._measured(key)
        return measurement.metrics if measurement is not None else MetricSet()

    def reason(self, key: CaseKey) -> str:
        return self._reason(key)

    def samples(self, key: CaseKey) -> tuple[Samples, ...]:
        measurement = self._measured(key)
        return measurement.processes if measurement is not None else ()


class MeasuringBench(Bench):
    """Measures inside the test; the parent takes a child's captures, in a run of their own."""

    measures = True

    def __init__(self, case: Case, measuring: Measuring) -> None:
        super().__init__(case)
        self._measuring = measuring
        self._compares = True  # whether calls are timed in turns with their references here
        self._captures: dict[CaseKey, Capture] = {}
        self._brought: list[Brought] = []
        self._references: References[MeasuredCall] | None = None

    def take(self, call: MeasuredCall) -> View:
        self.calls.append(call.key)
        self._captures[call.key] = self._capture(call)
        if self._compares:
            self._take_turns(call)
        return View(call.key, self._call_again(call), metrics=self.metrics, reason=self.reason)

    def _take_turns(self, call: MeasuredCall) -> None:
        """Time this call in turns with each reference of its limits, as far as both were called."""
        texts = (*(limit.text for limit in self.case.limits), *call.limits)
        if self._references is None and not any(SPEEDUP in text for text in texts):
            return
        from pytest_perfgate.app.passes import References, in_turns

        self._references = self._references or References(self.case)
        for own, over in self._references.pairs_with(call):
            self._refer(own.key, in_turns(own, over, self.case.plan, self._measuring.samples))
        for reference in self._references.files_of(call, self._measuring.instruments.inspectors):
            self._refer(call.key, reference)

    def _refer(self, key: CaseKey, reference: Reference) -> None:
        samples = self._captures[key]
        self._captures[key] = replace(samples, references=(*samples.references, reference))

    def drop(self, key: CaseKey) -> None:
        self._captures.pop(key, None)

    def _call_again(self, call: MeasuredCall) -> object:
        """Call it once more for its return value."""
        return call.once()

    def bring(self, brought: Brought) -> None:
        self.calls.append(brought.key)
        self._brought.append(brought)

    def read(self, brought: Brought, sources: Sequence[str]) -> None:
        limits = [limit.text for limit in self.case.limits]
        read_artifact(brought, sources, self._measuring.instruments.inspectors, limits)
        self.bring(brought)

    def metrics(self, key: CaseKey) -> MetricSet | None:
        capture = self._capture_of(key)
        return self._measuring.metrics(capture) if capture else None

    def samples(self, key: CaseKey) -> tuple[Samples, ...]:
        capture = self._capture_of(key)
        return capture.samples if capture else ()

    def reason(self, key: CaseKey) -> str:
        from pytest_perfgate.core.judge.samples import untimed

        return next(filter(None, map(untimed, self.samples(key))), "")

    def _capture_of(self, key: CaseKey) -> Capture | None:
        return next((capture for capture in self.captures() if capture.key == key), None)

    def captures(self) -> tuple[Capture, ...]:
        """Return all that this process measured, with the notes as they are now."""
        brought = [self._measuring.capture_brought(self.case.plan, one) for one in self._brought]
        if not self.calls and self.figures:
            brought.append(self._measuring.capture_brought(self.case.plan, Brought(self.call_keys[0], OWN)))
        captures = (*self._captures.values(), *brought)
        if STATIC in self.case.plan.captures:
            from pytest_perfgate.plugin.captures import with_code

            captures = with_code(self.case, captures, self.artifacts, self._measuring)
        return tuple(self._with_notes(capture) for capture in captures)

    def _capture(self, call: MeasuredCall) -> Capture:
        return self._measuring.capture(call, self.case.plan)

    def _with_notes(self, capture: Capture) -> Capture:
        identity = replace(capture.identity, notes=tuple(sorted(self.notes.items())))
        readings = (*capture.readings, *self.readings(capture.key))
        if offered := self.offered():
            from pytest_perfgate.core.metric_kinds import named_among

            readings += named_among(offered, self.case.limits)
        return replace(capture, identity=identity, artifacts=tuple(self.artifacts), readings=readings)


def read_artifact(
    brought: Brought, sources: Sequence[str], inspectors: Sequence[Inspector], limits: Iterable[str]
) -> None:
    """Fill in the metrics of a file, or of all files that the patterns or the list name."""
    paths = [path for source in sources for path in _matching_files(source, str(brought.key))]
    from pytest_perfgate.app.inspections import choose
    from pytest_perfgate.app.inspections.results import device_of

    inspector = choose(paths, {}, inspectors=inspectors, peek=_head)
    analysis = inspector.inspect(paths, options_of(inspector, "\n".join((*limits, *brought.limits))))
    brought.metrics = analysis.metrics
    brought.device = device_of(analysis) if any(analysis.devices) else None
    brought.findings, brought.problems = analysis.findings, analysis.problems


def _matching_files(source: str, place: str) -> list[Path]:
    """Return the file of that name, or all files that match it as a pattern."""
    if Path(source).exists():
        return [Path(source)]
    paths = [Path(name) for name in sorted(glob(source, recursive=True))]  # noqa: PTH207 - a pattern may be absolute
    if not paths:
        fix = "name a file, or a pattern, that is there when the test reads it"
        raise PerfgateError("call-wrong", f"read() found no file {source}", fix=fix, place=place)
    return paths


def options_of(inspector: Inspector, limits: str) -> Mapping[str, str]:
    """Return the limits as options for an inspector whose figures depend on them."""
    return {"limits": limits} if any(name == "limits" for name, _ in inspector.options) else {}


def _head(path: Path) -> bytes:
    if path.is_dir():
        return b""
    try:
        with path.open("rb") as stream:
            return stream.read(4096)  # the bytes by which a kind of file is recognised
    except OSError as fault:
        raise PerfgateError("call-wrong", f"read() cannot read {path}: {fault}") from fault
