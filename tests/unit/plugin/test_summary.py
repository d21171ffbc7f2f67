"""Tests of plugin/summary."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.adapters.timers.host import _batches
from pytest_perfgate.app.instrument import REFUSED
from pytest_perfgate.core.judge.against_baseline import DOUBTFUL
from pytest_perfgate.core.judge.family import family_limits
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.render.words import about, own_gate_lines
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Identity, Measurement, Samples, Stop
from pytest_perfgate.model.metric import Finding
from pytest_perfgate.model.plan import Case, CaseKey, Effect, Mode, Outcome, Plan
from pytest_perfgate.model.protocol import Capture, CaseResult
from pytest_perfgate.model.verdict import Arms, CaseReport
from pytest_perfgate.plugin import summary
from pytest_perfgate.plugin.child_arguments import environment
from pytest_perfgate.plugin.measure_ahead import judge_measured
from pytest_perfgate.plugin.reporting import ANY, StartFolder, columns, folded
from pytest_perfgate.plugin.state import Settings
from pytest_perfgate.plugin.summary import (
    _left_open,
    _tables,
    blocks,
    constant,
    counted,
    cut_short_lines,
    empty_calls_note,
    is_clean,
    next_commands,
    own_gate_section,
    refused,
    verdict_table,
    written_lines,
)
from tests.reports import case
from tests.reports import case as report_of

KEY = CaseKey(nodeid="t.py::t")
CARD = Device(key="NVIDIA-H200-observe", name="NVIDIA H200", kind="gpu", index=0, uuid="GPU-12")
SAMPLES = Samples(durations=(1.0,), timer="fake", stop=Stop.COUNT)


def test_clocks_that_were_not_locked_are_told_once() -> None:
    noted = replace(SAMPLES, notes=((REFUSED, "denied"), ("timer", "events")))
    measurement = Measurement(key=KEY, processes=(noted, noted, SAMPLES), device=CARD, identity=Identity(device="k"))
    report = CaseReport(key=KEY, verdicts=(), measurement=measurement)
    bare = CaseReport(key=KEY, verdicts=())
    assert refused([report, report, bare]) == ["clocks observed, not locked: denied"]
    assert refused([bare]) == []


def test_a_case_that_a_mean_judges_is_not_without_a_limit() -> None:
    mean = parse_limit("geomean(slowdown) <= 5%", kinds=by_name(), source="marker", place="t.py:1")
    cases = [Case(nodeid=f"t.py::test_a[{n}]", limits=(mean,), plan=Plan()) for n in "12"]
    keys = [CaseKey(nodeid="t.py::test_a[1]"), CaseKey(nodeid="t.py::test_a[2]", name="fwd"), CaseKey(nodeid="t.py::b")]
    reports = [CaseReport(key=key, verdicts=()) for key in keys]
    assert counted("full", reports, 0, family_limits(cases)) == "full: 2 judged in a mean, 1 without a limit"
    assert counted("full", reports) == "full: 3 without a limit"


def test_an_estimate_of_a_moment_is_not_about_under() -> None:
    assert (about(0.2), about(70)) == ("under 1 s", "about 1 min 10 s")


NAMES = [f"tests/test_k.py::test_{at}" for at in range(8)]


def session(
    measured: int,
    of: int = 8,
    processes: int = 3,
    started: str = "/p",
    against: str = "",
    *,
    ci: bool = False,
    **fields: Any,
) -> Any:
    cases = {name: Case(nodeid=name, limits=(), plan=Plan(rounds=3)) for name in NAMES[:of]}
    reports = {}
    for name in NAMES[:measured]:
        report = report_of(name.partition("::")[2], 1e6)
        taken = replace(report.measurement, processes=report.measurement.processes[:processes])
        reports[name] = (replace(report, measurement=taken),)
    gate_judge = SimpleNamespace(tools=SimpleNamespace(confirm=dict), revision=against)
    values = {"measured_ahead": True, "resumable": False, "mode": Mode.FULL, "gate_judge": gate_judge} | fields
    config = SimpleNamespace(rootpath=Path("/p"), invocation_params=SimpleNamespace(dir=Path(started)))
    return SimpleNamespace(cases=cases, reports=reports, settings=SimpleNamespace(pytest=config, ci=ci), **values)


def test_what_is_left_is_named_and_can_be_measured_alone() -> None:
    assert cut_short_lines(session(6)) == [
        "cut short: 6 of 8 cases measured and kept",
        f"  not measured  {NAMES[6]}",
        f"  not measured  {NAMES[7]}",
        f"next  pytest --perfgate=full {NAMES[6]} {NAMES[7]}",
        "that measures the rest; the same command again measures everything",
    ]
    assert f"p/{NAMES[6]} p/{NAMES[7]}" in cut_short_lines(session(6, started="/"))[-2], "from where the user stands"


def test_many_are_counted_and_fewer_processes_are_said() -> None:
    assert cut_short_lines(session(2, processes=1)) == [
        "cut short: 2 of 8 cases measured and kept; 2 of them in fewer processes than asked for",
        *(f"  not measured  {name}" for name in NAMES[2:7]),
        "  not measured  1 more case",
        "next  the same command again: it measures everything again",
    ]
    assert "fewer" not in cut_short_lines(session(2, processes=1, measured_ahead=False))[0]
    assert "fewer" not in cut_short_lines(session(2, processes=1, against="c0ffee"))[0], "they were decided so early"


def test_nothing_measured_is_nothing_kept_but_finished_rounds() -> None:
    assert cut_short_lines(session(0, of=1)) == [
        "cut short: 0 of 1 case measured, nothing is kept",
        "next  the same command again: it measures everything again",
    ]
    assert cut_short_lines(session(0, of=1, resumable=True)) == [
        "cut short before any verdict: the finished rounds are kept",
        "next  the same command again: it continues after the finished rounds",
    ]
    assert cut_short_lines(session(0, of=0)) == []
    assert cut_short_lines(session(8)) == [], "pytest stopped, and everything was measured before"


def test_suspects_that_nobody_tried_to_the_end_are_counted() -> None:
    state = session(2, of=2, resumable=True)
    state.reports[NAMES[0]] = (report_of("test_0", 1.2e6, 1e6, Outcome.SUSPECT),)
    assert cut_short_lines(state) == [
        "cut short: 2 of 2 cases measured and kept; 1 case not decided",
        "next  the same command again: it continues after the finished rounds",
    ]
    state.gate_judge.tools.confirm = None
    assert cut_short_lines(state) == []


@pytest.mark.parametrize("ci", [False, True])
def test_a_case_without_a_line_is_left_to_be_decided_in_ci_alone(*, ci: bool) -> None:
    state = session(2, of=2, ci=ci)
    state.reports[NAMES[0]] = (report_of("test_0", 1.2e6, None, Outcome.UNBASELINED),)
    assert any("1 case not decided" in line for line in cut_short_lines(state)) is ci


def test_an_interrupted_run_prints_the_blocks_of_regressions_that_no_test_shows() -> None:
    slower = report_of("test_0", 1.2e6, 1e6, Outcome.REGRESSED)
    assert blocks([slower], standing(), 100) == []
    (block,) = blocks([slower], standing(), 100, failing=True)
    assert block.startswith("REGRESSED  test_0")


def test_an_interrupted_trial_of_suspects_leaves_what_was_measured() -> None:
    name = NAMES[0]
    result = CaseResult(case=Case(nodeid=name, limits=(), plan=Plan()), captures=((Capture.__new__(Capture),),))

    def interrupted(results: object) -> None:
        raise KeyboardInterrupt

    gate_judge = SimpleNamespace(
        judge_all=interrupted, judge_result=lambda result: (CaseKey(nodeid=name),), read_limits=id
    )
    state: Any = SimpleNamespace(gate_judge=gate_judge, reports={}, faults={}, died=set())
    with pytest.raises(KeyboardInterrupt):
        judge_measured(state, {name: result})
    assert state.reports == {name: (CaseKey(nodeid=name),)}


ROOT = Path("/project")


def standing(*below: str, root: Path = ROOT) -> StartFolder:
    folder = ROOT.joinpath(*below)
    return StartFolder(SimpleNamespace(rootpath=root, invocation_params=SimpleNamespace(dir=folder)))  # type: ignore[arg-type]


shown = standing().path


@pytest.mark.parametrize(
    ("command", "below", "above"),
    [
        ("perfgate report", "perfgate report --root libs/kern", "perfgate report --root .."),
        (
            "perfgate accept 'a.py::t'",
            "perfgate accept 'a.py::t' --root libs/kern",
            "perfgate accept 'a.py::t' --root ..",
        ),
        ("perfgate profile a.py::t", "perfgate profile libs/kern/a.py::t", "perfgate profile ../a.py::t"),
        ("perfgate profile a.py::t, or", "perfgate profile libs/kern/a.py::t, or", "perfgate profile ../a.py::t, or"),
        ("pytest -p x 'a.py::t[1]' --q", "pytest -p x 'libs/kern/a.py::t[1]' --q", "pytest -p x '../a.py::t[1]' --q"),
        ("pytest --perfgate=full", "pytest --perfgate=full libs/kern", "pytest --perfgate=full .."),
        ("commit, run again", "commit, run again", "commit, run again"),
    ],
)
def test_commands_work_from_where_the_user_stands(command: str, below: str, above: str) -> None:
    inner = ROOT / "libs" / "kern"
    assert standing(root=inner).command(command) == below
    assert standing("deep").command(command) == above
    assert standing().command(command) == command
    assert standing(root=inner).path(inner / ".perfgate" / "r.json") == "libs/kern/.perfgate/r.json"
    assert standing("deep").path(ROOT / "r.json") == "../r.json"
    assert standing(root=inner).path(Path("/tmp/r.json")) == "/tmp/r.json"
    assert standing(root=ROOT / "a b").command("perfgate report") == "perfgate report --root 'a b'"
    suspect = case("test_a", 1e6, 9e5, Outcome.SUSPECT)
    advised = replace(suspect, verdicts=(replace(suspect.verdicts[0], next=(command,), effect=Effect.WARN),))
    (block,) = blocks([advised], standing(root=inner), 100)
    assert block.endswith(f"  next  {below}")


def test_few_files_are_named_each_and_many_by_their_folder() -> None:
    few = [ROOT / "a" / f"{n}.yaml" for n in range(3)]
    assert written_lines(few, shown) == ["wrote a/0.yaml", "wrote a/1.yaml", "wrote a/2.yaml"]
    many = [ROOT / "record.json", *(ROOT / "a" / f"{n}.yaml" for n in range(9))]
    assert written_lines(many, shown) == ["wrote record.json", "wrote a: 9 files"]


def improved(report: CaseReport) -> CaseReport:
    """Return the case with the command of a time that is faster than its line."""
    verdicts = tuple(replace(v, next=("perfgate accept t --improved",)) for v in report.verdicts)
    return replace(report, verdicts=verdicts)


def test_what_was_recorded_as_the_first_is_not_to_be_accepted_too() -> None:
    new = case("test_a", 1e6, None, Outcome.UNBASELINED)
    assert any("accept --new" in line for line in next_commands([new], "pytest", recorded=False))
    assert next_commands([new], "pytest", recorded=True) == [], "the next run is judged by it: nothing is to be done"
    fast = case("test_fast", 5e5, 1e6, Outcome.IMPROVED)
    core = replace(fast.measurement, identity=replace(fast.measurement.identity, affinity="1"))
    paired = replace(fast, arms=Arms(base="c0ffee"), measurement=core)
    assert next_commands([fast], "pytest", recorded=False)[1:] == ['perfgate accept --reason "..."'], "above its line"
    assert next_commands([improved(fast)], "pytest", recorded=False)[1:] == ["perfgate accept --improved"]
    pinned = replace(new, measurement=core)
    assert next_commands([paired, pinned], "pytest", recorded=False) == ["perfgate report"], (
        "its core is no other run's"
    )
    alone = next_commands([paired, new], "pytest", recorded=False)
    assert alone == ["perfgate report", *new.verdicts[0].next], "the revision does not have it: it was measured alone"
    quick = next_commands(
        [paired, replace(fast, verdicts=(replace(fast.verdicts[0], next=("accept it",)),)), new], "", recorded=True
    )
    assert quick == ["perfgate report", "accept it"], "what is kept as the first waits for nobody"
    slow = case("test_slow", 2e6, 1e6, Outcome.SUSPECT)
    assert next_commands([new, slow], "pytest", recorded=True) == ["perfgate report", "pytest --perfgate=full"]


def test_a_first_time_is_counted_once() -> None:
    """Its row in the table and this line are all that a first run says of it."""
    new = case("test_a", 1e6, None, Outcome.UNBASELINED)
    assert counted("quick", [new, case("test_b", 1e6, 1e6)]) == "quick: 1 unbaselined, 1 passed"
    first = "quick: 1 unbaselined; 1 first time stored under .perfgate/ for the next run"
    assert counted("quick", [new], 1) == first


def test_a_case_that_has_a_line_which_is_not_compared_is_no_new_one() -> None:
    step = "perfgate accept 'tests/test_k.py::test_b' --reason \"...\""
    other = case("test_b", 1e6, 1e6, Outcome.UNBASELINED)
    other = replace(other, verdicts=(replace(other.verdicts[0], next=(step,)),))
    assert next_commands([other], "pytest", recorded=False) == ["perfgate report", step]
    new = case("test_a", 1e6, None, Outcome.UNBASELINED)
    both = next_commands([other, new], "pytest", recorded=False)
    assert both == ["perfgate report", 'perfgate accept --new --reason "..."', step]
    steps = tuple(f"perfgate accept 'tests/test_k.py::test_b[{at}]' --reason \"...\"" for at in range(9))
    many = replace(other, verdicts=(replace(other.verdicts[0], next=steps),))
    assert next_commands([many, new], "pytest", recorded=False) == ["perfgate report", 'perfgate accept --reason "..."']
    slow = case("test_slow", 2e6, 1e6, Outcome.SUSPECT)
    assert steps[0] in next_commands([many, slow], "pytest", recorded=False), "its reason is another one"


def test_what_a_change_accepts_is_named_with_its_reason() -> None:
    taken = case("test_a", 2e6, 1e6, Outcome.ACCEPTED)
    sentence = 'slower than accepted; this change accepts 2 ms: "eight\x1b"'
    taken = replace(taken, verdicts=(replace(taken.verdicts[0], sentence=sentence),))
    heading, line = own_gate_section(own_gate_lines([taken, case("test_b", 1e6, 1e6)], ()))
    assert heading == "this change edits its own gate"
    assert line.startswith(f"  accepted line  {taken.key}  slowdown")
    assert line.endswith('this change accepts 2 ms: "eight\\x1b"')
    many = own_gate_section(own_gate_lines([taken] * 23, ()))
    assert (len(many), many[-1]) == (22, "  and 3 more: perfgate report")
    assert own_gate_section(own_gate_lines([case("test_b", 1e6, 1e6)], ())) == []


def test_the_next_run_is_started_as_this_one_was() -> None:
    suspect = case("test_a", 1e6, 9e5, Outcome.SUSPECT)
    assert "pytest -p x --perfgate=full" in next_commands([suspect], "pytest -p x", recorded=False)
    assert next_commands([suspect], "pytest", recorded=False, full=True) == ["perfgate report"], "it was full already"
    for words, command in (
        (("-p", "pytest_perfgate.compat", "tests"), "pytest -p pytest_perfgate.compat"),
        (("-ppytest_perfgate.compat",), "pytest -p pytest_perfgate.compat"),
        (("tests",), "pytest"),
    ):
        config = SimpleNamespace(option=None, invocation_params=SimpleNamespace(args=words))
        assert Settings(config).command == command  # type: ignore[arg-type]


def test_in_ci_the_record_is_accepted_elsewhere() -> None:
    bare = case("test_a", 1e6, None, Outcome.UNBASELINED)
    plain = next_commands([bare], "pytest", recorded=False)
    assert plain == ["perfgate report", 'perfgate accept --new --reason "..."']
    faster = improved(case("test_b", 1e6, 2e6, Outcome.IMPROVED))
    assert next_commands([bare, faster], "pytest", recorded=False, ci=True) == [
        "perfgate report",
        'perfgate accept --from RECORD --new --reason "..."',
        "perfgate accept --from RECORD --improved",
    ]


def test_nobody_watches_the_lines_of_a_process_that_is_timed() -> None:
    variables = {"COV_CORE_SOURCE": "x", "COVERAGE_PROCESS_START": "x", "PYTEST_ADDOPTS": "-x", "KEPT": "1"}
    assert environment(variables.items())["KEPT"] == "1"
    assert not {"COV_CORE_SOURCE", "COVERAGE_PROCESS_START", "PYTEST_ADDOPTS"} & set(environment(variables.items()))


def test_cases_on_constant_inputs_are_named_in_one_line() -> None:
    note = (Finding(title="constant inputs", detail="float16[64, 64] is all 0"),)
    plain, noted = [case(f"t{at}", 1e6) for at in range(2)], [case(f"t{at}", 1e6, findings=note) for at in range(5)]
    assert constant([*plain, *noted[:2]])[0].endswith("on real data: tests/test_k.py::t0, tests/test_k.py::t1")
    assert constant(noted)[0].endswith("tests/test_k.py::t2 and 2 more")
    assert constant(plain) == []


def test_cases_whose_outputs_are_not_filled_are_named_in_one_line() -> None:
    note = (Finding(title="outputs whose writing is not checked", detail="Tensor float32 sparse_coo: ..."),)
    assert constant([case("t", 1e6, findings=note)]) == ["outputs whose writing is not checked: tests/test_k.py::t"]


def test_a_call_of_nothing_is_named_in_one_line() -> None:
    def of(name: str, time: float, kind: str) -> CaseReport:
        report = case(name, time)
        identity = Identity(device="d", timer="host")
        device = Device(key="d", name="d", kind=kind)
        return replace(report, measurement=replace(report.measurement, identity=identity, device=device))

    reports = [of("test_none", 0.5, "host"), of("test_work", 1e6, "host"), of("test_gpu", 0.5, "gpu")]
    (line,) = empty_calls_note(reports)
    assert line.endswith("; next: do more work in one call")
    assert "test_none" in line
    assert not {"test_work", "test_gpu"} & set(line.replace("::", " ").split())
    assert empty_calls_note([of("test_dict", 999, "host")]) == []


def test_a_call_of_nothing_is_named_where_the_timer_of_hosts_timed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both take turns, and the fastest of each is taken: a machine may be slower in the meantime."""
    device = Device(key="d", name="d", kind="host")
    took, empties = [], []
    for _ in range(9):
        means: list[float] = []
        _batches(lambda: None, perf_counter_ns, 2000)(15, means)
        took.append(median(means))
        empties.append(summary._empty_call_ns())
    monkeypatch.setattr(summary, "_empty_call_ns", lambda: min(empties))
    one = case("test_none", 1.1 * min(took))
    alike = replace(one.measurement, identity=Identity(device="d", timer="host"), device=device)
    assert empty_calls_note([replace(one, measurement=alike)])


