from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pytest_perfgate.core.analysis.regressions import (
    Findings,
    Trend,
    by_commit,
    cause_of_step,
    findings,
    findings_document,
    joined_runs,
    stale_cases,
    steps,
)
from pytest_perfgate.core.judge.accepted_line import figure_levels
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.measurement import Baseline, HistoryEntry, Identity
from pytest_perfgate.model.metric import Figure, Metric
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.values import Dimension

START = dt.date(2026, 1, 1)


def line(
    levels: Sequence[float], *, name: str = "a", device: str = "H200", each: int = 20, **fields
) -> list[HistoryEntry]:
    """A run a day, so many at each level; the commit is that of the day."""
    dice = random.Random(name)
    days = [level for level in levels for _ in range(each)]
    return [
        HistoryEntry(
            key=CaseKey(nodeid=f"t.py::test_{name}"), device=device, time=level * dice.gauss(1, 0.003),
            when=(START + dt.timedelta(days=at)).isoformat(), **({"commit": f"{at:07x}", "run": f"r{at}"} | fields),
        )
        for at, level in enumerate(days)
    ]  # fmt: skip


def accepted(time: float, when: str, why: str = "more rows a tile") -> Baseline:
    return Baseline(key=CaseKey(nodeid="t.py::test_a"), device="H200", time=time, when=when, why=why)


KINDS = [
    ([100.0, 100.0], Findings(cases=1, runs=40), ()),
    ([100.0, 110.0], "slower", (0.1, 0.1)),
    ([100.0, 110.0, 100.0], "gone", (0.1, 0.0)),
    ([100.0, 110.0, 106.0], "slower", (0.1, 0.06)),
    ([100.0, 110.0, 103.0], "gone", (0.1, 0.03)),
    ([100.0, 110.0, 80.0], "gone", (0.1, -0.2)),
    ([100.0, 90.0], "faster", (-0.1, -0.1)),
    ([100.0, 101.0], Findings(cases=1, runs=40), ()),
]


@pytest.mark.parametrize(("levels", "kind", "figures"), KINDS)
def test_what_became_of_a_step(levels: list[float], kind: object, figures: tuple[float, ...]) -> None:
    every = findings([Trend(line(levels))])
    if isinstance(kind, Findings):
        assert every == kind
        return
    step = getattr(every, str(kind))[0]
    assert (step.change, step.now / step.before - 1) == pytest.approx(figures, abs=0.01)
    assert abs(int(step.commit, 16) - 20) <= 1
    assert int(step.earlier, 16) == int(step.commit, 16) - 1
    assert not (every.slower and every.gone)


@pytest.mark.parametrize(
    ("time", "when", "part"),
    [(110.0, "2026-02-01", "accepted"), (110.0, "2026-01-05", "slower"), (100.0, "2026-02-01", "slower")],
)
def test_a_level_that_somebody_accepted(time: float, when: str, part: str) -> None:
    every = findings([Trend(line([100.0, 110.0]), accepted(time, when))])
    (step,) = getattr(every, part)
    assert step.accepted == ("more rows a tile" if part == "accepted" else "")


def test_other_measurements_are_no_part_of_a_line() -> None:
    entries = [*line([100.0], identity="clocks=lock"), *line([200.0], identity="usual")]
    assert Trend(entries).changes == ()
    locked = Baseline(
        key=entries[0].key, device="H200", time=1.0, when="2026", identity=Identity(device="H200", clocks="lock")
    )
    assert Trend(entries, locked).accepted is None
    assert Trend(entries[:5], locked).accepted is locked


def test_steps_of_one_commit_stand_together_whatever_the_device() -> None:
    lines = [
        line([100.0, 110.0]),
        line([100.0, 120.0], name="b", device="H100"),
        line([100.0, 100.0, 108.0], name="c"),
    ]
    groups = by_commit(findings([Trend(one) for one in lines]).slower)
    assert [(commit, [step.key.test for step in group]) for commit, group in groups] == [
        (f"{40:07x}", ["test_c"]),
        (f"{20:07x}", ["test_b", "test_a"]),
    ]


def test_what_moved_where_no_commit_did() -> None:
    before = line([100.0], commit="c0ffee", facts=(("driver", "570"), ("torch", "2.5")), host="n1")
    after = line([0.0, 110.0], commit="c0ffee", facts=(("driver", "580"), ("torch", "2.5")), host="n1")[12:]
    (step,) = steps(Trend([*before, *after]))
    assert step.moved == (("driver", "570", "580"),)
    assert cause_of_step(step) == "driver 570 -> 580"
    alike = [s for s in line([100.0, 110.0], commit="c0ffee", facts=(("driver", "570"),))]
    assert "nothing else" in cause_of_step(next(steps(Trend(alike))))


def test_a_host_that_comes_and_goes_moved_nothing() -> None:
    entries = [
        HistoryEntry(key=s.key, device=s.device, time=s.time, when=s.when, commit="c", run=s.run, host=f"n{at % 3}")
        for at, s in enumerate(line([100.0, 110.0]))
    ]
    assert next(steps(Trend(entries))).moved == ()


def test_what_nobody_measured() -> None:
    lines = [Trend(one) for one in (line([1e3]), line([1e3], name="b")[:2], line([1e3], name="c", device="H100")[:3])]
    assert [(one.device, one.key and one.key.test, one.when) for one in stale_cases(lines, "2026-01-08")] == [
        ("H200", "test_b", "2026-01-02"),
        ("H100", None, "2026-01-03"),
    ]
    assert list(stale_cases(lines, "2026-01-01")) == []


