"""Each part of a condition on names and texts decides something: ci/mutate took it away, and nobody noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.changes.source import same_program
from pytest_perfgate.core.changes.tests import Reach
from pytest_perfgate.core.judge.accepted_line import drift
from pytest_perfgate.core.judge.against_limit import judge_artifact
from pytest_perfgate.core.judge.context import accepted_facts
from pytest_perfgate.core.judge.samples import excused
from pytest_perfgate.core.limits.merge import names_part, unmatched_cases
from pytest_perfgate.core.limits.scope import proposal
from pytest_perfgate.model.codes import CODES
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Environment, Sitting
from pytest_perfgate.model.metric import Analysis, Metric, MetricSet, Problem
from pytest_perfgate.model.values import Dimension, Interval
from tests.unit.core.gate.bench import KEY, accepted, limit, samples, verdict


def share(name: str, low: float, value: float, high: float) -> Metric:
    return Metric(name=name, value=value, dimension=Dimension.FRACTION, interval=Interval(low=low, high=high))


# artifacts and words


def problem_of(text: str, metrics: tuple[Metric, ...]) -> str:
    analysis = Analysis(kind="nsys", subject="x", metrics=MetricSet(metrics=metrics), views={})
    with pytest.raises(PerfgateError) as caught:
        judge_artifact(analysis, [limit(text)])
    return str(caught.value)


def test_a_scope_of_what_has_none_says_so_and_one_that_matches_apart_names_what_there_is() -> None:
    assert "only no scopes" in problem_of("overlap(rank=1) >= 5%", (share("overlap", 0.1, 0.1, 0.1),))
    ranks = tuple(
        replace(share("overlap", 0.1, 0.1, 0.1), labels=(("rank", rank), ("stage", stage)))
        for rank, stage in (("0", "one"), ("1", "two"))
    )
    said = problem_of("overlap(rank=0, stage=two) >= 5%", ranks)
    assert "there are: 0, 1, one, two" in said


def test_a_problem_without_advice_of_its_own_gives_that_of_its_code() -> None:
    wrong = Problem(code="limit-syntax", what="it does not read")
    analysis = Analysis(kind="nsys", subject="x", metrics=MetricSet(), views={}, problems=(wrong,))
    assert judge_artifact(analysis, [limit("overlap >= 5%")])[0].next == (CODES["limit-syntax"].mend,)


def test_two_programs_that_differ_in_a_test_are_two() -> None:
    assert not same_program("def test_a(): f()\n", "def test_a(): g()\n")


def test_nothing_is_proposed_where_there_is_nothing() -> None:
    assert proposal("x", (), all_of="there are") == ""
    assert proposal("x", ("abcdef",), all_of="there are") == "there are: abcdef"


@pytest.mark.parametrize(
    ("text", "said", "never"),
    [
        ("count(HMMA) <= five", "count(HMMA) <= 5", "<= 5 or"),
        ("time <= 3x", "units that fit: ns", "percent"),
        ("time <= 1,000.5us", "1_000.5", "1.000.5"),
        ("time <= -5", "never negative", "unit"),
    ],
)
def test_a_mend_says_what_fits_and_no_more(text: str, said: str, never: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        limit(text)
    assert said in str(caught.value)
    assert never not in str(caught.value)
    assert limit("count(HMMA) >= -5").bound == -5


# scopes, paths, facts


def test_a_limit_that_names_no_call_misses_none() -> None:
    assert unmatched_cases([limit("time <= 1s")], ()) == ()
    assert not names_part(limit("time <= 1s"), ("bwd",))
    assert not names_part(limit("time(case=bwd) <= 1s"), ())
    assert names_part(limit("time(case=b*) <= 1s"), ("fwd", "bwd"))


def test_an_instruction_is_asked_for_by_counts_that_name_one() -> None:
    seen = MetricSet(metrics=tuple(replace(share("count", 1, 1, 1), dimension=Dimension.COUNT, labels=(("opcode", op), ("kernel", "k"))) for op in ("HMMA", "FFMA")))  # fmt: skip
    found = verdict(1e6, [limit("count(kernel=other) >= 1")], metrics=seen)
    assert "no opcode" not in found.sentence
    assert "opcode" in verdict(1e6, [limit("count(HMNA) >= 1")], metrics=seen).sentence


def test_a_folder_whose_name_is_a_pattern_is_left_out_by_its_name() -> None:
    assert Reach(without=("tests/[a]",)).leaves_out("tests/[a]/test_k.py::test_a")
    assert not Reach(beneath=("tests/t.py",)).holds("tests/t.pyx::test_a")


def test_a_fact_of_the_device_is_kept_under_its_own_name() -> None:
    around = Environment(facts=(("device driver", "570.1"), ("driver", "1.0"), ("ptxas", "12.8")))
    assert accepted_facts(accepted(1e6, surroundings=around)) == (("driver", "570.1"), ("ptxas", "12.8"))
    assert accepted_facts(accepted(1e6)) == ()


def test_what_was_empty_is_said_to_have_been() -> None:
    then = accepted(1e6)
    empty = replace(then, identity=replace(then.identity, data=""))
    assert "data none ->" in verdict(baseline=empty).sentence


def test_an_anchor_that_is_the_newest_sitting_is_its_own_first() -> None:
    sittings = [Sitting(key=KEY, device="d", time=time, when="", commit=commit) for time, commit in ((5.0, "aa"), (9.0, "bb"))]  # fmt: skip
    found = drift(sittings, 9.0, 0.05, since="bb")
    assert found is not None
    assert (found.steps, found.now) == (1, 9.0)


def test_a_process_without_a_sample_excuses_nothing() -> None:
    assert excused([replace(samples(1e6), durations=())] * 3, 1e6, 0.1) == ""