def test_no_line_of_the_table_is_torn_by_a_narrow_terminal() -> None:
    reports = [case("test_gemm[128]", 2.0, 1.0, Outcome.SUSPECT)]
    whole = _tables(reports, width=ANY)
    assert whole[0].split("  ")[0] == "outcome"
    assert "tests/test_k.py::test_gemm[128]" in whole[-1]
    narrow = _tables(reports, width=max(map(len, whole)) - 1)
    assert "  …::test_gemm[128]  " in narrow[-1]
    assert max(map(len, narrow)) < max(map(len, whole))
    fewer = _tables(reports, width=max(map(len, narrow)) - 1)
    assert fewer[-1].rstrip().endswith("slowdown <= 3%")
    assert _tables(reports, width=10)[0].split() == ["outcome", "test", "time", "slowdown"], "these stay"
    new = [case("test_new", 2.0, outcome=Outcome.UNBASELINED)]
    assert _tables(new, width=10)[0].split() == ["outcome", "test", "time", "interval"], "without a slowdown these"
    long = [case("test_mean_of_a_masked_batch_of_sequences[float32]", 2.0), *reports]
    lines = _tables(long, width=72)
    assert max(map(len, lines)) == 72
    assert ["…::test_mean" in line and "float32]" in line for line in lines].count(True) == 1, "both ends of a name"
    assert lines[-1].split()[1] == "…::test_gemm[128]", "what fits is whole"


