"""Every operator that has a model, once: its work, its category, the reference's sheets, findings by pattern."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.render.text import render_text
from tests.kineto_file import host, written
from tests.kineto_operators import CALLS, zoo


def test_every_view_of_the_zoo_and_of_it_against_itself(kineto, tmp_path):
    path = [written(tmp_path / "t.json", zoo(), deviceProperties=[{"name": "NVIDIA H100 80GB HBM3"}])]
    analysis = kineto.inspect(path, {"op": "aten::mm"})
    for name, view in analysis.views.items():
        assert "nan" not in render_text(view()).lower().split(), name
    (share,) = analysis.metrics.find("modelled")
    assert share.value == pytest.approx((len(CALLS) - 1) / len(CALLS))
    same = kineto.compare(path, path, {})
    changes = ("slowdown", "difference", "tree_edits")
    assert {metric.value for metric in same.metrics.metrics if metric.name in changes} == {0.0}
    assert all(render_text(view()) for view in same.views.values())


def test_a_report_of_several_windows_says_where_each_is(kineto, tmp_path):
    steps = [host(f"ProfilerStep#{n}", 1000 * n, 900, cat="user_annotation") for n in (1, 2)]
    ops = [host("aten::mm", 1000 * n + 100, 500) for n in (1, 2)]
    path = [written(tmp_path / "t.json", [*steps, *ops])]
    for window, several in (("steps", True), ("step=2", False), ("", False)):
        report = kineto.inspect(path, {"window": window} if window else {}).views["report"]()
        assert ("each of 2 windows: --view steps" in report.subtitle) == several
