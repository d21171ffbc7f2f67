"""Progress lines, error texts and JUnit properties."""

from __future__ import annotations

import os
import re
import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_perfgate.clock import seconds
from pytest_perfgate.core.judge.samples import BESIDE
from pytest_perfgate.core.limits.scope import render_scope
from pytest_perfgate.core.render.words import HEADING, about, display_width, figure_text, shown, writable
from pytest_perfgate.core.stats.costs import TimeLeft
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.values import Dimension

if TYPE_CHECKING:
    from pytest_perfgate.model.plan import Case
    from pytest_perfgate.model.protocol import Finished
    from pytest_perfgate.model.verdict import CaseReport, Verdict


def write_during_test(config: pytest.Config, text: str) -> None:
    """Write a line during a test, while pytest captures output."""
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        Progress(config, text).close()


_EVERY_S, _WITHIN_S = 20.0, 60.0
"""Seconds between two lines of progress in a log: at the first test of a round, and within a long one."""


class Progress:
    """Shows progress; called for each test that a child has finished."""

    def __init__(
        self, config: pytest.Config, headline: str, cases: Sequence[Case] = (), costs: Mapping[str, float] | None = None
    ) -> None:
        self._out: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._live = bool(self._out and self._out.isatty)
        self._counts: dict[int, int] = {}
        self._rounds = {case.nodeid: case.plan.rounds for case in cases}
        self._left = TimeLeft(cases, costs or {}, seconds)
        self._most = max(self._rounds.values(), default=0)
        self._width = columns(config)
        self._last_s = -_WITHIN_S
        self._write_folded(f"perfgate: {headline}")

    def __call__(self, number: int, case: Case, finished: Finished) -> None:
        self._counts[number] = self._counts.get(number, 0) + 1
        mark = "" if finished.outcome == "passed" else f" ({finished.outcome})"
        if mark:
            self._rounds[case.nodeid] = number + 1  # its last round
        self._left.note(number, case.nodeid, finished.seconds, last=bool(mark))
        self._show(f"{self._position(number)}: {case.nodeid}{mark}", first=self._counts[number] == 1, always=bool(mark))

    def _show(self, text: str, *, first: bool, always: bool = False) -> None:
        if self._live:
            self._draw(f"perfgate: {text}")
        elif always or self._due(first=first):
            self._write_folded(f"perfgate: {text}")

    def _due(self, *, first: bool) -> bool:
        """Return whether the next line of a log is due; a log has few, because people read it."""
        now_s = seconds()
        if now_s < self._last_s + (_EVERY_S if first else _WITHIN_S):
            return False
        self._last_s = now_s
        return True

    def _position(self, number: int) -> str:
        """Return ``round 1 of 3, test 2 of 8, about 12 s left``; without the estimate if there is no basis for it."""
        cases = sum(rounds > number for rounds in self._rounds.values())
        most = max(self._most, *self._rounds.values())
        place = f"round {number + 1} of {most}, test {self._counts[number]:,} of {cases:,}"
        left_s = self._left.left_s if self._left.learnt else 0.0
        return f"{place}, {about(left_s)} left" if left_s >= 1 else place

    def extend(self, cases: Iterable[Case], number: int, most: int) -> None:
        """Give these cases one more round, of at most so many."""
        cases = list(cases)
        self._rounds.update((case.nodeid, number + 1) for case in cases)
        self._left.extend((case.nodeid for case in cases), number + 1)
        self._most = max(self._most, most)

    def met(self, place: str, number: int, nodeid: str) -> None:
        """Show a test that ran in both arms; in a log, not too often."""
        self._show(f"{place}: {nodeid}", first=number == 1)

    def tell(self, text: str) -> None:
        """Write a line of its own."""
        self.close()
        self._write_folded(f"perfgate: {text}")

    def close(self) -> None:
        if self._live:
            self._draw("")

    def _draw(self, text: str) -> None:
        """Overwrite the current line and return to its start; pytest's own position on the line is kept."""
        writer = self._out._tw  # noqa: SLF001 - as pytest's own plugins do
        before = writer._current_line  # noqa: SLF001
        writer.write(f"\r{in_columns(text, writer.fullwidth - 1)}\r", flush=True)
        writer._current_line = before  # noqa: SLF001

    def _write_folded(self, text: str) -> None:
        if self._out is not None:
            self._out.ensure_newline()
            for line in folded(text, self._width):
                self._out.write_line(line)


def in_columns(text: str, width: int) -> str:
    """Return as much of the text as fits in so many columns, padded with blanks."""
    while display_width(text) > width:
        text = text[:-1]
    return text + " " * (width - display_width(text))


def for_terminal(text: str) -> str:
    """Return the text in characters that this terminal can write; pytest would escape line ends too."""
    return writable(text, getattr(sys.__stdout__, "encoding", None))


