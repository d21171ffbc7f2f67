"""What a page says to the end: equal call trees, names of parts, long remarks, where a replay package went."""

from __future__ import annotations

import pytest

from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.metric import Column, Document, Table
from pytest_perfgate.wiring import built_ins

from .generated import written
from .test_limits import step_events


@pytest.fixture(scope="module")
def kineto():
    return next(i for i in built_ins.BuiltIns().pytest_perfgate_inspectors() if i.name == "kineto")


def test_equal_traces_have_a_sentence_and_no_empty_table(kineto, tmp_path):
    path = [written(tmp_path / "t.json", step_events(0, 0))]
    same = kineto.compare(path, path, {})
    for view in ("report", "tree"):
        assert "The call trees are alike." in render_text(same.views[view]())
    report = render_text(same.views["report"]())
    assert "exposed communication" in report
    assert "exposed copies" in report


def test_a_remark_keeps_its_end_and_a_name_both_ends():
    remark = "arguments do not fit the model: three tensors were recorded where four are read; look at the shapes"
    name = "void cutlass::Kernel2<" + "cutlass_80_tensorop_bf16_s16816gemm_" * 4 + ">(Params)"
    table = Table(columns=(Column(name="kernel"), Column(name="why")), rows=((name, remark), (remark, name)))
    first, second = render_text(Document(title="t", blocks=(table,))).splitlines()[-2:]
    assert first.endswith(remark)
    assert "…" in first[: -len(remark)]
    assert remark not in second
    assert second.endswith("(Params)")


def test_a_package_that_was_written_says_where_and_how_to_run_it(kineto, tmp_path):
    path, target = written(tmp_path / "t.json", step_events(0, 0)), tmp_path / "r.zip"
    pages = kineto.inspect([path], {"op": "aten::mm", "replay": str(target)}).views
    assert target.exists()
    for view in ("report", "replay"):
        assert f"unzip {target} -d replay" in " ".join(render_text(pages[view]()).split())
    plain = kineto.inspect([path], {"op": "aten::mm"}).views
    assert "--set replay=FILE.zip" in render_text(plain["replay"]())
    assert "replay/replay.py" not in render_text(plain["report"]())
