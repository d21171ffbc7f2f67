"""What every store of the history does: the same questions to each."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import replace

from pytest_perfgate.model.measurement import HistoryEntry
from pytest_perfgate.model.metric import Interval, Metric
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.ports import HistoryStore
from pytest_perfgate.model.values import Dimension

MOMENT = dt.datetime(2026, 6, 1, tzinfo=dt.timezone.utc)
KEY = CaseKey(nodeid="t.py::test_a[1]", name="bwd")
OTHER = CaseKey(nodeid=f"t.py::test_b[{'x' * 5000}-\u00e4]")

Open = Callable[[], HistoryStore]


def entry(time: float, key: CaseKey = KEY, **fields) -> HistoryEntry:
    """One of a run of its own, a second a nanosecond after the first."""
    when = (MOMENT + dt.timedelta(seconds=time)).isoformat()
    defaults = {"when": when, "run": f"r{time}", "commit": "c0ffee", "clock_hz": 1.5e9}
    return HistoryEntry(key=key, device="d", time=time, **(defaults | fields))


def nothing_is_there_yet(opened: Open) -> None:
    history = opened()
    assert history.read(KEY, "d") == ()
    assert history.keys() == ()
    assert list(history.lines()) == []
    assert not history.has("abc")


def entries_come_back_in_the_order_of_time(opened: Open) -> None:
    history = opened()
    assert history.append([entry(float(n)) for n in (2, 1, 5)]) == 3
    assert history.append([entry(float(n)) for n in (3, 4)]) == 2
    assert history.append([]) == 0
    assert history.read(KEY, "d") == tuple(entry(float(n)) for n in range(1, 6))
    assert [s.time for s in opened().read(KEY, "d", last=2)] == [4.0, 5.0]
    assert history.read(KEY, "other") == ()
    assert history.keys() == (("d", KEY),)
    assert history.keys("other") == ()


def a_run_counts_once_however_often_it_comes(opened: Open) -> None:
    history = opened()
    assert history.append([entry(1.0)]) == 1
    assert history.append([entry(1.0), entry(2.0, OTHER, run="r1.0")]) == 1, "the rest of one that was cut short"
    assert opened().append([entry(1.0)]) == 0
    nameless = entry(7.0, run="")
    assert [history.append([nameless]) for _ in range(2)] == [1, 0], "its moment and its commit name it"
    assert [s.time for s in history.read(KEY, "d")] == [1.0, 7.0]
    assert [s.run for s in history.read(OTHER, "d")] == ["r1.0"]


METRICS = (
    Metric(name="time", value=2.0, dimension=Dimension.TIME, interval=Interval(low=1.9, high=2.2)),
    Metric(name="sol", value=0.5, dimension=Dimension.FRACTION, labels=(("roof", "memory"),)),
)


def all_that_is_known_comes_back(opened: Open) -> None:
    history = opened()
    whole = entry(
        2.0, outcome="regressed", host="node-7", card="GPU-1", identity="clocks=lock", metrics=METRICS, processes=3,
        facts=(("driver", "580.1"), ("numpy", "2.1"), ("text", "\u00b5 % \\ ' \" \t")), branch="main", scatter=0.01,
    )  # fmt: skip
    odd = entry(3.0, metrics=(Metric(name="mfu", value=float("nan"), dimension=Dimension.FRACTION),))
    history.append([whole, odd])
    bare = replace(whole, metrics=())
    assert history.read(KEY, "d") == (bare, replace(odd, metrics=()))
    assert list(history.lines(detailed=2)) == [(whole, replace(odd, metrics=()))], "what is no number has no place"
    assert list(opened().lines(last=2, detailed=1)) == [(bare, replace(odd, metrics=()))]
    assert list(history.lines(last=1)) == [(replace(odd, metrics=()),)]


def lines_are_of_one_case_and_device_each(opened: Open) -> None:
    history = opened()
    history.append([replace(entry(1.0, key), device=device) for key in (OTHER, KEY) for device in ("e", "d")])
    history.append([entry(2.0)])
    rows = [(line[0].device, line[0].key, [s.time for s in line]) for line in history.lines()]
    assert rows == [("d", KEY, [1.0, 2.0]), ("d", OTHER, [1.0]), ("e", KEY, [1.0]), ("e", OTHER, [1.0])]
    assert history.keys("e") == (("e", KEY), ("e", OTHER))


def levels_have_a_number_a_run_of_each_figure_that_is_named(opened: Open) -> None:
    """Of runs that timed nothing too; the newest alone have all of their figures."""
    history, time, roof = opened(), ("time", ()), ("sol", (("roof", "memory"),))
    rest = replace(entry(2.0, metrics=METRICS[1:]), time=0.0, processes=0)
    history.append([entry(1.0, metrics=METRICS), rest, entry(3.0), entry(4.0, OTHER)])
    of = {("d", KEY): [roof, time], ("e", KEY): [roof]}
    ((line, levels),) = history.levels(of, detailed=2)
    assert line == (entry(1.0), rest, entry(3.0))
    assert {name: repr(numbers) for name, numbers in levels.items()} == {
        time: "[2.0, nan, nan]",
        roof: "[0.5, 0.5, nan]",
    }
    ((newest, levels),) = opened().levels({("d", KEY): [roof]}, last=2)
    assert newest == (replace(rest, metrics=()), entry(3.0))
    assert repr(levels) == repr({roof: [0.5, math.nan]})
    assert list(history.levels({("d", OTHER): []}, detailed=1)) == [((entry(4.0, OTHER),), {})]
    assert list(history.levels({})) == []


def a_record_is_known_by_its_digest(opened: Open) -> None:
    history = opened()
    history.append([entry(1.0)], record="abc")
    history.append([entry(1.0)], record="abc")
    history.append([], record="empty")
    assert [opened().has(name) for name in ("abc", "empty", "other")] == [True, True, False]


CONTRACT = (
    nothing_is_there_yet,
    entries_come_back_in_the_order_of_time,
    a_run_counts_once_however_often_it_comes,
    all_that_is_known_comes_back,
    lines_are_of_one_case_and_device_each,
    levels_have_a_number_a_run_of_each_figure_that_is_named,
    a_record_is_known_by_its_digest,
)
