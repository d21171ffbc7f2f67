"""Tests of plugin/reporting."""

from __future__ import annotations

import io
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest._io import TerminalWriter

from pytest_perfgate import work
from pytest_perfgate.adapters.devices.host import probe_host
from pytest_perfgate.adapters.runtimes.host import HostRuntime
from pytest_perfgate.adapters.timers.host import HostTimer
from pytest_perfgate.compat import Benchmark
from pytest_perfgate.core.judge.judge import judge
from pytest_perfgate.core.render.words import significant
from pytest_perfgate.core.stats.costs import TimeLeft
from pytest_perfgate.core.stats.summary import Stopping, WarmUp
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Reference
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.protocol import Finished
from pytest_perfgate.plugin import reporting
from pytest_perfgate.plugin.benches import Bench
from pytest_perfgate.plugin.calls import MeasuredCall
from pytest_perfgate.plugin.controller import ControllerRole
from pytest_perfgate.plugin.fixture import Perfgate
from pytest_perfgate.plugin.reporting import (
    Progress,
    UsersFrames,
    headed,
    in_columns,
    properties,
    readable,
    refuse,
    write_painted,
)
from pytest_perfgate.plugin.xdist import WorkerRole
from tests.unit.core.judge.bench import CONTEXT, accepted, limit, measured
from tests.unit.core.judge.paired_builds import NOT_SLOWER, SLOWER


def kernel(x: int) -> float:
    return 1 / x


def refuse_result(_: object) -> None:
    raise ValueError("wrong")


def leave(by: Any) -> None:
    by("pytest's own words")


def gate() -> Perfgate:
    return Perfgate(
        Case(nodeid="t.py::test_a", limits=(), plan=Plan()), Bench(Case(nodeid="t.py::test_a", limits=(), plan=Plan()))
    )


def timed(*args: Any) -> None:
    measured_call = MeasuredCall(CaseKey(nodeid="t.py::test_a"), kernel, args)
    HostTimer(Stopping(), WarmUp()).measure(measured_call.timed(), Plan(), HostRuntime(probe_host))


def benchmarked() -> None:
    node = SimpleNamespace(get_closest_marker=lambda name: None, name="a", nodeid="t.py::a")
    Benchmark(gate(), node).pedantic(kernel, setup=lambda: ((0,), {}))


def shown(act: Any, *, full: bool = False) -> list[str]:
    """The functions of the traceback, below the test itself."""
    config: Any = SimpleNamespace(option=SimpleNamespace(fulltrace=full))
    with pytest.raises((Exception, pytest.fail.Exception, pytest.skip.Exception)) as caught:
        with UsersFrames(config):
            act()
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    return names[len(names) - names[::-1].index("shown") :]


@pytest.mark.parametrize(
    ("act", "frames"),
    [
        (lambda: timed(0), ["<lambda>", "timed", "kernel"]),
        (lambda: gate()(kernel, 0), ["<lambda>", "kernel"]),
        (lambda: gate()(kernel, 1, check=refuse_result), ["<lambda>", "refuse_result"]),
        (lambda: gate()(kernel, setup=lambda: kernel(0)), ["<lambda>", "<lambda>", "kernel"]),
        (benchmarked, ["benchmarked", "kernel"]),
        (timed, ["timed"]),
        (lambda: gate()(leave, pytest.fail), ["<lambda>", "leave", "__call__"]),
        (lambda: gate()(leave, pytest.skip), ["<lambda>", "leave", "__call__"]),
        (lambda: gate()(int, "x"), ["<lambda>"]),
        (lambda: work.gemm(1, 2, 3, dtype="odd"), ["<lambda>"]),
        (lambda: significant("odd", 3), ["<lambda>", "significant"]),
    ],
    ids=[
        "measured",
        "called",
        "check",
        "setup",
        "compat",
        "wrong arguments",
        "failed",
        "skipped",
        "a builtin",
        "work",
        "a fault of ours",
    ],
)
def test_the_users_frames_are_what_is_seen(act: Any, frames: list[str]) -> None:
    assert shown(act) == frames


def test_full_trace_keeps_every_frame() -> None:
    frames = shown(lambda: gate()(kernel, 0), full=True)
    assert (frames[:3], frames[-1]) == (["<lambda>", "called", "__call__"], "kernel")
    assert len(frames) > 4