@contextmanager
def usage_errors(shown: Iterable[str] = ()) -> Iterator[None]:
    """Turn our own errors into usage errors without a traceback, except those that a test already showed."""
    try:
        yield
    except PerfgateError as fault:
        if fault.text() in shown:
            return
        raise pytest.UsageError(fault.text()) from None


@contextmanager
def readable() -> Iterator[None]:
    """Fail the test with the text of our own error, without the traceback of our code."""
    try:
        yield
    except PerfgateError as fault:
        raise _failure(fault.text()) from None


def without_repeats(fault: PerfgateError, nodeid: str, first_tests: dict[str, str]) -> str:
    """Return the full text of a fault for the first test that has it, and its first line for later tests."""
    text = fault.text()
    first = first_tests.setdefault(text, nodeid)
    return text if first == nodeid else f"{text.partition(chr(10))[0]}\n  why   {first} shows the whole error"


def shown_once(block: str, nodeid: str, first_tests: dict[str, str]) -> str:
    """Return a block; where an earlier test has shown its reasons, and they take several lines, it names that test."""
    head, why, body = block.partition("\n  why   ")
    first = first_tests.setdefault(body, nodeid) if "\n" in body.strip() else nodeid
    return block if first == nodeid else f"{head}{why}the same reason as {first}, which shows it\n"


def refuse(text: str) -> NoReturn:
    """Fail a test with this text, without the traceback of our code."""
    raise _failure(text)


def _failure(text: str) -> Any:
    failure: Any = pytest.fail.Exception(for_terminal(text), pytrace=False)
    failure.perfgate = True
    return failure


def headed(call: pytest.CallInfo[Any], report: pytest.TestReport) -> None:
    """Shorten our own failure to its first line in pytest's final list, since the full text stands above."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None and call.excinfo is not None and getattr(call.excinfo.value, "perfgate", False):
        crash.message = crash.message.partition("\n")[0]


def complain(config: pytest.Config, fault: PerfgateError) -> None:
    """Report an error at the end of a run and fail the run; pytest's own summary still follows."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line("")
        reporter.write_line(f"ERROR: {fault.text()}", red=True)
    fail(config)


def fail(config: pytest.Config) -> None:
    """Fail a run that passed but lost something."""
    session: Any = config.pluginmanager.get_plugin("session")
    if session is not None and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.USAGE_ERROR


_HOME = f"{Path(__file__).parent.parent}/".replace("\\", "/")

_CALLING = ("adapters/timers/", "plugin/calls.py", "core/analysis/work", "compat.py")
"""Modules that call the user's functions or refuse the user's input: an error raised there is the user's."""

_THEIRS = (Exception, pytest.fail.Exception, pytest.skip.Exception)
"""``pytest.fail`` and ``pytest.skip`` do not raise an ``Exception``."""


class UsersFrames:
    """Removes our frames from the traceback of the user's errors, except under ``--full-trace``.

    It is a class because a generator's context manager would restore the original traceback.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._all = bool(getattr(config.option, "fulltrace", False))  # -p no:terminal has none

    def __enter__(self) -> None:
        """Do nothing at the start."""

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: object) -> None:
        __tracebackhide__ = True  # hides our frame also if the traceback has no frame of the user's
        if isinstance(fault, _THEIRS) and not self._all and getattr(fault, "pytrace", True):
            raise fault.with_traceback(without_own_frames(fault.__traceback__))


def without_own_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback without frames of this package; the last one stays if the error may be our own."""
    links: list[TracebackType] = []
    while trace is not None:
        links.append(trace)
        trace = trace.tb_next
    shown_links = [link for link in links if not _is_own_frame(link)]
    if links and _is_own_frame(links[-1]) and not (shown_links and _place(links[-1]).startswith(_CALLING)):
        shown_links.append(links[-1])
    rebuilt = None
    for link in reversed(shown_links):
        rebuilt = TracebackType(rebuilt, link.tb_frame, link.tb_lasti, link.tb_lineno)
    return rebuilt


def _is_own_frame(link: TracebackType) -> bool:
    return _file(link).startswith(_HOME)


def _place(link: TracebackType) -> str:
    return _file(link).removeprefix(_HOME)


def _file(link: TracebackType) -> str:
    return link.tb_frame.f_code.co_filename.replace("\\", "/")


SEEN = "perfgate_seen"
"""The attribute of a worker's report that names the calls its test made."""

_UNITS = {
    Dimension.TIME: "_ns",
    Dimension.BYTES: "_bytes",
    Dimension.BANDWIDTH: "_bytes_per_s",
    Dimension.FLOPS: "_flop_per_s",
    Dimension.RATE: "_per_s",
    Dimension.CLOCK: "_hz",
}


def properties(reports: Iterable[CaseReport]) -> Iterator[tuple[str, object]]:
    """Yield (name, value) pairs, such as ``perfgate.time_ns``; the name of a call stands before its metric."""
    for report in reports:
        stem = f"perfgate.{report.key.name}." if report.key.name else "perfgate."
        yield f"{stem}outcome", report.worst.value if report.verdicts else "without a limit"
        yield from shown(partial(_figures, report, stem), partial(_unrendered_property, stem))


