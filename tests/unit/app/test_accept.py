"""Tests of app/accept."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.accept import (
    Request,
    _is_wanted,
    accept,
    check_complete,
    check_decisions,
    code_of,
    decisions,
    unused,
)
from pytest_perfgate.core.judge.acceptance import Change, Proposal, decide
from pytest_perfgate.core.judge.accepted_line import FigureStep, Signature, improved
from pytest_perfgate.core.judge.suite import DROPPED, SKIPPED, UNUSED
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Baseline, Identity
from pytest_perfgate.model.metric import Figure
from pytest_perfgate.model.plan import Effect, Outcome
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import Arms, CaseReport, SuiteNote
from tests.reports import DEVICE, baseline, case, run

TODAY = "2026-05-02"  # the day of the line in tests.reports, as "TMA loads" is its reason


@pytest.mark.parametrize(
    ("why", "when", "refused"),
    [("TMA loads", TODAY, True), ("more of them", TODAY, False), ("TMA loads", "2026-05-03", False)],
)
def test_the_same_words_on_the_same_day_are_refused(why: str, when: str, *, refused: bool) -> None:
    signature = Signature(why=why, when=when)
    report = case("test_a", 2e6, 1e6, Outcome.REGRESSED)
    decision = decide(report, report.baseline, (), signature)
    assert decision.change is Change.SLOWER
    if not refused:
        check_decisions([decision], Request(signature=signature))
        return
    mine = replace(report, baseline=replace(report.baseline, local=True))
    check_decisions([decide(mine, mine.baseline, (), signature)], Request(signature=signature))
    with pytest.raises(PerfgateError, match="was given in an acceptance of today") as caught:
        check_decisions([decision], Request(signature=signature))
    assert caught.value.fix == "give the reason of this change"


def test_an_anchor_is_moved_with_a_reason_alone() -> None:
    request = Request(signature=Signature(anchor=True, when=TODAY))
    with pytest.raises(PerfgateError, match="--anchor starts the drift of a line anew") as error:
        check_decisions([], request)
    assert error.value.code.name == "accept-reason"
    check_decisions([], replace(request, signature=Signature(anchor=True, why="a new runner", when=TODAY)))


@pytest.mark.parametrize("change", [Change.KEPT, Change.FASTER, Change.WORSE])
def test_a_figure_that_got_worse_needs_a_reason_whatever_its_time_did(change: Change) -> None:
    step = FigureStep(before=None, after=Figure(name="spills", value=1.0, dimension=Dimension.COUNT), asks=True)
    line = baseline("test_a", 1e6)
    after = replace(line, why="one more stage", when="2026-06-01")
    decision = Proposal(report=case("test_a", 1e6, 1e6), change=change, before=line, after=after, figures=(step,))
    with pytest.raises(PerfgateError, match=r"1 case is worse in an accepted figure: .*test_a"):
        check_decisions([decision], Request())
    check_decisions([decision], Request(signature=Signature(why="one more stage", when="2026-06-01")))


@pytest.mark.parametrize(("names", "refused"), [((), False), (("test_a",), True)])
def test_a_case_that_cannot_be_trusted_is_refused_only_by_its_name(names: tuple[str, ...], refused: bool) -> None:
    decision = Proposal(report=case("test_a", 1e6, 1e6), change=Change.UNTRUSTED, why="too few samples")
    request = Request(names=names, signature=Signature(why="x", when="2026-06-01"))
    if not refused:
        check_decisions([decision], request)
        return
    with pytest.raises(PerfgateError, match="too few samples") as error:
        check_decisions([decision], request)
    assert error.value.code.name == "accept-untrusted"


def test_of_many_cases_the_first_are_named_and_the_others_counted() -> None:
    signature = Signature()
    cases = [case(f"test_{n}", 2e6, 1e6, Outcome.REGRESSED) for n in range(5)]
    proposed = [decide(one, one.baseline, (), signature) for one in cases]
    with pytest.raises(PerfgateError, match=r"5 cases are slower: .*test_0, .*test_1, .*test_2 and 2 more"):
        check_decisions(proposed, Request())


def test_a_faster_time_in_the_place_of_an_acceptance_that_has_ended_is_refused_without_a_reason() -> None:
    report = case("test_a", 0.8e6, 1e6)
    before = replace(report.baseline, expires="2026-05-01")
    decision = decide(report, before, (), Signature(when=TODAY))
    with pytest.raises(PerfgateError, match="1 case is faster than a time accepted for a while, whose end has passed"):
        check_decisions([decision], Request())


class Accepted:
    """A store in which lines of before lie."""

    def __init__(self, *lines: Baseline) -> None:
        self._lines = {str(line.key): line for line in lines}

    def read(self, _device: str, _path: str, _revision: str = "") -> dict[str, Baseline]:
        return self._lines

    def read_all(self, _device: str) -> dict[str, Baseline]:
        return self._lines


@pytest.mark.parametrize(
    ("line", "pinned", "two_builds", "refused"),
    [
        ("all", "3", True, True),
        (None, "3", True, True),
        ("3", "3", True, False),
        ("all", "all", True, False),
        ("all", "3", False, False),
    ],
    ids=["other runs use all", "new", "other runs are pinned too", "not pinned", "no revision"],
)
def test_what_both_arms_of_a_revision_were_pinned_for_is_no_accepted_time(
    line: str | None, pinned: str, *, two_builds: bool, refused: bool
) -> None:
    here = Identity(device=DEVICE.key, threads="2", affinity=pinned)
    report = case("test_a", 2e6, 1e6 if line else None, Outcome.REGRESSED)
    report = replace(report, measurement=replace(report.measurement, identity=here))
    report = replace(report, arms=Arms(base="c0ffee") if two_builds else None)
    then = () if line is None else (replace(report.baseline, identity=replace(here, affinity=line)),)
    request = Request(signature=Signature(why="three passes", when="2026-06-01"))
    proposed = decisions(run(report), request, Accepted(*then), lambda _case: ())
    assert [decision.change is Change.PINNED for decision in proposed] == [refused]
    assert proposed[0].writes is not refused
    if not refused:
        check_decisions(proposed, request)
        return
    with pytest.raises(PerfgateError, match=r"1 case measured on one core, against a revision: .*test_a") as caught:
        check_decisions(proposed, request)
    assert "pytest --perfgate=full" in caught.value.fix


def call_of(name: str, *, limited: bool) -> CaseReport:
    report = case("test_a[1]", 1e6, None, Outcome.UNBASELINED)
    return replace(report, key=replace(report.key, name=name), verdicts=report.verdicts if limited else ())


@pytest.mark.parametrize(
    ("means", "limited", "written"),
    [
        ((), True, ["ours"]),
        ((), False, ["ours", "other"]),
        (("worst(peak_memory) <= 1 MB",), False, []),
        (("worst(peak_memory) <= 1 MB", "geomean(slowdown) <= 1%"), False, ["ours", "other"]),
        (("geomean(slowdown) <= 1%",), True, ["ours", "other"]),
    ],
    ids=["a limit names another call", "no limits", "a mean of figures", "means of both", "a mean beside a limit"],
)
def test_a_time_is_written_of_a_call_that_a_limit_on_a_slowdown_asks_about(means, limited: bool, written) -> None:
    calls = (call_of("ours", limited=limited), call_of("other", limited=False))
    family = calls[0].key.nodeid.partition("[")[0]
    notes = tuple(SuiteNote(kind="geomean", effect=Effect.PASS, text=f"passed: {family}: {mean}: 1") for mean in means)
    proposed = decisions(run(*calls, notes=notes), Request(), Accepted(), lambda _case: ())
    assert [decision.report.key.name for decision in proposed if decision.writes] == written


@pytest.mark.parametrize(
    ("outcomes", "fix"),
    [
        ([Outcome.BROKEN], "see what failed: perfgate report"),
        ([Outcome.UNBASELINED], "perfgate accept --new, and run everything again"),
        ([Outcome.UNBASELINED, Outcome.BROKEN], "see what failed: perfgate report"),
    ],
)
def test_pruning_after_failed_cases_names_what_failed(outcomes: list[Outcome], fix: str) -> None:
    cases = (case(f"test_{n}", 1e6, None, outcome) for n, outcome in enumerate(outcomes))
    failed = (replace(c, verdicts=tuple(replace(v, effect=Effect.FAIL) for v in c.verdicts)) for c in cases)
    report = run(*failed)
    with pytest.raises(PerfgateError, match="of the last run failed") as caught:
        check_complete(report)
    assert caught.value.fix.startswith(fix)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"complete": False}, "the last run was interrupted"),
        ({"filtered": True}, "the last run left tests out"),
        ({"mode": "quick"}, "the last run was a quick run"),
        ({"cases": ()}, "the last run measured nothing"),
        ({}, ""),
    ],
)
def test_pruning_needs_the_record_of_a_complete_full_run(fields: dict[str, Any], what: str) -> None:
    report = replace(run(case("test_a", 1e6, 1e6)), **fields)
    if not what:
        check_complete(report)
        return
    with pytest.raises(PerfgateError) as error:
        check_complete(report)
    assert (error.value.code.name, error.value.what) == ("prune-incomplete", what)


def test_a_line_that_no_limit_uses_is_pruned_though_its_test_ran() -> None:
    lines = [baseline("test_a", 1e6), baseline("test_idle", 1e6)]
    store: Any = SimpleNamespace(read_all=lambda _device: {str(line.key): line for line in lines})
    idle = SuiteNote(kind=UNUSED, effect=Effect.PASS, text="", names=(str(lines[1].key),))
    report = run(case("test_a", 1e6, 1e6), case("test_idle", 1e6), notes=(idle,))
    assert unused(report, store) == (lines[1],)


def test_lines_of_a_test_that_was_skipped_are_not_pruned() -> None:
    lines = [baseline("test_a", 1e6), baseline("test_gpu", 1e6), baseline("test_gone", 1e6)]
    store: Any = SimpleNamespace(read_all=lambda _device: {str(line.key): line for line in lines})
    note = SuiteNote(kind=SKIPPED, effect=Effect.WARN, text="", names=(f"{lines[1].key.nodeid}: no 'cupy'",))
    assert unused(run(case("test_a", 1e6, 1e6), notes=(note,)), store) == (lines[2],)


def test_of_a_run_of_one_folder_the_lines_that_it_names_as_gone_are_pruned() -> None:
    lines = [baseline(name, 1e6) for name in ("test_a", "test_gone", "test_of_another_folder")]
    store: Any = SimpleNamespace(read_all=lambda _device: {str(line.key): line for line in lines})
    gone = SuiteNote(kind=DROPPED, effect=Effect.WARN, text="", names=(f"{lines[1].key} (renamed to test_new?)",))
    assert unused(run(case("test_a", 1e6, 1e6), notes=(gone,), filtered=True), store) == (lines[1],)
    with pytest.raises(PerfgateError, match="left tests out"):
        unused(run(case("test_a", 1e6, 1e6), filtered=True), store)


@pytest.mark.parametrize("filtered", [True, False])
def test_a_line_of_a_case_that_one_shard_measured_is_not_pruned_since_another_names_it_as_gone(filtered: bool) -> None:
    """Of a merged record of two kinds of GPU, a test that only one of them collects lost its line there."""
    lines = [baseline("test_a", 1e6)]
    store: Any = SimpleNamespace(read_all=lambda _device: {str(line.key): line for line in lines})
    gone = SuiteNote(kind=DROPPED, effect=Effect.WARN, text="", names=(str(lines[0].key),))
    assert unused(run(case("test_a", 1e6, 1e6), notes=(gone,), filtered=filtered), store) == ()


def test_a_line_that_was_accepted_after_the_day_of_a_record_is_not_pruned_by_it() -> None:
    """A record of CI may be older than the test."""
    lines = [baseline("test_gone", 1e6, when="2026-07-30"), baseline("test_new", 1e6, when="2026-07-31T08:00:00Z")]
    store: Any = SimpleNamespace(read_all=lambda _device: {str(line.key): line for line in lines})
    report = replace(run(case("test_a", 1e6, 1e6)), started="2026-07-30T23:59:59Z")
    assert unused(report, store) == (lines[0],)


@pytest.mark.parametrize(("cause", "step"), [("", "run perfgate accept again"), ("use another disk", "another disk")])
def test_accepting_into_a_folder_that_takes_nothing_speaks_of_accepting(cause: str, step: str) -> None:
    def write(lines: Any) -> Any:
        raise PerfgateError("file-unwritable", "it cannot be written: Permission denied", fix=cause)

    with pytest.raises(PerfgateError, match="Permission denied") as caught:
        accept((), SimpleNamespace(write=write))  # type: ignore[arg-type]
    assert step in caught.value.fix
    assert "when the run ends" not in caught.value.why


EARLIER_LINES = [baseline("test_one", 1e6), baseline("test_same", 1e6)]


def lines(*baselines: Baseline) -> dict[str, Baseline]:
    return {str(line.key): line for line in baselines}


def test_a_line_that_was_pruned_first_is_found_at_the_merge_base() -> None:
    store: Any = SimpleNamespace(
        read=lambda device, path, revision="": lines(*EARLIER_LINES) if revision else lines(EARLIER_LINES[1]),
        read_all=lambda device: lines(EARLIER_LINES[1]),
    )
    report = run(case("test_uno", 2e6, None, Outcome.UNBASELINED), filtered=True)
    for base, twin in (("c0ffee", EARLIER_LINES[0]), ("", None)):
        (decision,) = decisions(report, Request(new=True, base=base), store, lambda _: ())
        assert (decision.change, decision.predecessor) == (Change.NEW, twin)


@pytest.mark.parametrize(
    ("fields", "replaced"), [({}, True), ({"filtered": True}, False), ({"complete": False}, False)]
)
def test_a_line_without_a_case_is_gone_only_after_a_complete_run(fields: dict[str, Any], replaced: bool) -> None:
    store: Any = SimpleNamespace(read=lambda *at: {}, read_all=lambda device: lines(EARLIER_LINES[0]))
    report = run(case("test_uno", 2e6, None, Outcome.UNBASELINED), **fields)
    (decision,) = decisions(report, Request(new=True), store, lambda _: ())
    assert decision.predecessor == (EARLIER_LINES[0] if replaced else None)


def test_a_run_adds_to_the_lines_whose_commit_holds_its_code() -> None:
    report = run(case("test_a", 2e6, 1e6, Outcome.REGRESSED), case("test_b", 2e6, 1e6, Outcome.REGRESSED))
    committed = {name: baseline(name, 1e6, commit=commit) for name, commit in (("test_a", "c1"), ("test_b", "c2"))}
    store: Any = SimpleNamespace(read=lambda *at: lines(*committed.values()), read_all=lambda device: {})
    request = Request(add=True, since={"c1": ""}.get, signature=Signature(commit="c3", why="again"))
    changes = {d.report.key.nodeid[-1]: d.change for d in decisions(report, request, store, lambda case: ())}
    assert changes == {"a": Change.ONE_MORE, "b": Change.SLOWER}
    alone = decisions(report, replace(request, add=False), store, lambda case: ())
    assert {decision.change for decision in alone} == {Change.SLOWER}, "nobody asked to add"


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        (Request(), "abcde"),
        (Request(new=True), "ab"),
        (Request(improved=True), "cd"),
        (Request(new=True, improved=True), "abcd"),
    ],
)
def test_a_request_for_new_or_improved_cases_selects_these_alone(request_: Request, names: str) -> None:
    changes = {"a": Change.NEW, "b": Change.ADDED, "c": Change.LESS_NOISY, "d": Change.BETTER, "e": Change.SLOWER}
    made = (Proposal(report=case(f"test_{name}", 1e6), change=change) for name, change in changes.items())
    assert "".join(one.report.key.nodeid[-1] for one in made if _is_wanted(one, request_)) == names


@pytest.mark.parametrize("names", [(), ("test_a", "test_b", "test_c")])
def test_only_what_the_run_reported_as_faster_counts_as_improved(names: tuple[str, ...]) -> None:
    outcomes = {"test_a": Outcome.IMPROVED, "test_b": Outcome.PASSED, "test_c": Outcome.UNDECIDED}
    report = run(*(case(name, 0.8e6, 1e6, outcome) for name, outcome in outcomes.items()))
    written = [baseline(name, 1e6) for name in outcomes]
    request = Request(names=names, improved=True)
    proposed = decisions(report, request, Accepted(*written), lambda _case: ())
    assert [decision.report.key.nodeid[-1] for decision in proposed] == ["a"]


def test_a_case_is_as_fast_as_its_slowdown_says_whatever_its_other_limits_say() -> None:
    report = case("test_a", 0.8e6, 1e6, Outcome.IMPROVED)
    (faster,) = report.verdicts
    figure = replace(faster, limit=replace(faster.limit, metric="memory"))
    passed = replace(faster, outcome=Outcome.PASSED)
    for verdicts, expected in (((faster, replace(figure, outcome=Outcome.PASSED)), True), ((passed, figure), False)):
        assert improved(replace(report, verdicts=verdicts)) is expected


def test_git_is_asked_only_about_a_clean_head() -> None:
    pages = ("baselines/x.yaml", "table.md", "a.rst")
    edited: dict[str, tuple[str, ...] | None] = {"c1": ("baselines/x.yaml",), "c2": None, "c4": pages}
    repository: Any = SimpleNamespace(
        head=lambda: "c3", dirty=lambda: False, pages_alone=lambda commit, baselines: edited[commit]
    )
    since = code_of("c3", repository, "baselines")
    assert since is not None
    assert [since("c1"), since("c2"), since("")] == ["", None, None]
    assert since("c4") == "table.md, a.rst changed since c4: no code has that ending in it"
    assert code_of("c3+dirty", repository, "baselines") is None
    assert code_of("c2", repository, "baselines") is None
    repository.dirty = lambda: True
    assert code_of("c3", repository, "baselines") is None