def test_a_fault_without_a_frame_of_the_users_shows_none_of_ours() -> None:
    config: Any = SimpleNamespace(option=SimpleNamespace(fulltrace=False))
    with pytest.raises(ValueError, match="health") as caught:
        with UsersFrames(config):
            raise ValueError("health check")
    assert {Path(str(entry.path)).name for entry in caught.traceback.filter(caught)} == {Path(__file__).name}
    for role in (ControllerRole, WorkerRole):
        assert "__tracebackhide__" in role.pytest_runtest_call.__code__.co_varnames


def wrong_output() -> None:
    with readable():
        raise PerfgateError("check-failed", "check= returned False")


@pytest.mark.parametrize(
    ("fail", "first_line"),
    [
        (lambda: refuse("REGRESSED  a\n  now 2 ms"), True),
        (wrong_output, True),
        (lambda: pytest.fail("their own\nwords"), False),
    ],
)
def test_only_our_own_words_are_cut(fail: Callable[[], None], first_line: bool) -> None:
    with pytest.raises(pytest.fail.Exception) as caught:
        fail()
    text = f"Failed: {caught.value}"
    report: Any = SimpleNamespace(longrepr=SimpleNamespace(reprcrash=SimpleNamespace(message=text)))
    headed(SimpleNamespace(excinfo=caught), report)  # type: ignore[arg-type]
    assert report.longrepr.reprcrash.message == (text.partition("\n")[0] if first_line else text)
    passed: Any = SimpleNamespace(longrepr=None)
    headed(SimpleNamespace(excinfo=None), passed)  # type: ignore[arg-type]


def painted(line: str, *, colours: bool) -> str:
    writer = TerminalWriter(io.StringIO())
    writer.hasmarkup = colours
    write_painted(SimpleNamespace(write=writer.write, write_line=writer.line), line)
    return writer._file.getvalue()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("regressed  test_a", "\x1b[31mregressed\x1b[0m  test_a\n"),
        ("NOT MEASURED  test_a  time", "\x1b[33mNOT MEASURED\x1b[0m  test_a  time\n"),
        ("next  perfgate report", "\x1b[1mnext\x1b[0m  perfgate report\n"),
        ("  why   it is slower", "  why   it is slower\n"),
        ("not applicable  test_a", "not applicable  test_a\n"),
    ],
)
def test_the_first_word_alone_is_coloured(line: str, shown: str) -> None:
    assert painted(line, colours=True) == shown
    assert painted(line, colours=False) == f"{line}\n"


CASES = [Case(nodeid=f"t.py::test_{at}", limits=(), plan=Plan(rounds=rounds)) for at, rounds in enumerate((3, 3, 1))]


class Terminal:
    """A reporter that keeps what it is told."""

    def __init__(self, *, live: bool) -> None:
        self.isatty, self.lines = live, []
        self.file = io.StringIO()
        self._tw = TerminalWriter(self.file)
        self._tw.fullwidth = 50

    def ensure_newline(self) -> None:
        """Nothing stands on the line."""

    def write_line(self, text: str) -> None:
        self.lines.append(text)
        self._tw.line(text)


def screen(written: str) -> list[str]:
    """What stands on a terminal when this has been written to it."""
    rows: list[list[str]] = [[]]
    at = 0
    for letter in written:
        if letter in "\r\n":
            at = 0
            rows += [[]] if letter == "\n" else []
        else:
            rows[-1][at : at + 1] = letter
            at += 1
    return ["".join(row).rstrip() for row in rows]


def progress_on(terminal: Terminal) -> Progress:
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda name: terminal))
    return Progress(config, "3 cases", CASES)


@pytest.mark.parametrize("live", [True, False])
def test_rounds_and_cases_are_counted_against_what_there_is(live: bool) -> None:
    terminal = Terminal(live=live)
    progress = progress_on(terminal)
    shown = []
    for number, at, outcome in (
        (0, 0, "passed"),
        (0, 1, "failed"),
        (0, 2, "passed"),
        (1, 0, "passed"),
        (2, 0, "passed"),
    ):
        nodeid = CASES[at].nodeid
        progress(number, CASES[at], Finished(nodeid=nodeid, outcome=outcome))
        shown.append(screen(terminal.file.getvalue())[-1])
    texts = [
        "perfgate: round 1 of 3, test 1 of 3: t.py::test_0",
        "perfgate: round 1 of 3, test 2 of 3: t.py::test_1 (failed)",
        "perfgate: round 1 of 3, test 3 of 3: t.py::test_2",
        "perfgate: round 2 of 3, test 1 of 1: t.py::test_0",
        "perfgate: round 3 of 3, test 1 of 1: t.py::test_0",
    ]
    assert terminal.lines == ["perfgate: 3 cases", *([] if live else texts[:2])], "a log has a line now and then"
    assert not live or shown == [text[:49] for text in texts]


