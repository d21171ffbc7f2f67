"""Tests of app/accepted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.adapters.stores.history import SqliteHistory
from pytest_perfgate.app.accepted import Accepted, PastRuns
from pytest_perfgate.app.conclude import Ending, suite_notes
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline, HistoryEntry, Identity
from pytest_perfgate.model.plan import Base, CaseKey, Mode, Outcome
from pytest_perfgate.plugin.arms import substitute_commit
from tests.unit.app.stores import Lines, captured, case, gate_judge
from tests.unit.core.judge.bench import HOST, KEY, accepted, measured

THEN = accepted(1e6, place="c0ffee: baselines")


def judging(
    now: Baseline,
    then: Baseline | None = THEN,
    base: str = "c0ffee",
    earlier: str | None = "def test_gemm(): pass",
    *,
    committed: bool = True,
) -> tuple[Baseline | None, Baseline | None]:
    lines = {"c0ffee": {str(KEY): then} if then is not None else {}, "": {str(KEY): now}}
    lines["HEAD"] = lines[""] if committed else {}
    store: Any = SimpleNamespace(read=lambda _device, _path, revision="": lines[revision])
    store.paths = lambda _device, _revision: ()
    texts = {"c0ffee": earlier, "HEAD": "def test_gemm(): return 1"}
    repository = SimpleNamespace(base=lambda: Base(commit=base), show=lambda revision, _path: texts[revision])
    tools: Any = SimpleNamespace(repository=repository, baselines=store)
    return Accepted(tools).judging(measured(1e6))


@pytest.mark.parametrize(
    "edit",
    [
        {"time": 2e6},
        {"commit": "deadbeefdead"},
        {"scatter": 9.0},
        {"runs": 9},
        {"detects": 9.0},
        {"expires": "2030-01-01"},
        {"environment": "0c01c77f7d"},
        {"identity": Identity(device=HOST.key, data="v2")},
    ],
    ids=lambda edit: next(iter(edit)),
)
def test_whatever_a_verdict_leans_on_is_the_merge_base_s(edit: dict[str, Any]) -> None:
    now = replace(THEN, **edit)
    assert judging(now) == (THEN, now)


def test_a_line_that_came_with_the_change_rests_on_no_run_unless_its_test_is_new() -> None:
    """A change accepted three runs of its own slower code, or its lines were behind a link that git does not follow."""
    now = replace(THEN, runs=3, scatter=0.01, why="first value")
    assert judging(now, None) == (replace(now, runs=0, scatter=0.0), None)
    assert judging(now, None, committed=False) == (replace(now, runs=0, scatter=0.0, why=""), None), "nobody reviews it"
    assert judging(now, None, base="") == (now, None), "nobody knows which lines were there before"
    assert judging(now, None, earlier=None) == (now, None), "its test came with the change too"
    assert judging(now, None, earlier="def test_other(): pass") == (now, None)
    local = replace(now, local=True)
    assert judging(local, None) == (local, None)


OLD, NEW = (
    "def test_gemm(perfgate):\n    perfgate(kernel)\n",
    "import x\n\n\ndef test_gemm(perfgate):\n    perfgate(kernel)\n",
)


@pytest.mark.parametrize(
    ("then", "now", "judges"),
    [(OLD, NEW, True), (OLD, NEW.replace("kernel", "other"), False), (None, NEW, False), (OLD, "def (", False)],
    ids=["word for word", "another body", "no such file", "no Python"],
)
def test_the_line_of_a_test_that_moved_to_another_file_judges_there(
    then: str | None, now: str | None, *, judges: bool
) -> None:
    old = replace(THEN, key=replace(KEY, nodeid=KEY.nodeid.replace("bench.py", "old.py")))
    here = replace(THEN, time=2e6, why="", place="baselines")
    lines = {("tests/old.py", "c0ffee"): old, ("tests/bench.py", ""): here}
    store = SimpleNamespace(
        paths=lambda _device, _revision: ("tests/old.py",),
        read=lambda _device, path, revision="": {str(line.key): line for line in [lines.get((path, revision))] if line},
    )
    texts = {("c0ffee", "tests/old.py"): then, ("HEAD", "tests/bench.py"): now}
    repository = SimpleNamespace(base=lambda: Base(commit="c0ffee"), show=lambda *at: texts.get(at))
    tools: Any = SimpleNamespace(repository=repository, baselines=store)
    accepted_lines = Accepted(tools)
    pair = accepted_lines.judging(measured(1e6))
    assert pair == ((replace(THEN, place="baselines"), here) if judges else (here, None))
    assert accepted_lines.missing(HOST.key) == (old,)
    for view in (accepted_lines, Accepted(tools)):
        assert view.removed_lines(HOST.key, [here], lambda _: True) == (() if judges else (old,))
        assert view.removed_lines(HOST.key, [here], lambda nodeid: nodeid != KEY.nodeid) == (old,)
    assert Accepted(tools).removed_lines(HOST.key, [], lambda _: True) == (old,)


def test_git_is_asked_once_for_a_file_of_many_cases_that_moved() -> None:
    reads: list[tuple[str, str]] = []
    keys = [replace(KEY, nodeid=f"tests/bench.py::test_gemm[{n}]") for n in range(50)]
    old = [replace(THEN, key=replace(key, nodeid=key.nodeid.replace("bench.py", "old.py"))) for key in keys]
    here = [replace(THEN, key=key) for key in keys]
    lines = {("tests/old.py", "c0ffee"): old, ("tests/bench.py", ""): here}
    store = SimpleNamespace(
        paths=lambda _device, _revision: ("tests/old.py",),
        read=lambda _device, path, revision="": {str(line.key): line for line in lines.get((path, revision), ())},
    )
    repository = SimpleNamespace(base=lambda: Base(commit="c0ffee"), show=lambda *at: reads.append(at) or NEW)
    tools: Any = SimpleNamespace(repository=repository, baselines=store)
    accepted_lines = Accepted(tools)
    for key in keys:
        assert accepted_lines.judging(replace(measured(1e6), key=key)) == (replace(THEN, key=key), None)
    assert len(accepted_lines.moved) == len(keys)
    assert len(reads) == len(set(reads))


def test_words_alone_are_no_edit_and_messages_name_the_file_that_is_here() -> None:
    now = replace(THEN, why="in other words", place="baselines")
    assert judging(now) == (replace(THEN, place="baselines"), None)


def test_no_commit_of_the_change_itself_stands_in_for_what_was_accepted() -> None:
    revisions: list[str] = []
    repository = SimpleNamespace(
        missing=frozenset, brought=lambda _commit, _folder, until: revisions.append(until) or ""
    )
    for commit, until in (("c0ffee", "c0ffee"), ("", "HEAD")):
        gate_judge = SimpleNamespace(
            tools=SimpleNamespace(repository=repository), accepted=SimpleNamespace(base=Base(commit=commit))
        )
        session: Any = SimpleNamespace(
            gate_judge=gate_judge, settings=SimpleNamespace(project=SimpleNamespace(baselines="baselines"))
        )
        assert substitute_commit(session, "deadbeef") == ("deadbeef", "")
        assert revisions.pop() == until


def test_a_line_that_the_change_takes_away_judges_all_the_same() -> None:
    store = SimpleNamespace(read=lambda _device, _path, revision="": {str(KEY): THEN} if revision else {})
    tools: Any = SimpleNamespace(repository=SimpleNamespace(base=lambda: Base(commit="c0ffee")), baselines=store)
    assert Accepted(tools).judging(measured(1e6)) == (THEN, None)


def test_the_timer_of_an_accepted_line_is_known_where_all_devices_agree() -> None:
    def timers(*names: str) -> dict[str, str]:
        lines = {name: replace(THEN, identity=Identity(device=name, timer=name[:-1])) for name in names}
        store = SimpleNamespace(
            devices=lambda: names, read=lambda device, _path, _revision="": {str(KEY): lines[device]}
        )
        accepted_lines = Accepted(SimpleNamespace(repository=None, baselines=store))  # type: ignore[arg-type]
        accepted_lines.read_files([KEY.path])
        return accepted_lines.timers()

    assert timers("events1", "events2") == {str(KEY): "events"}
    assert timers("events1", "graph2") == timers() == {}


ENDING = Ending(mode=Mode.FULL, started="2026-11-21T07:00:00", seconds=1.0, complete=True, filtered=False, root="/r")


def test_a_damaged_one_is_found_before_anything_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "history.db"
    bench = gate_judge(Lines(None), SqliteHistory(file), baselines=None)  # type: ignore[arg-type]
    bench.read_baselines([case()])
    file.write_text("garbage")
    with pytest.raises(PerfgateError, match="history-unreadable"):
        bench.read_baselines([case()])
    PastRuns(None).probe()


def test_a_server_that_does_not_answer_costs_no_run_its_verdicts() -> None:
    """It may come back, and the record brings what is missing; a file that is damaged does not fix itself."""

    class Down:
        def __init__(self, code: str) -> None:
            self.code, self.asked = code, 0

        def read(self, *_: object) -> None:
            self.asked += 1
            raise PerfgateError(self.code, "refused")

    server = Down("history-unreachable")
    past = PastRuns(server)
    past.probe()
    assert past.fault.code.name == "history-unreachable"
    assert past.newest(measured(1e6)) == ()
    assert server.asked == 1, "each question would wait for its time-out"
    with pytest.raises(PerfgateError, match="history-unreadable"):
        PastRuns(Down("history-unreadable")).probe()


def broken(key: CaseKey, device: str, last: int = 0) -> list[HistoryEntry]:
    raise PerfgateError("history-unreadable", "database disk image is malformed", place="history.db")


def test_one_that_breaks_later_is_left_out_and_the_run_says_so() -> None:
    line = accepted(1e6)
    bench = gate_judge(Lines(line, line), SimpleNamespace(read=broken))  # type: ignore[arg-type]
    (report,) = bench.judge_result(captured(measured(1e6)))
    assert report.verdicts[0].outcome is Outcome.PASSED
    bench.tools.baselines.read_all = lambda device: {}  # type: ignore[union-attr]
    (note,) = [n for n in suite_notes(bench, {KEY.nodeid: case()}, [report], ENDING) if n.kind == "history"]
    assert "judged without the history: history.db: database disk image is malformed" in note.text


def test_the_newest_twenty_runs_of_a_case_are_its_past_oldest_first() -> None:
    runs = [HistoryEntry(key=KEY, device=HOST.key, time=float(at), when="", commit="", identity="") for at in range(25)]
    store: Any = SimpleNamespace(read=lambda key, device, last: runs)
    assert [entry.time for entry in PastRuns(store).newest(measured(1e6))] == [float(at) for at in range(5, 25)]
