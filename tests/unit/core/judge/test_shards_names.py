"""Tests of core/judge/shards: what errors and notes name, and shards of processors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.policy import CI
from pytest_perfgate.core.judge.shards import Source, merged, missing_places
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Effect, Outcome
from pytest_perfgate.model.verdict import RunReport, SuiteNote, Universe
from tests.reports import DEVICE, LIMIT
from tests.shards import UNIVERSE, record


def merge(*reports: RunReport) -> RunReport:
    return merged([Source(place=f"{at}.json", report=report) for at, report in enumerate(reports)])


def shard_of(report: RunReport, **fields) -> RunReport:
    return replace(report, shards=(replace(report.shards[0], **fields),))


MORE = Universe(cases=(*UNIVERSE.cases, *((f"tests/test_k.py::test_{at}", (LIMIT,)) for at in range(4))), policy=CI)


@pytest.mark.parametrize(
    ("reports", "says"),
    [
        ((record(1, "abcd"), record(2, "abcd")), "test_a, tests/test_k.py::test_b, tests/test_k.py::test_c and 1 more"),
        ((record(1, ""), record(2, "")), "test_a, tests/test_k.py::test_b, tests/test_k.py::test_c and 1 more"),
        (
            (record(1, "ac"), shard_of(record(2, "bd"), universe=MORE)),
            "test_0, tests/test_k.py::test_1, tests/test_k.py::test_2 and 1 more",
        ),
    ],
    ids=["chosen twice", "chosen by none", "collected by one"],
)
def test_an_error_names_three_tests_and_counts_the_others(reports: tuple[RunReport, ...], says: str) -> None:
    with pytest.raises(PerfgateError) as error:
        merge(*reports)
    assert error.value.what.endswith(says)


def test_a_case_names_three_missing_shards_and_counts_the_others() -> None:
    (lost, *_) = [case for case in merge(record(1, "abc", count=5)).cases if case.worst is Outcome.NOT_MEASURED]
    assert lost.verdicts[0].sentence.endswith("2/5 on NVIDIA H200, 3/5 on NVIDIA H200, 4/5 on NVIDIA H200 and 1 more")


def test_the_first_shard_may_be_missing() -> None:
    assert missing_places(record(2, "bd").shards) == ("1/2 on NVIDIA H200",)


def test_a_shard_without_a_device_counts_among_the_processors() -> None:
    """Its first shard and that of a processor are two, so each has a run of its own."""
    one, other = (shard_of(record(at, letters), device="") for at, letters in ((1, "ac"), (2, "bd")))
    again = shard_of(record(1, "ac"), device="host-epyc")
    assert missing_places([*one.shards, *other.shards, *again.shards]) == ("2/2 on host-epyc",)


def test_processors_of_one_run_measure_no_case_twice() -> None:
    """Whatever the names of the two."""
    one, other = (shard_of(record(at, letters), device="host-epyc") for at, letters in ((1, "ac"), (2, "bd")))
    renamed = replace(one.cases[0].measurement, device=replace(DEVICE, name="another processor"))
    other = replace(other, cases=(*other.cases, replace(one.cases[0], measurement=renamed)))
    with pytest.raises(PerfgateError) as error:
        merge(one, other)
    assert error.value.code.name == "merge-twice"


def test_a_note_of_several_shards_together_names_none() -> None:
    letters = enumerate("abcd", 1)
    four = [record(at, letter, count=4, chosen=(at - 1,), run=letter) for at, letter in letters]
    halves = [merge(*four[:2]), merge(*four[2:])]
    notes = tuple(SuiteNote(kind="floor", effect=Effect.WARN, text=f"{count} limits raised") for count in (1, 2))
    whole = merge(replace(halves[0], notes=notes), replace(halves[1], notes=()))
    assert [note.text for note in whole.notes] == ["1 limits raised", "2 limits raised"]
