"""Which shard this is; records of shards joined: verdicts stay, what is foreign is refused, what is missing named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.policy import CI, KEPT, REGRESSED, UNMEASURED, exit_code
from pytest_perfgate.core.judge.shards import (
    SHARDS,
    Place,
    Source,
    common,
    foreign_split,
    merged,
    missing_places,
    parse_place,
    place_of,
)
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Choice, Effect, Outcome
from pytest_perfgate.model.verdict import RunReport, SuiteNote, Universe
from tests.reports import LIMIT, baseline
from tests.shards import A100, ENVIRONMENT, NAMES, UNIVERSE, record


def sources(*reports: RunReport) -> list[Source]:
    return [Source(place=f"{at}.json", report=report) for at, report in enumerate(reports)]


def shard_of(report: RunReport, **fields) -> RunReport:
    return replace(report, shards=(replace(report.shards[0], **fields),))


def test_two_shards_are_one_run_whose_verdicts_are_theirs() -> None:
    one, other = record(1, "ac", outcome=Outcome.REGRESSED), record(2, "bd")
    whole = merged(sources(other, one))
    assert [str(report.key) for report in whole.cases] == list(NAMES)
    assert {report.key: report for report in whole.cases} == {r.key: r for r in (*one.cases, *other.cases)}
    assert (whole.complete, whole.filtered, whole.seconds) == (True, False, 20.0)
    assert whole.started == "2026-06-01T10:01:00+00:00"
    assert exit_code(whole.cases, whole.notes) == REGRESSED
    assert whole.notes == ()


def test_the_order_of_the_records_says_nothing() -> None:
    one, other = record(1, "ac"), record(2, "bd")
    assert merged(sources(one, other)).cases == merged(sources(other, one)).cases


def test_a_merged_record_merges_on() -> None:
    four = [
        record(index, letter, count=4, chosen=("abcd".index(letter),), run=letter)
        for index, letter in enumerate("abcd", 1)
    ]
    halves = [merged(sources(*four[:2])), merged(sources(*four[2:]))]
    assert [len(half.cases) for half in halves] == [4, 4], "two are not measured in each"
    whole = merged(sources(*halves))
    assert [report.worst for report in whole.cases] == [Outcome.PASSED] * 4, "what one missed is in the other"
    assert whole.notes == ()
    with pytest.raises(PerfgateError) as error:
        merged(sources(merged(sources(*four)), four[0]))
    assert error.value.code.name == "merge-twice"


def test_a_missing_shard_leaves_its_cases_not_measured() -> None:
    whole = merged(sources(record(1, "ac")))
    outcomes = {report.key.test: report.worst for report in whole.cases}
    assert [outcomes[f"test_{letter}"] for letter in "abcd"] == [Outcome.PASSED, Outcome.NOT_MEASURED] * 2
    assert exit_code(whole.cases, whole.notes) == UNMEASURED
    assert missing_places(whole.shards) == ("2/2 on NVIDIA H200",)
    (note,) = whole.notes
    assert (note.kind, note.effect, note.names) == (SHARDS, Effect.FAIL, ("2/2 on NVIDIA H200",))
    assert whole.filtered, "what is not here must not be taken for gone"


def test_a_shard_that_was_cut_short_leaves_the_rest_not_measured() -> None:
    one = shard_of(record(1, "ac"), complete=False)
    one = replace(one, cases=one.cases[:1], complete=False)
    whole = merged(sources(one, record(2, "bd")))
    outcomes = {report.key.test: report.worst for report in whole.cases}
    assert [outcomes[f"test_{letter}"] for letter in "abcd"] == [
        Outcome.PASSED, Outcome.PASSED, Outcome.NOT_MEASURED, Outcome.PASSED,
    ]  # fmt: skip
    assert len(whole.cases) == 4, "of each test once"
    assert not whole.complete
    assert exit_code(whole.cases) == UNMEASURED


@pytest.mark.parametrize(("expect", "code"), [(0, KEPT), (2, KEPT), (3, UNMEASURED), (4, UNMEASURED)])
def test_how_many_are_expected(expect: int, code: int) -> None:
    whole = merged(sources(record(1, "ac"), record(2, "bd")), expect)
    assert exit_code(whole.cases, whole.notes) == code


def _other_commit(report: RunReport) -> RunReport:
    return shard_of(report, environment=replace(ENVIRONMENT, commit="deadbeef"))


def _other_limit(report: RunReport) -> RunReport:
    limit = replace(LIMIT, text="slowdown <= 30%", bound=0.3)
    return shard_of(report, universe=Universe(cases=tuple((name, (limit,)) for name in NAMES), policy=CI))


def _other_policy(report: RunReport) -> RunReport:
    return shard_of(report, universe=replace(UNIVERSE, policy=replace(CI, suspect=Choice.FAIL)))


def _other_tests(report: RunReport) -> RunReport:
    more = Universe(cases=(*UNIVERSE.cases, ("tests/test_k.py::test_e", (LIMIT,))), policy=CI)
    return shard_of(report, universe=more)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (_other_commit, "merge-unlike"),
        (lambda r: shard_of(r, environment=replace(ENVIRONMENT, dirty=True)), "merge-unlike"),
        (lambda r: shard_of(r, changes="another"), "merge-unlike"),
        (_other_limit, "merge-unlike"),
        (_other_policy, "merge-unlike"),
        (_other_tests, "merge-unlike"),
        (lambda r: shard_of(r, count=3), "merge-unlike"),
        (lambda r: shard_of(r, split="0123456789"), "merge-unlike"),
        (lambda r: replace(r, mode="quick"), "merge-unlike"),
        (lambda r: replace(r, shards=()), "merge-unlike"),
        (lambda _: record(2, "b"), "merge-unlike"),
        (lambda _: record(1, "ac"), "merge-twice"),
        (lambda _: record(1, "ac", run="a retry"), "merge-twice"),
        (lambda _: record(2, "abd"), "merge-twice"),
        (lambda r: replace(r, cases=record(1, "ac").cases), "merge-twice"),
    ],
    ids=[
        "commit", "dirty", "changes", "limits", "policy", "collected", "count", "costs", "mode", "old record", "lost case",
        "same record", "a retry", "chosen twice", "measured twice",
    ],
)  # fmt: skip
def test_what_does_not_belong_together_is_refused(changed: Callable[[RunReport], RunReport], code: str) -> None:
    with pytest.raises(PerfgateError) as error:
        merged(sources(record(1, "ac"), changed(record(2, "bd"))))
    assert error.value.code.name == code


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (_other_limit, "tests/test_k.py::test_a has the limits slowdown <= 30%, and slowdown <= 3% in 0.json"),
        (_other_policy, "policy suspect fail, and warn in 0.json"),
        (_other_commit, "commit deadbeef, and "),
        (lambda r: shard_of(r, count=3), "shard 2/3 of node-2, and shard 1/2 of node-1 in 0.json"),
        (lambda r: shard_of(r, split="0123456789"), "shard 2/2 of node-2 was divided by other costs than shard 1/2"),
        (_other_tests, "collected other tests than shard 1/2 of node-1 in 0.json: tests/test_k.py::test_e"),
        (lambda _: record(2, "b"), "no shard of 2 has tests/test_k.py::test_d"),
        (lambda _: record(1, "ac"), "shard 1/2 of node-1: the same record is in 0.json"),
        (lambda _: record(1, "ac", run="a retry"), "shard 1/2 of node-1: another run of the same shard is in 0.json"),
        (lambda _: record(2, "abd"), "measured by two shards: tests/test_k.py::test_a"),
        (lambda r: replace(r, cases=record(1, "ac").cases), "tests/test_k.py::test_a is in 0.json too"),
    ],
)
def test_what_is_refused_is_named_with_both_records(changed: Callable[[RunReport], RunReport], says: str) -> None:
    with pytest.raises(PerfgateError) as error:
        merged(sources(record(1, "ac"), changed(record(2, "bd"))))
    assert says in error.value.what
    assert error.value.place == ("" if says.startswith(("no shard", "measured by two")) else "1.json")


def test_a_limit_that_one_of_them_has_not_is_told_as_none() -> None:
    bare = Universe(cases=tuple((name, ()) for name in NAMES), policy=CI)
    with pytest.raises(PerfgateError) as error:
        merged(sources(record(1, "ac"), shard_of(record(2, "bd"), universe=bare)))
    assert "has the limits none, and slowdown <= 3% in" in error.value.what


def test_records_of_three_shards_are_each_compared_with_the_first() -> None:
    three = [record(at, letters, count=3, chosen=chosen, run=letters) for at, letters, chosen in
             ((1, "ab", (0, 1)), (2, "c", (2,)), (3, "d", (3,)))]  # fmt: skip
    assert len(merged(sources(*three)).cases) == 4
    for at in (1, 2):
        with pytest.raises(PerfgateError) as error:
            merged(sources(*three[:at], _other_commit(three[at]), *three[at + 1 :]))
        assert error.value.place == f"{at}.json"


@pytest.mark.parametrize(
    ("statuses", "status"),
    [((0, 0), 0), ((0, 1), 1), ((1, 0), 1), ((1, 5), 5), ((5, 1), 5), ((2, 5), 5), ((3, 2), 3), ((1, 2), 2)],
)
def test_the_worst_end_of_a_shard_is_that_of_the_run(statuses: tuple[int, int], status: int) -> None:
    """Failed tests are less than an interrupt or an internal error."""
    reports = [shard_of(record(at, letters), status=own) for at, letters, own in zip((1, 2), ("ac", "bd"), statuses)]
    assert merged(sources(*reports)).status == status


def test_a_filter_of_one_shard_is_one_of_the_run() -> None:
    whole = merged(sources(shard_of(record(1, "ac"), filtered=True), record(2, "bd")))
    assert whole.filtered


def test_a_record_without_a_measurement_is_in_no_other() -> None:
    lost = merged(sources(record(1, "ac")))
    assert sum(case.measurement is None for case in lost.cases) == 2
    assert merged(sources(lost, record(2, "bd"))).notes == ()


def test_more_than_expected_is_refused() -> None:
    with pytest.raises(PerfgateError) as error:
        merged(sources(record(1, "ac"), record(2, "bd")), 1)
    assert error.value.code.name == "merge-twice"


def test_kinds_of_gpu_are_runs_of_their_own() -> None:
    cards = [record(1, "ac"), record(2, "bd"), record(1, "ac", device=A100), record(2, "bd", device=A100)]
    whole = merged(sources(*cards))
    assert len(whole.cases) == 8
    assert {r.measurement.device.name for r in whole.cases if r.measurement} == {"NVIDIA H200", "NVIDIA A100"}
    partly = merged(sources(*cards[:3]))
    assert missing_places(partly.shards) == ("2/2 on NVIDIA A100",)
    assert sum(report.worst is Outcome.NOT_MEASURED for report in partly.cases) == 2


LINES = {
    "NVIDIA-A100": [baseline("test_a", 1e6), baseline("test_b", 1e6), baseline("test_gone", 1e6)],
    "NVIDIA H200": [baseline("test_a", 1e6)],
    "NVIDIA-L4": [baseline("test_gone", 1e6)],
    "host-epyc": [baseline("test_a", 1e6)],
}


def test_a_kind_of_gpu_with_accepted_lines_and_no_record_is_named() -> None:
    (note,) = merged(sources(record(1, "ac"), record(2, "bd")), 0, LINES).notes
    assert note.effect is Effect.WARN
    assert note.text.startswith("NVIDIA-A100 has 2 accepted lines")


def test_unlike_processors_are_parts_of_one_run_until_they_repeat_a_shard() -> None:
    one, other = record(1, "ac", device=None), record(2, "bd")
    mixed = [shard_of(one, device="host-epyc"), shard_of(other, device="host-xeon")]
    assert missing_places(merged(sources(*mixed)).shards) == ()
    again = shard_of(record(1, "ac"), device="host-xeon", run="third")
    assert missing_places([*mixed[0].shards, *mixed[1].shards, *again.shards]) == ("2/2 on host-epyc",)


def test_notes_of_all_are_kept_each_once() -> None:
    shared = SuiteNote(kind="dropped", effect=Effect.FAIL, text="1 accepted case no longer collected", names=("x",))
    own = [SuiteNote(kind="floor", effect=Effect.WARN, text=f"{count} limits raised") for count in (1, 2)]
    reports = [replace(record(at, "ac" if at == 1 else "bd"), notes=(shared, own[at - 1])) for at in (1, 2)]
    notes = merged(sources(*reports)).notes
    assert [note.text for note in notes] == [
        shared.text, "shard 1/2 of node-1: 1 limits raised", "shard 2/2 of node-2: 2 limits raised",
    ]  # fmt: skip


def test_a_note_that_only_one_shard_has_is_told_as_it_is() -> None:
    note = SuiteNote(kind="floor", effect=Effect.WARN, text="1 limit raised")
    whole = merged(sources(replace(record(1, "ac"), notes=(note,)), record(2, "bd")))
    assert whole.notes == (note,)
    again = merged(sources(replace(whole, notes=(note, replace(note, text="2 limits raised")))))
    assert [one.text for one in again.notes] == ["1 limit raised", "2 limits raised"]


def test_a_note_that_all_have_is_no_shard_s_own() -> None:
    notes = [SuiteNote(kind="floor", effect=Effect.WARN, text=text) for text in ("2 limits raised", "1 limit raised")]
    one, other = replace(record(1, "ac"), notes=tuple(notes)), replace(record(2, "bd"), notes=tuple(notes[:1]))
    assert [note.text for note in merged(sources(one, other)).notes] == [
        "2 limits raised", "shard 1/2 of node-1: 1 limit raised",
    ]  # fmt: skip


def test_records_of_several_kinds_of_gpu_merge_on() -> None:
    halves = [
        merged(sources(record(at, letters), record(at, letters, device=A100))) for at, letters in ((1, "ac"), (2, "bd"))
    ]
    whole = merged(sources(*halves))
    assert [report.worst for report in whole.cases] == [Outcome.PASSED] * 8
    with pytest.raises(PerfgateError) as error:
        merged(sources(whole, record(1, "ac", device=A100)))
    assert error.value.code.name == "merge-twice"


def test_notes_on_shards_are_made_anew() -> None:
    lost = merged(sources(record(1, "ac")))
    assert [note.kind for note in lost.notes] == [SHARDS]
    assert merged(sources(lost, record(2, "bd"))).notes == ()


def test_what_all_ran_in_and_what_only_some() -> None:
    other = replace(ENVIRONMENT, facts=(("driver", "590"), ("toolkit", "13")), python="3.12")
    shared = common([ENVIRONMENT, other])
    assert (shared.facts, shared.python, shared.commit) == ((), "", ENVIRONMENT.commit)
    assert shared.platform == ENVIRONMENT.platform
    assert common([other, replace(other, platform="another")]).platform == ""
    packages = replace(ENVIRONMENT, packages=(("numpy", "1.26"), ("torch", "2.5")))
    newer = replace(ENVIRONMENT, packages=(("numpy", "2.1"), ("torch", "2.5")))
    assert common([packages, newer, packages]).packages == (("torch", "2.5"),)
    assert common([ENVIRONMENT, ENVIRONMENT]) == ENVIRONMENT


_IN_THREES = {f"SLURM_ARRAY_TASK_{name}": n for name, n in (("ID", "4"), ("COUNT", "4"), ("MIN", "1"), ("STEP", "3"))}
_STEPS = {f"SLURM_ARRAY_TASK_{name}": n for name, n in (("COUNT", "8"), ("MIN", "0"), ("MAX", "14"), ("STEP", "2"))}


@pytest.mark.parametrize(
    ("text", "environment", "place"),
    [
        ("3/8", {}, Place(3, 8)),
        (" 1 / 1 ", {}, Place(1, 1)),
        ("auto", {"PERFGATE_SHARD": "2/4", "CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "9"}, Place(2, 4)),
        ("auto", {"PERFGATE_JOB_INDEX": "0", "PERFGATE_JOB_TOTAL": "4"}, Place(1, 4)),
        ("auto", {"CI_NODE_INDEX": "3", "CI_NODE_TOTAL": "8"}, Place(3, 8)),
        ("auto", {"CI_NODE_TOTAL": "1"}, Place(1, 1)),
        ("auto", {"BUILDKITE_PARALLEL_JOB": "0", "BUILDKITE_PARALLEL_JOB_COUNT": "8"}, Place(1, 8)),
        ("auto", {"CIRCLE_NODE_INDEX": "7", "CIRCLE_NODE_TOTAL": "8"}, Place(8, 8)),
        ("auto", {"SLURM_PROCID": "1", "SLURM_NTASKS": "4"}, Place(2, 4)),
        ("auto", {"SLURM_ARRAY_TASK_ID": "5", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "4"}, Place(2, 4)),
        ("auto", {**_STEPS, "SLURM_ARRAY_TASK_ID": "0"}, Place(1, 8)),
        ("auto", {**_STEPS, "SLURM_ARRAY_TASK_ID": "6"}, Place(4, 8)),
        ("auto", {**_STEPS, "SLURM_ARRAY_TASK_ID": "14"}, Place(8, 8)),
        ("auto", {"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_PROCID": "0"}, Place(1, 4)),
        ("auto", {"CI_NODE_TOTAL": "1", "SLURM_PROCID": "1", "SLURM_NTASKS": "4"}, Place(1, 1)),
        ("auto", {"CI_NODE_INDEX": "2", "SLURM_PROCID": "1", "SLURM_NTASKS": "4"}, Place(2, 4)),
        ("auto", {"CI_NODE_TOTAL": "2", "SLURM_PROCID": "1", "SLURM_NTASKS": "4"}, Place(2, 4)),
        ("auto", {"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "1"}, Place(1, 1)),
        ("auto", {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "4"}, Place(3, 4)),
        ("auto", _IN_THREES, Place(2, 4)),
        (
            "auto",
            {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_STEP": "0"},
            Place(3, 4),
        ),
    ],
)
def test_which_shard_this_is(text: str, environment: dict[str, str], place: Place) -> None:
    assert place_of(text, environment) == place


@pytest.mark.parametrize(
    ("text", "environment"),
    [
        ("3", {}),
        ("0/8", {}),
        ("9/8", {}),
        ("a/8", {}),
        ("3/", {}),
        ("auto", {}),
        ("auto", {"CI_NODE_INDEX": "9", "CI_NODE_TOTAL": "8"}),
        ("auto", {"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "1"}),
        ("auto", {"BUILDKITE_PARALLEL_JOB": "x", "BUILDKITE_PARALLEL_JOB_COUNT": "8"}),
        ("auto", {"PERFGATE_SHARD": "3 of 8"}),
        ("auto", {**_STEPS, "SLURM_ARRAY_TASK_ID": "3"}),
        ("²/8", {}),
        ("auto", {**_STEPS, "SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_TASK_MAX": "15"}),
        ("auto", {**_STEPS, "SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "3"}),
    ],
)
def test_what_is_no_shard(text: str, environment: dict[str, str]) -> None:
    with pytest.raises(PerfgateError) as error:
        place_of(text, environment)
    assert error.value.code.name == "shard-unknown"


def test_a_place_names_its_source() -> None:
    with pytest.raises(PerfgateError) as error:
        parse_place("8", "PERFGATE_SHARD")
    assert error.value.place == "PERFGATE_SHARD"


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({"splits": 4, "group": 2}, "--perfgate-shard 2/4"),
        ({"splits": 2, "group": 1}, "--perfgate-shard 1/2"),
        ({"num_shards": 4, "shard_id": 0}, "--perfgate-shard 1/4"),
    ],
)
def test_another_plugin_that_divides_is_refused(options: dict[str, object], fix: str) -> None:
    with pytest.raises(PerfgateError) as error:
        foreign_split(options)
    assert error.value.code.name == "shard-foreign"
    assert fix in error.value.fix


@pytest.mark.parametrize(
    "options",
    [
        {}, {"splits": None, "group": None}, {"num_shards": 1, "shard_id": 0}, {"splits": 4, "group": None},
        {"splits": "4", "group": 2}, {"splits": 1, "group": 1}, {"group": 2},
    ],
)  # fmt: skip
def test_plugins_that_divide_nothing_are_let_be(options: dict[str, object]) -> None:
    foreign_split(options)