def test_a_case_has_one_line_with_its_time_its_interval_and_the_worst_of_its_limits() -> None:
    slow = case("test_a", 2e6, 1e6, Outcome.REGRESSED)
    two = replace(slow, verdicts=(replace(slow.verdicts[0], outcome=Outcome.PASSED), *slow.verdicts))
    (row,) = verdict_table([two]).rows
    assert row[:3] == ("regressed", str(two.key), 2e6)
    assert str(row[3]).startswith("[")
    assert row[4:6] == ("+100.0 %", "slowdown <= 3%, 1 more limit")
    long = replace(
        slow.verdicts[0], limit=parse_limit("change(kernel_time(kernel=attention_forward)) <= 3%", kinds=by_name())
    )
    (row,) = verdict_table([replace(slow, verdicts=(long, *slow.verdicts))]).rows
    assert str(row[5]).endswith("<= 3%, 1 more"), "a longer cell would lose its middle"
    within = replace(slow.verdicts[0], outcome=Outcome.PASSED)
    broken = replace(slow.verdicts[0], outcome=Outcome.BROKEN, limit=parse_limit("time <= 1ms", kinds=by_name()))
    (row,) = verdict_table([replace(slow, verdicts=(broken, within))]).rows
    assert row[4:6] == ("+100.0 %", "time <= 1ms, 1 more limit"), "the slowdown was judged, so its column has it"
    calm = replace(slow.verdicts[0], outcome=Outcome.PASSED, metric=None)
    (row,) = verdict_table([replace(slow, verdicts=(calm, calm))]).rows
    assert row[5] == "slowdown <= 3% (not compared: same code), 1 more limit"
    assert not is_clean(two)
    assert is_clean(case("test_b", 1e6, 1e6)), "passed"
    assert is_clean(replace(two, verdicts=())), "without a limit"


