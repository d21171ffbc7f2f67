"""Timelines, windows, trees and links on traces whose truth is counted by hand."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.analysis.trace.survey import AnalysisSettings, in_window, timelines
from pytest_perfgate.core.analysis.trace.timeline import parse_window, steps
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import Kind
from tests.kineto_file import host, kernel, surveyed


def test_a_user_s_pattern_finds_more_communication(tmp_path):
    events = [kernel("my_ring_step", 0, 1)]
    survey = surveyed(tmp_path / "t.json", events, AnalysisSettings(communication=("my_ring",)))
    assert survey.kinds.tolist() == [Kind.COMMUNICATION]


@pytest.fixture
def mixed(tmp_path):
    events = [
        kernel("gemm", 0, 10),
        kernel("ncclDevKernel", 5, 15, stream=20),
        kernel("Memcpy", 18, 10, cat="gpu_memcpy", stream=21),
        kernel("Memset", 27, 3, cat="gpu_memset", stream=21),
        kernel("gemm", 50, 10),
    ]
    return surveyed(tmp_path / "t.json", events)


def test_the_parts_of_a_timeline_by_hand(mixed):
    (line,) = timelines(mixed).values()
    parts = (line.computation, line.exposed_comm, line.exposed_memcpy, line.exposed_memset, line.idle)
    assert parts == (20_000, 10_000, 8_000, 2_000, 20_000)
    assert sum(parts) == line.total == 60_000
    assert line.overlap == pytest.approx(5 / 15)
    assert (line.idle_micro, line.idle_macro, line.gaps) == (0, 20_000, 1)


def test_without_communication_there_is_no_overlap(tmp_path):
    (line,) = timelines(surveyed(tmp_path / "t.json", [kernel("gemm", 0, 1)])).values()
    assert line.overlap is None


def test_a_time_range_cuts_what_straddles_it(mixed):
    (window,) = parse_window(mixed.trace, "8us..55us")
    (line,) = timelines(in_window(mixed, window)).values()
    assert (line.total, line.computation, line.exposed_comm) == (47_000, 7_000, 10_000)
    assert line.busy + line.idle == line.total


def test_steps_are_windows_and_a_wrong_one_is_refused(tmp_path):
    events = [host(f"ProfilerStep#{n}", 100 * n, 90, cat="user_annotation") for n in (3, 4)]
    events += [kernel("gemm", 310, 10), kernel("gemm", 420, 30)]
    survey = surveyed(tmp_path / "t.json", events)
    assert [w.step for w in steps(survey.trace)] == ["3", "4"]
    (window,) = parse_window(survey.trace, "step=4")
    (line,) = timelines(in_window(survey, window)).values()
    assert line.computation == 30_000
    with pytest.raises(PerfgateError, match="no step or annotation fits"):
        parse_window(survey.trace, "step=9")