def _unrendered_property(stem: str, why: str) -> list[tuple[str, object]]:
    return [(f"{stem}unshown", why)]


def _figures(report: CaseReport, stem: str) -> list[tuple[str, object]]:
    """Return the figures of the measurement; those of a confirmation by two arms replace those of the screening."""
    metrics = report.measurement.metrics.metrics if report.measurement else ()
    by_arms = {v.metric.name: v.metric for v in report.verdicts if v.metric and v.metric.source.startswith(BESIDE)}
    plain = (by_arms.get(metric.name, metric) for metric in metrics if not metric.labels)
    tails = (metric for metric in metrics if {name for name, _ in metric.labels} & {"q", "stat", "over"})
    named = [(metric.name, metric) for metric in plain]
    named += [(f"{metric.name}{render_scope(metric.labels)}", metric) for metric in tails]
    gated = {v.figure.title: v for v in report.verdicts if v.figure is not None}
    return [
        *((f"{stem}{name}{_UNITS.get(m.dimension, '')}", f"{m.value:.6g}") for name, m in named),
        *((f"{stem}change({title})", _change_property(v)) for title, v in gated.items()),
    ]


def _change_property(verdict: Verdict) -> str:
    """Return a gated figure with its accepted value: ``128 -> 130, limit change(registers) <= 0``."""
    assert verdict.figure is not None
    return f"{figure_text(verdict.figure, verdict.metric)}, limit {verdict.limit.text}"


ANY = 10**6
"""The width where there is no terminal, so that each line of a log stays whole for searching."""

_LEAST = 60


def columns(config: pytest.Config) -> int:
    """Return the width of the terminal; unlimited if there is none."""
    out: Any = config.pluginmanager.get_plugin("terminalreporter")
    return max(_LEAST, out._tw.fullwidth) if out is not None and out.isatty else ANY  # noqa: SLF001


def folded(line: str, width: int) -> list[str]:
    """Break a sentence into lines of this width; a command stays whole so that it can be pasted."""
    if len(line) <= width or line.lstrip().startswith("next "):
        return [line]
    return textwrap.wrap(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


_OURS = re.compile(r"perfgate (accept|report|review|prune|history|doctor|ceilings|clocks)\b")

_NAMED = re.compile(r"((?:pytest|perfgate profile)\b[^']*?\s)('(?:[^']|'\"'\"')*'|[\w@%+=:./-]*::[\w@%+=:./-]*\w)")
"""Matches a command whose node ids are relative to where it is started, and the first node id."""


class StartFolder:
    """Converts paths and node ids from the project's folder to the one in which pytest was started."""

    def __init__(self, config: pytest.Config) -> None:
        self._here = Path(config.invocation_params.dir)
        self._root = config.rootpath
        self._way = self.path(self._root)

    def path(self, path: Path) -> str:
        """Return the relative path of a file or a folder from here; the absolute one outside of both folders."""
        if not (path.is_relative_to(self._root) or path.is_relative_to(self._here)):
            return str(path)
        try:
            return Path(os.path.relpath(path, self._here)).as_posix()
        except ValueError:
            return str(path)

    def nodeid(self, name: str) -> str:
        """Return the node id of a test as pytest accepts it here."""
        return name if self._way == "." else f"{self._way}/{name}"

    def command(self, text: str) -> str:
        """Return a command that was written for the project's folder, for use from here."""
        if self._way == ".":
            return text
        if _OURS.match(text):
            return f"{text} --root {shlex.quote(self._way)}"
        if match := _NAMED.match(text):
            (name,) = shlex.split(match[2])
            return f"{match[1]}{shlex.quote(self.nodeid(name))}{text[match.end() :]}"
        return f"{text} {shlex.quote(self._way)}" if text.startswith("pytest ") else text


_RED = frozenset({Outcome.REGRESSED, Outcome.BROKEN, Outcome.INVALID})

_GREEN = frozenset({Outcome.PASSED, Outcome.ACCEPTED, Outcome.IMPROVED})

_PLAIN = frozenset({Outcome.NOT_APPLICABLE})

_COLOURS = {
    **{outcome.value: "yellow" for outcome in set(Outcome) - _PLAIN},
    **{outcome.value: "red" for outcome in _RED},
    **{outcome.value: "green" for outcome in _GREEN},
    "fail": "red",
    "pass": "green",
    "warn": "yellow",
    "next": "bold",
    HEADING: "yellow",
}


def write_painted(out: Any, line: str) -> None:
    """Write a line of the terminal section, coloured by its first words."""
    word = line.partition("  ")[0]
    colour = _COLOURS.get(word.lower())
    if colour:
        out.write(word, **{colour: True})
    out.write_line(line[len(word) :] if colour else line)
