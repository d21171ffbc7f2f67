"""Every real export is right or a clear, specific error."""

from __future__ import annotations

import hashlib

import pytest

from pytest_perfgate.adapters.readers.nsys_report import read_nsys
from pytest_perfgate.app.inspections.nsys import Nsys
from pytest_perfgate.core.render.html import render_markdown
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from tests.artifacts.nsys_corpus import CORPUS, inspect, needs_corpus, table

pytestmark = needs_corpus
FILES = sorted(CORPUS.rglob("*.sqlite")) if CORPUS.is_dir() else []
WHOLE = [path for path in FILES if path.stem != "no_kernel_table_l4"]


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_every_view_of_every_file_renders_and_writes_nothing(path) -> None:
    before, beside = hashlib.sha256(path.read_bytes()).hexdigest(), sorted(path.parent.iterdir())
    analysis = inspect(path)
    for view in Nsys.views:
        document = analysis.views[view]()
        assert render_text(document)
        assert render_markdown(document)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert sorted(path.parent.iterdir()) == beside


def test_no_kernel_table_is_said() -> None:
    with pytest.raises(PerfgateError, match="no kernel table") as error:
        inspect(CORPUS / "edge/no_kernel_table_l4.sqlite")
    assert error.value.code.name == "nsys-no-kernels"


def test_graphs_that_hide_kernels_make_limits_invalid() -> None:
    analysis = inspect(CORPUS / "edge/cuda_graphs_a100.sqlite")
    assert [problem.code for problem in analysis.problems] == ["nsys-graphs"]
    assert "--cuda-graph-trace=node" in analysis.problems[0].what


def test_the_oldest_schema_reads() -> None:
    analysis = inspect(CORPUS / "edge/not_utf8_a100.sqlite")
    (kernel,) = table(analysis, "summary")
    assert (kernel["kernel"], kernel["count"], kernel["total_ns"]) == ("saxpy", 5, 88573480)
    calls = {row["call"]: row["count"] for row in table(analysis, "summary", 2)}
    assert calls == {"cudaMemcpy": 13, "cudaMalloc": 12, "cudaLaunchKernel": 5}, "each call once"
    assert table(analysis, "setup", 1)[0]["schema"] == "2.9.1"


def test_steps_are_anchors_of_a_plain_loop() -> None:
    analysis = inspect(CORPUS / "power_iteration_t4.sqlite", preset="ddp")
    assert "'Step 220 to 230', number 23 of 44" in analysis.window


def test_communication_on_the_compute_stream_is_a_barrier() -> None:
    analysis = inspect(CORPUS / "train_2gpu_before.sqlite")
    assert [m.value for m in analysis.metrics.find("barrier")] == [17172652, 8229100]
    assert [row["barrier_ns"] for row in table(analysis, "overlap", 1)] == [17172652, 8229100]
    assert not table(analysis, "overlap")


def test_the_training_pair_names_its_communication() -> None:
    pair = [CORPUS / f"train_2gpu_{side}.sqlite" for side in ("before", "after")]
    analysis = Nsys(read_nsys).compare(pair[:1], pair[1:], {})
    text = render_text(analysis.views["difference"](), 500)
    assert "Communication went from 25.4 ms in 66 kernels to 33.74 ms in 62 kernels" in text
    assert "all of it ncclDevKernel_SendRecv" in text


@pytest.mark.parametrize(("name", "faster"), [("layernorm", True), ("cumsum_reverse", False)])
def test_a_pair_tells_the_faster_from_the_slower(name: str, faster: bool) -> None:
    sides = [CORPUS / f"pairs/{name}_{side}.sqlite" for side in ("reference", "custom")]
    analysis = Nsys(read_nsys).compare(sides[:1], sides[1:], {})
    (slowdown,) = analysis.metrics.find("slowdown")
    assert (slowdown.value < 0) is faster
