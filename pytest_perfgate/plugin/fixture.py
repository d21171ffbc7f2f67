"""The ``perfgate`` fixture: what a test calls."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Case, CaseKey
from pytest_perfgate.model.quantity import TIME_UNITS
from pytest_perfgate.model.samples import Samples
from pytest_perfgate.model.work import Work
from pytest_perfgate.plugin.asked import Asked, Brought, Schedule
from pytest_perfgate.plugin.benches import Bench
from pytest_perfgate.plugin.nesting import Nesting
from pytest_perfgate.plugin.promises import refuse_unrun
from pytest_perfgate.plugin.raising import noted
from pytest_perfgate.plugin.spelling import insist_on_whole
from pytest_perfgate.plugin.view import View
from pytest_perfgate.plugin.words import insist_on_callables, note_text, unknown_arguments


class Gate:
    """One test's door to the gate."""

    def __init__(self, case: Case, bench: Bench) -> None:
        self._case, self._bench = case, bench
        self._regions: dict[CaseKey, Brought] = {}
        self._names: set[str] = set()
        self._nesting = Nesting()

    def __call__(
        self,
        fn: Callable[..., Any],
        /,
        *args: Any,
        setup: Callable[[], Any] | None = None,
        work: Work | None = None,
        check: Callable[[Any], Any] | None = None,
        calls: int = 1,
        name: str = "",
        limits: Iterable[str] = (),
        **unknown: NoReturn,
    ) -> View:
        """Measure ``fn(*args)``.

        ``setup`` runs untimed before each call and what it returns goes to ``fn``, a tuple as
        several arguments; ``check`` is given what a call returned and refuses it by raising or by
        returning ``False``; ``calls`` says how many calls one call of ``fn`` stands for.
        """
        with self._noted(name, "call"):
            if not callable(fn):
                raise PerfgateError("call-wrong", f"perfgate() measures a callable, and {fn!r} is none")
            if unknown:
                raise unknown_arguments(fn, unknown)
            insist_on_callables(setup=setup, check=check)
            calls = _count(calls)
            key = self._outermost(name)
            done = _work(work)
            asked = Asked(key, fn, args, setup=setup, work=done, check=check, calls=calls, limits=_texts(limits))
            return self._taken(asked)

    def scheduled(self, fn: Callable[..., Any], setup: Callable[[], Any] | None, schedule: Schedule) -> View:
        """Measure ``fn`` as often as a suite of pytest-benchmark asks for, at least."""
        with self._noted("", "call"):
            return self._taken(Asked(self._outermost(""), fn, setup=setup, schedule=schedule))

    @contextmanager
    def region(self, name: str = "", *, work: Work | None = None, limits: Iterable[str] = ()) -> Iterator[None]:
        """Measure a block: each time it is entered is a sample."""
        with self._noted(name, "region"):
            brought = self._regions.get(CaseKey(nodeid=self._case.nodeid, name=name))
            if brought is None:
                brought = Brought(self._key(name), "region", work=_work(work), limits=_texts(limits))
                self._regions[brought.key] = brought
                self._bench.bring(brought)
            else:
                _refuse_other(brought, _work(work), _texts(limits))
            with self._bench.around(brought):
                given, begun = HOST_CLOCK.thread(), HOST_CLOCK.wall()
                yield
                brought.durations.append(float(HOST_CLOCK.wall() - begun))
                brought.cpu.append(float(HOST_CLOCK.thread() - given))

    def record(
        self,
        samples: Sequence[float],
        unit: str = "ns",
        *,
        work: Work | None = None,
        name: str = "",
        limits: Iterable[str] = (),
    ) -> View:
        """Judge times that were measured elsewhere, such as by a C++ binary or by ranks under torchrun."""
        with self._noted(name, "record()"):
            if unit not in TIME_UNITS:
                what, mend = f"record() does not know the unit {unit!r}", f"one of {', '.join(TIME_UNITS)}"
                raise PerfgateError("call-wrong", what, mend=mend)
            durations = [_number(sample) * TIME_UNITS[unit] for sample in samples]
            brought = Brought(self._outermost(name), "record", durations, work=_work(work), limits=_texts(limits))
            self._bench.bring(brought)
        return View(brought.key, metrics=self._bench.metrics, fate=self._bench.fate)

    def read(
        self,
        source: str | Path | Sequence[str | Path],
        *more: str | Path,
        name: str = "",
        limits: Iterable[str] = (),
    ) -> View:
        """Judge an artifact: a profile or another benchmark's JSON; a pattern or a list names the files of one job."""
        with self._noted(name, "read()"):
            files = [source] if isinstance(source, (str, Path)) else list(source)
            if more or not files:
                listed = ", ".join(repr(str(file)) for file in (*files, *more))
                said = f"read() takes one source, and {len(files) + len(more)} were given"
                mend = f"give the files of one job as a list, read([{listed}]), and other jobs calls of their own"
                raise PerfgateError("call-wrong", said, mend=mend, place=self._case.nodeid)
            brought = Brought(self._outermost(name), "read", limits=_texts(limits))
            self._bench.read(brought, [str(file) for file in files])
        return View(brought.key, metrics=self._bench.metrics, fate=self._bench.fate)

    def note(self, key: str, value: object) -> None:
        """Join the identity: measurements with other notes are not compared (an autotuned tiling, say)."""
        self._bench.notes[self._whole(key, "a note's name")] = self._whole(note_text(key, value), "a note")

    def attach(self, name: str, path: str | Path | Any) -> None:
        """Keep a file or a folder beside this test's measurement, machine code as bytes, or a kernel of Triton."""
        from pytest_perfgate.plugin.handed import handed_over

        for artifact in handed_over(name, path, self._case.nodeid):
            self._bench.artifacts.append(artifact)

    @property
    def measures(self) -> bool:
        """Whether this run knows times: false under ``--perfgate=off``."""
        return self._bench.measures

    def kept(self, key: CaseKey) -> tuple[Samples, ...]:
        """The samples of each process that measured a call; none where nothing did."""
        return self._bench.samples(key)

    def _taken(self, asked: Asked) -> View:
        try:
            with self._nesting.entered():
                view = self._bench.take(asked)
            refuse_unrun(view.result)
        except Exception:
            self._bench.drop(asked.key)
            raise
        return view

    def _whole(self, text: str, what: str) -> str:
        return insist_on_whole(text, what, self._case.nodeid, code="call-wrong", mend="write it in whole characters")

    def _noted(self, name: str, noun: str) -> AbstractContextManager[None]:
        """What is raised inside is told again where the test catches it, and nothing was measured therefore."""
        plain = str.__str__(name) if isinstance(name, str) else ""
        return noted(self._bench, CaseKey(nodeid=self._case.nodeid, name=plain), noun)

    def _outermost(self, name: str) -> CaseKey:
        self._nesting.refuse(self._case.nodeid)
        return self._key(name)

    def _key(self, name: str) -> CaseKey:
        name = self._whole(name, "name=")
        refuse_in_teardown(self._case.nodeid)
        if name in self._names:
            what = f"two measurements named {name!r}" if name else "two measurements without a name"
            raise PerfgateError("call-wrong", f"{what} in one test", mend="give each a name=", place=self._case.nodeid)
        self._names.add(name)
        return CaseKey(nodeid=self._case.nodeid, name=name)


