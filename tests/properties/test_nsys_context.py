"""The innermost range against a walk over all of them, and the overlap rows against points."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pytest_perfgate.core.analysis.nsys.lanes import innermost, launches
from pytest_perfgate.core.analysis.nsys.overlap import all_communication, overlaps, times
from pytest_perfgate.model.nsys import Activity, Calls, Rank, RankLane, Window, activity

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 25)), max_size=14)


@given(SPANS, st.lists(st.integers(-5, 95), max_size=30))
def test_the_last_started_range_that_holds_the_point(spans, points) -> None:
    start = np.array([s for s, _ in spans], dtype=np.int64)
    end = np.array([s + n for s, n in spans], dtype=np.int64)
    indices = innermost(start, end, np.array(points, dtype=np.int64))
    for point, at in zip(points, indices):
        holding = [(s, -(s + n)) for s, n in spans if s <= point <= s + n]
        assert (at >= 0) == bool(holding)
        if holding:
            assert (start[at], -end[at]) == max(holding)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=20),
       st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 50)), max_size=20))  # fmt: skip
def test_kernels_meet_the_first_call_of_their_process_and_correlation(kernels, calls) -> None:
    zero = np.zeros(len(kernels), dtype=np.int64)
    pid, correlation = (np.array([k[i] for k in kernels], dtype=np.int64) for i in (0, 1))
    rows = activity([zero, zero, pid, zero, zero, correlation, zero])
    tid, corr, start = (np.array(column, dtype=np.int64) for column in zip(*((p << 24 | 7, c, s) for p, c, s in calls))) if calls else (np.empty(0, dtype=np.int64),) * 3  # fmt: skip
    when, _, linked = launches(rows, Calls(start=start, tid=tid, correlation=corr))
    for number, (p, c) in enumerate(kernels):
        mine = [s for q, d, s in calls if (q, d) == (p, c)]
        assert linked[number] == bool(mine)
        assert when[number] == (min(mine) if mine else -1)


def lane(kernels: list[tuple[int, int, int, bool, int]]) -> RankLane:
    """(start, length, stream, talks, stage) as one rank's window of 0..100."""
    columns = [np.array([k[i] for k in kernels], dtype=np.int64) for i in (0, 1, 2, 4)]
    start, length, stream, stage = columns
    zero = np.zeros(len(kernels), dtype=np.int64)
    none = activity([np.empty(0, dtype=np.int64)] * 7)
    rows: Activity = activity([start, start + length, zero, zero, stream, zero, zero])
    return RankLane(
        rank=Rank(name="0", pid=1, device=0), window=Window(start=0, end=100, how="given"), kernels=rows, names=("k",),
        talks=np.array([k[3] for k in kernels], dtype=bool), stage=stage, stages=("s0", "s1"),
        purpose=zero - 1, purposes=(), linked=zero == 0, copies=none,
    )  # fmt: skip


KERNELS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 30), st.integers(1, 4), st.booleans(), st.integers(-1, 1)),
    min_size=1, max_size=12,
)  # fmt: skip


@given(KERNELS)
def test_overlap_rows_against_points(kernels) -> None:
    computing = {p for s, n, _, talks, _ in kernels if not talks for p in range(s, s + n)}
    busy = {stream for _, _, stream, talks, _ in kernels if not talks}
    rows = {row.stage: row for row in overlaps(lane(kernels)) if not row.outside}
    for index, name in enumerate(("s0", "s1")):
        mine = [(s, n) for s, n, stream, talks, stage in kernels if talks and stage == index and stream not in busy]
        assert (name in rows) == bool(mine)
        if mine:
            talking = {p for s, n in mine for p in range(s, s + n)}
            assert rows[name].total_ns == len(talking)
            assert rows[name].exposed_ns == len(talking - computing)
            assert rows[name].exposed_sum == sum(p not in computing for s, n in mine for p in range(s, s + n))
            assert rows[name].kernels == len(mine)


@given(KERNELS)
def test_the_parts_of_a_window_sum_to_it(kernels) -> None:
    row = times(lane(kernels))
    assert row.computation_ns + row.exposed_comm_ns + row.exposed_copies_ns + row.idle_ns == row.window_ns
    assert row.busy_ns + row.idle_ns == row.window_ns
    everything = all_communication(lane(kernels))
    assert (everything is None) == (not any(k[3] for k in kernels))
    if everything is not None:
        assert everything.exposed_ns == row.exposed_comm_ns
        assert everything.total_ns == row.communication_ns