def test_what_is_left_is_shown_once_every_case_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(reporting, "TimeLeft", lambda cases, costs, clock: TimeLeft(cases, costs, lambda: now[0]))
    monkeypatch.setattr(reporting, "seconds", lambda: now[0])
    terminal = Terminal(live=False)
    progress = progress_on(terminal)
    for number, at in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)):
        now[0] += 20.0
        progress(number, CASES[at], Finished(nodeid=CASES[at].nodeid, outcome="passed", seconds=20.0))
    assert terminal.lines == [
        "perfgate: 3 cases",
        "perfgate: round 1 of 3, test 1 of 3: t.py::test_0",
        "perfgate: round 2 of 3, test 1 of 2, about 1 min 0 s left: t.py::test_0",
        "perfgate: round 3 of 3, test 1 of 2, about 20 s left: t.py::test_0",
    ]


def test_a_long_round_has_a_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(reporting, "seconds", lambda: now[0])
    terminal = Terminal(live=False)
    progress = progress_on(terminal)
    for number in range(7):
        progress.met(f"round 1 of 3, test {number + 1} of 90", number + 1, "t.py::test_x")
        now[0] += 25.0
    assert [line.partition(",")[2][6:8].strip() for line in terminal.lines[1:]] == ["1", "4", "7"]


def test_what_follows_a_live_line_stands_on_a_clean_line_of_its_own() -> None:
    """pytest's first dot stood in the last column, and its percentage on a line of its own."""
    terminal = Terminal(live=True)
    progress = progress_on(terminal)
    progress(0, CASES[0], Finished(nodeid=CASES[0].nodeid, outcome="passed"))
    progress.tell("10 fresh rounds each")
    progress(1, CASES[0], Finished(nodeid=CASES[0].nodeid, outcome="passed"))
    progress.close()
    assert terminal._tw.width_of_current_line == 0
    terminal._tw.write("...")
    assert screen(terminal.file.getvalue()) == ["perfgate: 3 cases", "perfgate: 10 fresh rounds each", "..."]


@pytest.mark.parametrize("live", [True, False])
def test_rounds_of_two_arms_are_shown_as_they_end(live: bool) -> None:
    """They take the longest of all, and nothing was said for half a minute."""
    terminal = Terminal(live=live)
    progress = progress_on(terminal)
    for at in (1, 2):
        progress.met(f"round 3 of 10, test {at} of 2", at, f"t.py::test_{at}")
    last = screen(terminal.file.getvalue())[-1 if live else -2]
    assert last == f"perfgate: round 3 of 10, test {1 + live} of 2: t.py::test_{1 + live}"[: 49 if live else None]


@pytest.mark.parametrize(("text", "shown"), [("核心", "核 "), ("abcd", "abc"), ("e\u0301", "e\u0301  ")])
def test_wide_letters_take_their_columns(text: str, shown: str) -> None:
    assert in_columns(text, 3) == shown


def test_a_speed_up_is_a_property_by_its_reference() -> None:
    reference = Reference(over="eager", ours=(1e6,) * 3, theirs=(1.5e6,) * 3)
    report = judge(
        measured(1e6, references=(reference,)), [limit("speedup(over=eager) >= 1.2x")], baseline=None, context=CONTEXT
    )
    assert float(str(dict(properties([report]))["perfgate.speedup(over=eager)"])) == pytest.approx(1.5)


@pytest.mark.parametrize(("paired", "slowdown"), [(None, 0.1), (SLOWER, SLOWER.shift), (NOT_SLOWER, 0.1)])
def test_the_slowdown_is_that_of_the_verdict(paired, slowdown: float) -> None:
    report = judge(measured(1.1e6), [limit("slowdown <= 3%")], baseline=accepted(1e6), context=CONTEXT, paired=paired)
    values = dict(properties([report]))
    assert float(str(values["perfgate.slowdown"])) == pytest.approx(slowdown)
    assert float(str(values["perfgate.time_ns"])) == pytest.approx(1.1e6)