def test_since_a_day() -> None:
    lines = [Trend(line([100.0, 110.0, 121.0]))]
    assert [len(findings(lines, since=day).slower) for day in ("", "2026-02-01", "2026-03-01")] == [2, 1, 0]
    assert [len(findings(lines, over=over).slower) for over in (0.05, 0.3)] == [2, 0]
    assert findings(lines, since="2026-02-01").runs == 29


def test_the_page_says_all_of_it() -> None:
    lines = [
        line([100.0, 110.0]), line([100.0, 80.0], name="b"), line([100.0, 130.0, 100.0], name="c"),
        line([100.0], name="d")[:3], line([100.0], name="e", device="H100")[:3],
    ]  # fmt: skip
    text = render_text(findings_document(findings([Trend(one) for one in lines], before="2026-01-20")), 100, 100)
    words = "1 case got slower and stayed so, by 1 change; 1 faster; 1 went away; 1 case without a run"
    assert words in " ".join(text.split())
    assert "no run on H100" in " ".join(text.split())
    assert f"Measured before it: {19:07x}" in text
    assert "test_d" in text
    assert "Nothing got slower" in render_text(findings_document(findings([Trend(line([1.0]))])), 100, 100)


def test_a_step_too_small_to_speak_of_is_no_level() -> None:
    """Its neighbours are then of the levels that are left."""
    trend = Trend(line([100.0, 110.0, 110.6, 100.0]))
    assert [change.index for change in trend.changes] == [20, 60]
    assert trend.changes[0].after == trend.changes[1].before == pytest.approx(110.3, abs=0.3)


def shard(name: str, run: str, commit: str = "c0ffee", device: str = "H200") -> Trend:
    return Trend(line([100.0], name=name, each=1, run=run, commit=commit, device=device))


JOINED = [
    ([shard("a", "1"), shard("b", "2"), shard("c", "3")], [3]),
    ([shard("a", "1"), shard("b", "2"), shard("a", "3", device="A100")], [3]),
    ([shard("a", "1"), shard("b", "2", commit="beef")], [1, 1]),
    ([shard("a", "1", commit=""), shard("b", "2", commit="")], [1, 1]),
    ([Trend(line([100.0], each=3, commit="c0ffee")), shard("b", "s")], [2, 1, 1]),
]


@pytest.mark.parametrize(("lines", "sizes"), JOINED)
def test_runs_of_a_commit_without_a_case_in_common_are_shards_of_one(lines: list[Trend], sizes: list[int]) -> None:
    assert [len(run) for run in joined_runs(lines)] == sizes
    assert findings(lines).runs == len(sizes)


def test_a_digest_lists_the_largest_changes_and_counts_the_others() -> None:
    lines = [Trend(line([100.0, 110.0 + n / 10], name=f"c{n}")) for n in range(30)]
    text = render_text(findings_document(findings(lines)), 100, 100)
    assert text.count("t.py::test_c") == 20
    assert "test_c29" in text
    assert "10 more" in text


def findings_of(name: str, numbers: Sequence[float], dimension: Dimension, accepted: float, **line) -> Findings:
    """What became of one accepted figure, a run a day, beside a time that stays."""
    entries = [
        replace(one, metrics=(Metric(name=name, value=number, dimension=dimension),))
        for one, number in zip(line_of_days(len(numbers)), numbers)
    ]
    figures = (Figure(name=name, value=accepted, dimension=dimension),)
    baseline = Baseline(key=entries[0].key, device="H200", time=100.0, figures=figures, **line)
    lines = [Trend(own, then, of=of, levels=levels) for own, levels, then, of in figure_levels(entries, baseline)]
    return findings([Trend(entries, baseline)], lines)


def line_of_days(count: int) -> list[HistoryEntry]:
    return line([100.0], each=count)


PART, COUNT, BYTES = Dimension.FRACTION, Dimension.COUNT, Dimension.BYTES


@pytest.mark.parametrize(
    ("name", "dimension", "then", "now", "kind", "text"),
    [
        ("registers", COUNT, 128, 129, "slower", "+0.8 %"),
        ("registers", COUNT, 129, 128, "faster", "-0.8 %"),
        ("spills", BYTES, 0, 16, "slower", "0 B -> 16 B"),
        ("overlap", PART, 0.80, 0.70, "slower", "-10.0 pp"),
        ("overlap", PART, 0.70, 0.80, "faster", "+10.0 pp"),
        ("peak_memory", BYTES, 1e6, 1.1e6, "slower", "+10.0 %"),
        ("peak_memory", BYTES, 1e6, 1.001e6, "", ""),
        ("loss", Dimension.PLAIN, 0.05, 0.06, "slower", "+20.0 %"),
    ],
)
def test_every_accepted_figure_has_its_steps(
    name: str, dimension: Dimension, then: float, now: float, kind: str, text: str
) -> None:
    every = findings_of(name, [then] * 15 + [now] * 15, dimension, then)
    kinds = {part for part in ("slower", "faster", "gone", "accepted") if getattr(every, part)}
    assert kinds == ({kind} if kind else set())
    assert every.cases == 1
    page = render_text(findings_document(every))
    assert text in page
    assert (f"test_a {name}" in page) is bool(kind)


def test_one_register_more_shows_in_the_first_run() -> None:
    (step,) = findings_of("registers", [128, 128, 129], COUNT, 128).slower
    assert (step.before, step.after, step.when) == (128, 129, "2026-01-03")


def test_a_figure_that_somebody_accepted() -> None:
    every = findings_of("registers", [128] * 15 + [160] * 15, COUNT, 160, when="2026-01-20", why="two stages")
    assert [step.accepted for step in every.accepted] == ["two stages"]
