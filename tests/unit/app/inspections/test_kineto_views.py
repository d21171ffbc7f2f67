"""Every operator that has a model, once: its work, its category, the reference's sheets, findings by pattern."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.render.text import render_text
from tests.kineto_file import written
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
