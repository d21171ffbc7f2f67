"""The `perfgate` fixture and the errors about its arguments."""

from __future__ import annotations

import contextlib
import operator
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import wraps
from inspect import iscoroutinefunction, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_perfgate.clock import HOST_CLOCK
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Case, CaseKey
from pytest_perfgate.model.protocol import RECORD
from pytest_perfgate.model.values import TIME_UNITS, Work
from pytest_perfgate.plugin.benches import Nesting, awaited
from pytest_perfgate.plugin.calls import USAGE, Brought, MeasuredCall, Schedule, View, refuse_unrun, require_callables
from pytest_perfgate.plugin.collect import KEYWORDS, refuse_lone_surrogates

if TYPE_CHECKING:
    from types import FrameType

    from pytest_perfgate.model.measurement import Samples
    from pytest_perfgate.plugin.benches import Bench


def _checked_arguments(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of the fixture: wrong arguments raise our own error, and right ones are not checked first."""

    @wraps(method)
    def called(gate: Perfgate, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(gate, *args, **kwargs)
        except TypeError as fault:
            misfit = _signature_mismatch(fault, method, gate, *args, **kwargs)
            if not misfit:
                raise
        with gate.noted("", "call"):
            name = "perfgate" if method.__name__ == "__call__" else f"perfgate.{method.__name__}"
            raise PerfgateError("call-wrong", f"{name}(): {misfit}", fix=USAGE[method.__name__])

    return called


def _signature_mismatch(raised: TypeError, method: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """Return why arguments do not fit a method, or "" if they fit and the error was raised inside."""
    try:
        signature(method).bind(*args, **kwargs)
    except TypeError as fault:
        return str(fault)
    inside = raised.__traceback__ and raised.__traceback__.tb_next
    return "" if inside else str(raised).partition("() ")[2]  # Python 3.13.0 binds a positional argument by its name


class Perfgate:
    """The object that a gated test calls: it measures calls and blocks, and accepts times and files of other tools."""

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

        ``setup`` runs untimed before each call; its result is passed to ``fn``, a tuple as several arguments. ``check``
        gets the result of a call and rejects it by raising or by returning ``False``. ``calls`` states how many calls
        one call of ``fn`` stands for.
        """
        with self.noted(name, "call"):
            if not callable(fn):
                raise PerfgateError("call-wrong", f"perfgate() needs a callable, got {fn!r:.60}", fix=USAGE["__call__"])
            if unknown:
                raise unknown_arguments(fn, unknown)
            require_callables(setup=setup, check=check)
            calls = _count(calls)
            call = MeasuredCall(self._outermost(name), fn, args, setup=setup, calls=calls, limits=_texts(limits))
            call.work, call.check = _work(work), check
            return _measured(self._bench, self._nesting, call)

    def same(self, as_: Any, *, rtol: float | None = None, atol: float | None = None) -> Callable[[Any], bool]:
        """Return a ``check=`` that compares the output with a value, or with a reference given the call's inputs."""
        from pytest_perfgate.app.output_check import SameOutput

        return SameOutput(as_, rtol, atol)

    def scheduled(self, fn: Callable[..., Any], setup: Callable[[], Any] | None, schedule: Schedule) -> View:
        """Measure ``fn`` at least as often as a suite of pytest-benchmark asks for."""
        with self.noted("", "call"):
            call = MeasuredCall(self._outermost(""), fn, setup=setup, schedule=schedule)
            return _measured(self._bench, self._nesting, call)

    @contextmanager
    def region(self, name: str = "", *, work: Work | None = None, limits: Iterable[str] = ()) -> Iterator[None]:
        """Measure a block: each entry is one sample."""
        with self.noted(name, "region"):
            brought = self._regions.get(CaseKey(nodeid=self._case.nodeid, name=name))
            if brought is None:
                brought = Brought(self._key(name), "region", work=_work(work), limits=_texts(limits))
                self._regions[brought.key] = brought
                self._bench.bring(brought)
            else:
                _refuse_other(brought, _work(work), _texts(limits))
            with self._bench.around(brought):
                thread_begin, begun = HOST_CLOCK.thread(), HOST_CLOCK.wall()
                yield
                brought.durations.append(float(HOST_CLOCK.wall() - begun))
                brought.cpu.append(float(HOST_CLOCK.thread() - thread_begin))

    def record(
        self,
        samples: Sequence[float],
        unit: str = "ns",
        *,
        work: Work | None = None,
        name: str = "",
        limits: Iterable[str] = (),
    ) -> View:
        """Judge times, rates or counts measured elsewhere, such as in a C++ binary or in ranks under torchrun."""
        with self.noted(name, "record()"):
            recorded, key = _recorded(samples, unit, name), self._outermost(name)
            brought = Brought(key, RECORD, work=_work(work), limits=_texts(limits), **recorded)
            self._bench.bring(brought)
        return View(brought.key, metrics=self._bench.metrics, reason=self._bench.reason)

    def read(
        self, source: str | Path | Sequence[str | Path], *more: str | Path, name: str = "", limits: Iterable[str] = ()
    ) -> View:
        """Judge a profile or another benchmark's JSON; a pattern or a list names the files of one job."""
        with self.noted(name, "read()"):
            files = _one_job(source, more, self._case.nodeid)
            brought = Brought(self._outermost(name), "read", limits=_texts(limits))
            self._bench.read(brought, files)
        return View(brought.key, metrics=self._bench.metrics, reason=self._bench.reason)

    def metric(
        self, name: str, values: float | Iterable[float], *, unit: str = "", better: str = "lower", exact: bool = False
    ) -> None:
        """Judge a figure of your own for the call measured last; several values are its samples."""
        with self.noted("", "metric()"):
            from pytest_perfgate.core.metric_kinds import own_reading

            refuse_in_teardown(self._case.nodeid)
            self._bench.figure(own_reading(name, values, unit=unit, better=better, exact=exact))

    def note(self, key: str, value: object) -> None:
        """Add a note to the identity: measurements with different notes are not compared (an autotuned tiling, say)."""
        text = _checked(note_text(key, value), "a note", self._case)
        self._bench.notes[_checked(key, "a note's name", self._case)] = text

    def attach(self, name: str, path: str | Path | Any) -> None:
        """Keep a file, a folder, machine code as bytes, a Triton kernel, or a dict or list as JSON beside this test."""
        from pytest_perfgate.plugin.captures import keep_attached

        keep_attached(self._bench.artifacts, name, path, self._case.nodeid)

    @property
    def measures(self) -> bool:
        """Whether this run measures times: false under ``--perfgate=off``."""
        return self._bench.measures

    def kept(self, key: CaseKey) -> tuple[Samples, ...]:
        """Return the samples of each process that measured a call, empty if none did."""
        return self._bench.samples(key)

    def offer(self, figures: Callable[[], Mapping[str, Any]]) -> None:
        """Offer figures that a limit may name, such as the ``extra_info`` of a suite of pytest-benchmark."""
        self._bench.offered = figures

    def noted(self, name: str, noun: str) -> AbstractContextManager[None]:
        """Remember an error raised inside: if the test catches it, the call still counts as not measured."""
        plain = str.__str__(name) if isinstance(name, str) else ""
        return noted(self._bench, CaseKey(nodeid=self._case.nodeid, name=plain), noun)

    def _outermost(self, name: str) -> CaseKey:
        self._nesting.refuse(self._case.nodeid)
        return self._key(name)

    def _key(self, name: str) -> CaseKey:
        name = _checked(name, "name=", self._case)
        refuse_in_teardown(self._case.nodeid)
        if name in self._names:
            raise _repeated_name_error(name, self._case.nodeid)
        self._names.add(name)
        return CaseKey(nodeid=self._case.nodeid, name=name)


def _repeated_name_error(name: str, nodeid: str) -> PerfgateError:
    what = f"two measurements named {name!r}" if name else "two measurements without a name"
    fix, place = 'give each a name=, as in perfgate(fn, name="small")', _call_place(nodeid.partition("::")[0]) or nodeid
    return PerfgateError("call-wrong", f"{what} in one test", fix=fix, place=place)


def _measured(bench: Bench, nesting: Nesting, call: MeasuredCall) -> View:
    try:
        with nesting.entered():
            if iscoroutinefunction(call.fn):
                refuse_unrun(call.called())  # before samples: Python would warn of each that it was never awaited
            call.fn = awaited(call.fn)
            view = bench.take(call)
        refuse_unrun(view.result)
    except Exception:
        bench.drop(call.key)
        raise
    return view


for _name in USAGE:
    setattr(Perfgate, _name, _checked_arguments(getattr(Perfgate, _name)))


def _checked(text: str, what: str, case: Case) -> str:
    """Return the text, or raise if it contains half a surrogate pair."""
    return refuse_lone_surrogates(text, what, case.nodeid, code="call-wrong", fix="use valid characters")


def _refuse_other(first: Brought, work: Work | None, limits: tuple[str, ...]) -> None:
    """Refuse limits or work that differ from those of the region's first entry: they would have no effect."""
    other = [name for name, value, earlier in (("limits=", limits, first.limits), ("work=", work, first.work))
             if value and value != earlier]  # fmt: skip
    if other:
        what = f"region({first.key.name!r}) is entered again with {' and '.join(other)}, but was first entered without"
        fix = f"give {' and '.join(other)} when the region is entered first, or another name="
        raise PerfgateError("call-wrong", what, fix=fix, place=first.key.nodeid)


def refuse_in_teardown(nodeid: str) -> None:
    """Refuse a call in a teardown: the test's verdict has been given by then."""
    if os.environ.get("PYTEST_CURRENT_TEST", "").endswith("(teardown)"):
        what = "called in a teardown, after the test's verdict"
        fix = "call it in the test, or in the fixture before its yield"
        raise PerfgateError("call-wrong", what, fix=fix, place=nodeid)


def _listed(sequence: Any, name: str) -> list[Any]:
    """Return the sequence as a list, or raise if it is a single value."""
    try:
        return list(sequence)
    except TypeError as fault:
        what = f"{name}() cannot take {sequence!r:.60}"
        raise PerfgateError("call-wrong", what, fix=USAGE[name]) from fault


def _one_job(source: Any, more: Sequence[str | Path], place: str) -> list[str]:
    files = [source] if isinstance(source, (str, Path)) else _listed(source, "read")
    if more or not files:
        listed = ", ".join(repr(str(file)) for file in (*files, *more))
        text = f"read() takes one source, and {len(files) + len(more)} were given"
        fix = f"give the files of one job as a list, read([{listed}]), and other jobs calls of their own"
        raise PerfgateError("call-wrong", text, fix=fix, place=place)
    return [str(file) for file in files]


def _recorded(samples: Sequence[float], unit: str, name: str) -> dict[str, Any]:
    """Return times as samples in nanoseconds; values in another unit become a figure."""
    listed = _listed(samples, "record")
    if unit in TIME_UNITS:
        return {"durations": [_number(sample) * TIME_UNITS[unit] for sample in listed]}
    from pytest_perfgate.core.metric_kinds import recorded

    return {"readings": (recorded([_number(sample) for sample in listed], unit, name),)}


def _number(sample: object) -> float:
    """Return a recorded sample as a float, whatever library it comes from; a text, a truth value or None is refused."""
    try:
        if not isinstance(sample, (str, bytes, bool)):
            return float(sample)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        pass
    what = f"record() was given {sample!r:.80}, which is not a number"
    raise PerfgateError("call-wrong", what, fix="pass only the numbers: record([12.5, 12.4])")


def _work(work: Work | None) -> Work | None:
    """Return the work in plain numbers; a negative or infinite count is refused, since its rate would mean nothing."""
    if work is None:
        return None
    from pytest_perfgate.core.analysis.work import work_fault

    fault = work_fault(work) if isinstance(work, Work) else f"it is {work!r:.60}"
    if fault:
        what = f"work= is not possible for a call: {fault}"
        raise PerfgateError("call-wrong", what, fix="from pytest_perfgate import work; work=work.gemm(m, n, k, ...)")
    from pytest_perfgate.core.analysis.work import plain

    return replace(work, **{name: plain(getattr(work, name)) for name in ("flops", "bytes", "items", "working_set")})


def _count(calls: object) -> int:
    """Return how many calls one call stands for as an ``int``, whatever library's integer was given."""
    try:
        count = operator.index(calls)  # type: ignore[arg-type]
    except TypeError:
        count = 0
    if count < 1:
        raise PerfgateError("call-wrong", f"calls={calls!r} is not a whole number from 1", fix="calls=10")
    return count


def _texts(limits: Iterable[str]) -> tuple[str, ...]:
    """Return the limits of a call as plain texts; any other type is refused."""
    texts = (limits,) if isinstance(limits, str) or not isinstance(limits, Iterable) else tuple(limits)
    for text in texts:
        if not isinstance(text, str):
            raise PerfgateError("call-wrong", f"a limit must be a text, got {text!r:.60}", fix='"time <= 3 ms"')
    return tuple(str.__str__(text) for text in texts)


_OWN = ("setup", "work", "check", "calls", "name", "limits")

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")

_LONGEST = 30


def unknown_arguments(fn: Any, names: Iterable[str]) -> PerfgateError:
    """Return the error for keywords meant for the measured function, which the fixture does not pass on."""
    from pytest_perfgate.model.errors import nearest

    names_given, called = list(names), getattr(fn, "__name__", "")
    called = called if called.isidentifier() else "f"
    inside = ", ".join(f"{name}=..." for name in names_given)
    hints = [f"{name}= stands on the marker." for name in names_given if name in KEYWORDS]
    hints += [f"did you mean {near}=?" for name in names_given for near in nearest(name, _OWN, 1)]
    fix = " Otherwise ".join([*hints[:1], f"measure a call that has them: perfgate(lambda: {called}(..., {inside}))"])
    why = f"its own keywords are {', '.join(_OWN)}; keywords of the function would be confused with them"
    return PerfgateError("call-wrong", f"perfgate() does not take {', '.join(names_given)}=", why=why, fix=fix)


def note_text(key: str, value: object) -> str:
    """Return a note's text; one with an address is refused, since an address differs in each process."""
    text = str(value)
    if not _ADDRESS.search(text):
        return text
    why = "a note is part of the identity, and an address differs in each process: no two runs could be compared"
    fix = f'write its meaning as a text, such as perfgate.note({str(key)!r:.{_LONGEST}}, "64x128")'
    raise PerfgateError("call-wrong", f"a note is {text:.60}, which names an address", why=why, fix=fix)


_LONGEST_FRAME = 200

_WRONG = frozenset({"call-wrong", "timer-unknown", "timer-unsuited", "runtime-unknown"})

_OURS = (f"{Path(__file__).parent.parent}{os.sep}", contextlib.__file__)


@contextmanager
def noted(bench: Bench, key: CaseKey, noun: str) -> Iterator[None]:
    """Keep the error that a call, a region or a reading raises, and raise it again."""
    try:
        yield
    except Exception as fault:
        if isinstance(fault, PerfgateError) and not fault.place and fault.code.name in _WRONG:
            fault.place_at(_call_place(key.path))
        bench.raised[key] = f"{noun} raised {error_text(fault)}"
        raise


def _call_place(path: str) -> str:
    """Return where the user's code called us, such as ``tests/test_k.py:12``."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.stack reads every source file
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    if frame is None:
        return ""
    file = Path(frame.f_code.co_filename)
    own = file.as_posix().endswith(f"/{path}")
    return f"{path if path and own else file}:{frame.f_lineno}"


def error_text(fault: Exception) -> str:
    """Return ``ValueError: odd``: the type and the first line, or the type alone if there is no message."""
    name, message = type(fault).__name__, ""
    with suppress(Exception):  # the user's error may fail to print
        message = fault.what if isinstance(fault, PerfgateError) else str(fault)
    first = (message.strip().splitlines() or [""])[0]
    shown = f"{first[:_LONGEST_FRAME]}…" if len(first) > _LONGEST_FRAME else first
    return f"{name}: {shown}" if shown else name