def test_a_reference_whose_own_limit_is_judged_shows_its_outcome() -> None:
    passed = case("test_a#eager", 1.01e6, 1e6).verdicts[0]
    speedup = parse_limit("speedup(over=eager) >= 1.2x", kinds=by_name())
    over = replace(passed, limit=speedup, outcome=Outcome.NOT_APPLICABLE, metric=None)
    report = replace(case("test_a", 1.01e6, 1e6), key=CaseKey(nodeid="t.py::test_a", name="eager"))
    (row,) = verdict_table([replace(report, verdicts=(over, passed))]).rows
    assert (row[0], *row[4:6]) == ("passed", "+1.0 %", "slowdown <= 3%, 1 more limit")
    (row,) = verdict_table([replace(report, verdicts=(over,))]).rows
    assert row[0] == "reference"
    assert counted("quick", [replace(report, verdicts=(over, passed))]) == "quick: 1 passed"


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("kept as this machine's first", ["kept as this", "  machine's", "  first"]),
        ("short", ["short"]),
        ("next  perfgate accept --new --reason", ["next  perfgate accept --new --reason"]),
    ],
)
def test_a_sentence_is_folded_between_words_and_a_command_never(line: str, lines: list[str]) -> None:
    assert folded(line, 12) == lines


@pytest.mark.parametrize(("live", "wide", "expected"), [(True, 80, 80), (True, 9, 60), (False, 80, ANY)])
def test_only_a_terminal_has_columns(live: bool, wide: int, expected: int) -> None:
    out = SimpleNamespace(isatty=live, _tw=SimpleNamespace(fullwidth=wide))
    config = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda _: out))
    assert columns(config) == expected  # type: ignore[arg-type]
    nobody = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=lambda _: None))
    assert columns(nobody) == ANY  # type: ignore[arg-type]


