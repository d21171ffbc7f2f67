"""Eight ranks of a recommendation model against what another analyser says of them."""

from __future__ import annotations

import csv

import pytest

from pytest_perfgate.core.analysis.trace.job import alone
from pytest_perfgate.core.analysis.trace.ranks import Meeting, collectives, meeting_metrics, straggler, waits, word
from pytest_perfgate.core.analysis.trace.survey import timelines


@pytest.fixture
def ranks(look):
    return [look(f"dlrm_8ranks/rank{n}") for n in range(8)]


def rows(corpus, name):
    with (corpus / "expected" / "dlrm_8ranks" / name).open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def test_overlap_of_every_rank_to_a_hundredth_of_a_point(ranks, corpus):
    for seen, row in zip(ranks, rows(corpus, "dlrm8_comm_comp_overlap.csv")):
        (line,) = timelines(seen).values()
        assert 100 * line.overlap == pytest.approx(float(row["comp_comm_overlap_pctg"]), abs=0.01)


def test_idle_and_compute_time_of_every_rank_to_the_microsecond(ranks, corpus):
    for seen, row in zip(ranks, rows(corpus, "dlrm8_temporal_breakdown.csv")):
        (line,) = timelines(seen).values()
        assert line.idle / 1e3 == float(row["idle_time(us)"])
        assert line.computation / 1e3 == float(row["compute_time(us)"])
        assert line.total / 1e3 == float(row["kernel_time(us)"])


def test_rank_seven_is_the_straggler_in_any_order_of_joining(ranks):
    parts = [Meeting(parts=collectives(seen, n), present=frozenset({n})) for n, seen in enumerate(ranks)]
    forward, backward, paired = Meeting(), Meeting(), Meeting()
    for part in parts:
        forward |= part
    for part in reversed(parts):
        backward |= part
    for first, second in zip(parts[::2], parts[1::2]):
        paired |= first | second
    assert {straggler(m.shared) for m in (forward, backward, paired)} == {7}
    assert waits(forward.shared) == waits(backward.shared) == waits(paired.shared)


def test_a_collective_has_size_and_bandwidths(ranks):
    meeting = Meeting()
    for n, seen in enumerate(ranks):
        meeting |= Meeting(parts=collectives(seen, n))
    metrics = meeting_metrics(meeting)
    (algorithm,) = metrics.find("alg_bandwidth", (("collective", "AllReduce"),))
    (bus,) = metrics.find("bus_bandwidth", (("collective", "AllReduce"),))
    assert bus.value == pytest.approx(algorithm.value * 2 * 7 / 8)


def test_one_rank_alone_says_what_it_cannot_know(ranks):
    meeting = Meeting(parts=collectives(ranks[0], 0), present=frozenset({0}))
    found = meeting_metrics(meeting)
    assert found.names() == ("comm_bytes", "comm_count", "comm_time")
    assert found.missing("bus_bandwidth").mend == "give the traces of all ranks"
    assert "Only one rank's trace is here" in alone(meeting)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "AllReduce"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "SendRecv"),
        ("deep_ep::intranode::dispatch<int, 8>(void*)", "dispatch"),
    ],
)
def test_a_collective_is_called_by_what_it_does(name, kind):
    assert word(name) == kind