def _refuse_other(first: Brought, work: Work | None, limits: tuple[str, ...]) -> None:
    """What a later entry of a region brings is what the first one brought: anything else would judge nothing."""
    other = [name for name, given, known in (("limits=", limits, first.limits), ("work=", work, first.work))
             if given and given != known]  # fmt: skip
    if other:
        what = f"region({first.key.name!r}) is entered again with {' and '.join(other)} that its first entry has not"
        mend = f"give {' and '.join(other)} when the region is entered first, or another name="
        raise PerfgateError("call-wrong", what, mend=mend, place=first.key.nodeid)


def refuse_in_teardown(nodeid: str) -> None:
    """What is called there was never part of the test: its verdict has been given."""
    if os.environ.get("PYTEST_CURRENT_TEST", "").endswith("(teardown)"):
        what = "called in a teardown, when the test has its verdict already"
        mend = "call it in the test, or in the fixture before its yield"
        raise PerfgateError("call-wrong", what, mend=mend, place=nodeid)


def _number(sample: object) -> float:
    """A sample that was handed in, of whatever library; a text or nothing at all is no time."""
    try:
        if not isinstance(sample, (str, bytes, bool)):
            return float(sample)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        pass
    what = f"record() was given {sample!r:.80}, which is no number"
    raise PerfgateError("call-wrong", what, mend="give it the times alone: record([12.5, 12.4])")


def _work(work: Work | None) -> Work | None:
    """The work of a call; a rate of a negative or an infinite count would pass or fail for nothing."""
    if work is None:
        return None
    from pytest_perfgate.core.analysis.ops.stated import work_fault

    fault = work_fault(work) if isinstance(work, Work) else f"it is {work!r:.60}"
    if fault:
        what = f"work= is no work that a call can do: {fault}"
        raise PerfgateError("call-wrong", what, mend="from pytest_perfgate import work; work=work.gemm(m, n, k, ...)")
    from pytest_perfgate.core.analysis.ops.exact import plain

    return replace(work, **{name: plain(getattr(work, name)) for name in ("flops", "bytes", "items", "working_set")})


def _count(calls: object) -> int:
    """How many calls one call stands for, as a number of Python's own."""
    try:
        count = operator.index(calls)  # type: ignore[arg-type]
    except TypeError:
        count = 0
    if count < 1:
        raise PerfgateError("call-wrong", f"calls={calls!r} is no whole number from 1")
    return count


def _texts(limits: Iterable[str]) -> tuple[str, ...]:
    """Limits of a call; what is no text is no limit."""
    given = (limits,) if isinstance(limits, str) else tuple(limits)
    for text in given:
        if not isinstance(text, str):
            raise PerfgateError("call-wrong", f"a limit is a text, and {text!r:.60} is none", mend='"time <= 3 ms"')
    return tuple(str.__str__(text) for text in given)
