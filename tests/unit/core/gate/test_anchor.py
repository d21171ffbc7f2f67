"""Small steps add up: the anchor alarms where no step did."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_perfgate.core.judge.accepted_line import drift
from pytest_perfgate.core.render.logs import history_document
from pytest_perfgate.core.render.pictures import timeline, told
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.core.stats.change_points import change_points
from pytest_perfgate.model.measurement import Baseline, Sitting
from pytest_perfgate.model.plan import CaseKey

KEY = CaseKey(nodeid="t.py::test_a")


def line(*times: float) -> list[Sitting]:
    return [
        Sitting(key=KEY, device="host-x", time=t, when=f"2030-01-{at + 1:02}T00:00:00", commit=f"{at:08x}")
        for at, t in enumerate(times)
    ]


def test_ten_steps_of_one_percent_are_an_alarm_though_none_of_them_is() -> None:
    times = [1000 * 1.01**step for step in range(1, 11)]
    found = drift(line(*times), 1000.0, 0.03)
    assert found is not None
    assert found.largest == pytest.approx(0.01)
    assert found.alarms
    assert found.sentence == "slower than the anchor after 10 runs, no step of them beyond the limit"
    assert found.change == pytest.approx(1.01**9 - 1)


def test_a_line_that_holds_says_nothing_and_one_bad_day_is_no_alarm() -> None:
    found = drift(line(1000, 1010, 990, 1500), 1000.0, 0.03)
    assert found is not None
    assert not found.alarms
    assert found.sentence == ""


def test_only_what_came_after_the_anchor_counts() -> None:
    sittings = line(500, 500, 1000, 1000, 1001)
    found = drift(sittings, 1000.0, 0.03, since="00000002")
    assert found is not None
    assert (found.steps, found.largest) == (2, pytest.approx(0.001))
    assert drift([], 1000.0, 0.03) is None
    assert drift(sittings, 0.0, 0.03) is None


def test_the_history_says_the_change_point_and_the_anchor() -> None:
    sittings = line(*[1000.0, 1002, 999, 1001, 1000, 1003, 1100, 1102, 1099, 1101, 1100, 1098])
    baseline = Baseline(key=KEY, device="host-x", time=1000.0, commit="00000000")
    text = render_text(history_document([(KEY, "host-x", sittings, baseline)], overview=False))
    assert "1 change point: +9.9 % at 00000006" in text
    assert "new level" in text
    assert "new level" not in render_text(history_document([(KEY, "host-x", sittings[:3], None)], overview=False))
    assert "ANCHOR  +10.0 %" in text


def test_the_picture_has_a_dot_a_sitting_and_a_level_a_segment() -> None:
    sittings = line(*[10.0] * 8, *[12.0] * 8)
    changes = change_points([s.time for s in sittings])
    drawn = timeline("a <b>", sittings, changes, accepted=10.0)
    assert drawn.svg.count("<circle") == 16
    assert drawn.svg.count("<polyline") == 4  # two levels, the step between them, what was accepted
    assert "+20.0 % at 0000000<" in drawn.svg
    assert "accepted 10 ns" in drawn.svg
    assert "2030-01-01" in drawn.svg
    late = timeline("a" * 200, sittings, [replace(changes[0], index=15)])
    assert f"…{'a' * 90}<" in late.svg
    assert 'text-anchor="end" fill="currentColor">+20.0 %' in late.svg
    assert "a &lt;b&gt;" in drawn.svg
    assert told(sittings, changes) == "1 change point: +20.0 % at 00000008"
    assert told(sittings, ()) == "no change point"
