"""Every operator that has a model, once: its work, its category, the reference's sheets, findings by pattern."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.render.text import render_text
from tests.kineto_file import host, kernel, launch, written
from tests.kineto_job import PEAKS
from tests.kineto_operators import CALLS, ROWS, WISE, operation, zoo


def test_what_differs_between_two_traces_has_a_word(kineto, tmp_path):
    slow = [{**e, "dur": 4 * e["dur"]} if e["name"] == WISE else e for e in zoo() if e["name"] != "odd"]
    new = operation(len(CALLS), "mine::new", (ROWS,), "newer")
    first = written(tmp_path / "a.json", zoo())
    second = written(tmp_path / "b.json", [*slow, *new])
    found = kineto.compare([first], [second], PEAKS | {"peak": "bf16=100TFLOPS,fp32=10TFLOPS"})
    (relu,) = found.metrics.find("slowdown", (("op", "aten::relu"),))
    assert relu.value == pytest.approx(3.0)
    assert "unexpected: investigate, 300% slower: look at kernel selection" in relu.note
    assert found.metrics.missing("slowdown", (("op", "mine::new"),)).why == "only in the target"
    assert any("aten::relu takes 4.00 times the reference" in finding.title for finding in found.findings)
    assert "only in the reference" in render_text(found.views["ops"]())
    for kind in ("fair", "rough", "tree", "selection"):
        assert render_text(found.views[kind]())
    fair = render_text(found.views["fair"]())
    assert "Priority 1: aten::" in fair
    assert "Action: fusion or algorithm: torch.compile" in fair
    assert "Action: kernel only: replay it" in fair


def test_nested_operators_of_equal_times_are_compared(kineto, tmp_path):
    events = [
        host("aten::linear", 0, 10),
        host("aten::mm", 0, 10),
        launch(2, 1),
        kernel("gemm", 20, 5, correlation=1),
    ]
    path = [written(tmp_path / "t.json", events)]
    (edits,) = kineto.compare(path, path, {}).metrics.find("tree_edits")
    assert edits.value == 0
