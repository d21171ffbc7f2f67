"""Timelines, windows, trees and links on traces whose truth is counted by hand."""

from __future__ import annotations

import pytest

from tests.kineto_file import host, kernel, launch, surveyed


def test_a_straddle_under_a_microsecond_goes_to_the_grandparent(tmp_path):
    events = [host("a", 0, 100), host("b", 10, 20), host("c", 25, 5.5), host("d", 40, 70)]
    survey = surveyed(tmp_path / "t.json", [*events, kernel("k", 0, 1)])
    assert survey.tree.parent[:4].tolist() == [-1, 0, 0, -1]
    assert survey.tree.dropped == 1


def test_events_without_a_length_have_parents_and_no_children(tmp_path):
    events = [host("a", 0, 10), host("mark", 5, 0), host("b", 5, 3), host("end", 10, 0), kernel("k", 0, 1)]
    survey = surveyed(tmp_path / "t.json", events)
    assert survey.tree.parent[:4].tolist() == [-1, 2, 0, -1]


def test_links_by_correlation_then_by_external_id_and_coverage(tmp_path):
    events = [
        host("aten::mm", 0, 10, **{"External id": 5}),
        launch(2, 1),
        kernel("linked", 20, 30, correlation=1),
        kernel("by id", 50, 10, correlation=99, **{"External id": 5}),
        kernel("nobody", 60, 60, correlation=98),
    ]
    survey = surveyed(tmp_path / "t.json", events)
    assert survey.link.launch.tolist() == [1, 0, -1]
    assert survey.link.leaf.tolist() == [0, 0, -1]
    assert survey.coverage == pytest.approx(0.4)


def test_a_graph_launch_owns_every_kernel_of_its_correlation(tmp_path):
    events = [host("cudaGraphLaunch", 0, 5, cat="cuda_runtime", correlation=7)]
    events += [kernel(f"k{n}", 10 + n, 1, correlation=7) for n in range(5)]
    assert surveyed(tmp_path / "t.json", events).link.launch.tolist() == [0] * 5
