"""Tests of plugin/measure_ahead."""

from __future__ import annotations

import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.adapters.stores.history import SqliteHistory
from pytest_perfgate.adapters.stores.records import Records
from pytest_perfgate.app.doctor import Level, Remark, examined
from pytest_perfgate.cli.doctor import finding_lines
from pytest_perfgate.core.judge.rounds import Design
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.stats.costs import (
    PairCost,
    cost_line,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Case, CaseKey, Mode, Plan
from pytest_perfgate.plugin.child_arguments import count_decidable, paired_line, trying_line
from pytest_perfgate.plugin.measure_ahead import require_readable_folder, sampled, suspects_line
from pytest_perfgate.plugin.reporting import shown_once, usage_errors, without_repeats
from tests.unit.core.judge.bench import KINDS

TRIED = "; tests that the accepted times do not clear are then measured in two builds: 1 test 19 s to 1 min 0 s, a first guess"
CASES = [Case(nodeid=f"t.py::test_{at}", limits=(), plan=Plan(warmup_ns=0.2e9, budget_ns=1e9)) for at in range(10)]


def test_a_cut_is_said_and_done() -> None:
    line = "10 tests, 3 rounds, about 21 s, a first guess; sampling cut to 50 % by the budget"
    assert cost_line(CASES, {}, 0.5) == line
    half = sampled(CASES[0], 0.5).plan
    assert (half.warmup_ns, half.budget_ns) == (0.1e9, 0.5e9)
    assert sampled(CASES[0], 1.0) is CASES[0]


def test_what_two_builds_would_cost_is_said_beforehand() -> None:
    open_ = "; tests that the accepted times do not clear are then measured in two builds: 1 test 19 s to 1 min 22 s"
    assert trying_line(0, Design(), math.inf, PairCost()) == ""
    assert trying_line(1, Design(), math.inf, PairCost()) == f"{open_}, a first guess"
    assert (
        trying_line(38, Design(), math.inf, PairCost())
        == f"{open_}, all 38 tests 1 min 24 s to 6 min 0 s, a first guess"
    )
    line = "38 tests in two builds, 7 to 30 rounds, 1 min 24 s to 6 min 0 s"
    assert paired_line(38, Design(), math.inf, PairCost()) == f"{line}, a first guess"
    learnt = PairCost(learnt=True)
    assert paired_line(38, Design(), 120.0, learnt).endswith(
        "1 min 24 s to 2 min 0 s; 2 min 0 s of the budget are left"
    )
    assert paired_line(1, Design(), 600.0, learnt).endswith("; 10 min 0 s of the budget are left")
    limit = parse_limit("slowdown <= 3%", kinds=KINDS)
    assert count_decidable([*CASES, Case(nodeid="t.py::test_b", limits=(limit,), plan=Plan())]) == 1


@pytest.mark.parametrize(
    ("devices", "confirms", "line"),
    [(("host-x",), True, TRIED), ((), True, ""), (("host-x",), False, "")],
)
def test_no_builds_are_asked_for_without_a_baseline_or_where_none_are_made(
    devices: tuple[str, ...], confirms: bool, line: str
) -> None:
    store = SimpleNamespace(devices=lambda: devices)
    tools = SimpleNamespace(confirm=dict if confirms else None, baselines=store, repository=None)
    case = Case(nodeid="t.py::test_b", limits=(parse_limit("slowdown <= 3%", kinds=KINDS),), plan=Plan())
    base = SimpleNamespace(base=SimpleNamespace(commit="c0ffee", why="there is no git repository here"))
    gate_judge, project = (
        SimpleNamespace(tools=tools, accepted=base),
        SimpleNamespace(confirmation="paired", baselines="baselines"),
    )
    options = SimpleNamespace(perfgate_rounds=None)
    pytest_config = SimpleNamespace(option=SimpleNamespace(perfgate_shard=""))
    settings = SimpleNamespace(ci=False, project=project, options=options, pytest=pytest_config)
    session: Any = SimpleNamespace(
        gate_judge=gate_judge, settings=settings, mode=Mode.FULL, left_s=lambda: math.inf if settings.ci else 60.0,
        cases={},
    )  # fmt: skip
    assert suspects_line(session, [case], {}) == line
    settings.ci, in_ci = True, TRIED.replace("1 min 0 s", "2 min 45 s")
    assert suspects_line(session, [case], {}) == (
        in_ci if confirms else "; no two builds: there is no git repository here"
    )
    project.confirmation = "interval"
    assert suspects_line(session, [case], {}) == (in_ci if confirms else '; no two builds: confirmation = "interval"')
    assert suspects_line(session, [], {}) == ""
    tools.repository = SimpleNamespace(pages_alone=lambda revision, baselines: ("README.md",))
    if confirms:
        assert "nothing is built: the change edits README.md only" in suspects_line(session, [case], {})


def denied(path: Any, *arguments: Any, **named: Any) -> Any:
    raise PermissionError(13, "Permission denied", str(path))


def test_a_folder_that_may_not_be_looked_into_is_an_error_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_readable_folder(tmp_path)
    require_readable_folder(tmp_path / "none")
    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(PerfgateError) as caught:
        require_readable_folder(tmp_path)
    assert caught.value.code.name == "file-refused"
    assert "Permission denied: local baselines" in caught.value.what
    assert f"chmod u+rwx {tmp_path}" in caught.value.fix


def test_what_may_not_be_read_is_not_taken_for_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", denied)
    with pytest.raises(PerfgateError, match="Permission denied") as caught:
        Records(tmp_path).last()
    assert caught.value.code.name == "file-refused"
    monkeypatch.setattr(Path, "stat", denied)
    with pytest.raises(PerfgateError, match="Permission denied"):
        SqliteHistory(tmp_path / "history.db").read(CaseKey(nodeid="t.py::test"), "host")


def test_the_doctor_says_what_to_do_about_a_refusal() -> None:
    (finding,) = examined([("record", lambda project: denied("/x/last"))], None)
    assert finding.what == "/x/last: Permission denied  [file-refused]"
    assert "ls -l" in finding.fix


def test_a_fault_that_two_checks_meet_is_told_once() -> None:
    checks = [("baselines", lambda project: denied("/x/b.yaml")), ("commits", lambda project: denied("/x/b.yaml"))]
    assert [finding.name for finding in examined(checks, None)] == ["baselines"]


def test_what_fixes_it_can_be_copied_whole() -> None:
    long = "echo 'baselines/**/*.yaml merge=perfgate' >> .gitattributes; " + "git config merge.perfgate.driver x; " * 4
    lines = finding_lines(Remark(name="merging", level=Level.NOTE, what="it may conflict", fix=long), verbose=False)
    assert lines == ["note  merging    it may conflict", f"{' ' * 17}next: {long}"]
    short = Remark(name="record", level=Level.NOTE, what="none", fix="pytest --perfgate=full")
    assert finding_lines(short, verbose=False) == ["note  record     none; next: pytest --perfgate=full"]
    assert finding_lines(short, verbose=True)[1] == f"{' ' * 17}next: pytest --perfgate=full"
    assert finding_lines(Remark(name="git", level=Level.GOOD, what="x" * 99), verbose=False)[0].endswith("x …")


def test_a_block_names_the_test_that_has_shown_its_reason() -> None:
    blocks = [f"INVALID  test_{name}  time\n  now   1 ms\n  why   elsewhere\n  next  install it\n" for name in "ab"]
    earlier: dict[str, str] = {}
    assert shown_once(blocks[0], "t.py::a", earlier) == blocks[0]
    assert shown_once(blocks[1], "t.py::b", earlier) == (
        "INVALID  test_b  time\n  now   1 ms\n  why   the same reason as t.py::a, which shows it\n"
    )
    assert shown_once("INVALID  test_c\n", "t.py::c", earlier) == "INVALID  test_c\n"


def test_a_fault_that_many_tests_meet_is_told_whole_once() -> None:
    fault, earlier = PerfgateError("baseline-value", "expected a time", place="baselines/h/t.py.yaml"), {}
    assert without_repeats(fault, "t.py::a", earlier) == fault.text()
    short = "baselines/h/t.py.yaml: expected a time  [baseline-value]\n  why   t.py::a shows the whole error"
    assert (without_repeats(fault, "t.py::b", earlier), without_repeats(fault, "t.py::a", earlier)) == (
        short,
        fault.text(),
    )
    with usage_errors(earlier):
        raise fault
    with pytest.raises(pytest.UsageError, match="another"), usage_errors(earlier):
        raise PerfgateError("baseline-value", "another")