def test_a_case_that_a_quick_run_leaves_open_has_a_row_and_the_command_that_decides() -> None:
    open_ = case("test_a", 1e6, 9e5, Outcome.UNDECIDED)
    step = "pytest test_a --perfgate=full --perfgate-rounds=3"
    open_ = replace(open_, verdicts=tuple(replace(v, effect=Effect.WARN, next=(step,)) for v in open_.verdicts))
    assert _left_open(open_, Mode.QUICK)
    assert not _left_open(open_, Mode.FULL)
    failing = replace(open_, verdicts=tuple(replace(v, effect=Effect.FAIL) for v in open_.verdicts))
    assert not _left_open(failing, Mode.QUICK)
    ceilings = replace(open_, verdicts=tuple(replace(v, next=("perfgate ceilings",)) for v in open_.verdicts))
    assert not _left_open(ceilings, Mode.QUICK), "a full run would not decide it"
    assert not _left_open(case("test_a", 1e6, 9e5, Outcome.SUSPECT), Mode.QUICK)
    assert "pytest --perfgate=full" in next_commands([open_], "pytest", recorded=False)
    assert next_commands([open_], "pytest", recorded=False, full=True) == ["perfgate report"]


def test_a_speed_up_that_asks_for_a_look_is_shown_whole() -> None:
    faster = case("test_a", 1e4, 1e6, Outcome.IMPROVED)
    doubted = tuple(replace(v, sentence=DOUBTFUL, effect=Effect.WARN) for v in faster.verdicts)
    plain = tuple(replace(v, effect=Effect.WARN) for v in faster.verdicts)
    (block,) = blocks([replace(faster, verdicts=doubted), replace(faster, verdicts=plain)], standing(), 100)
    assert "is the work still done?" in block
