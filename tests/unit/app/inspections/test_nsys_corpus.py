"""Tests of app/inspections/nsys_corpus."""

from __future__ import annotations

import hashlib

import pytest

from pytest_perfgate.adapters.readers.nsys_report import read_nsys
from pytest_perfgate.app.inspections.nsys import Nsys
from pytest_perfgate.core.render.html import render_markdown
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from tests.nsys_corpus import CORPUS, inspect, needs_corpus, table

pytestmark = needs_corpus
FILES = sorted(CORPUS.rglob("*.sqlite")) if CORPUS.is_dir() else []
WHOLE = [path for path in FILES if path.stem != "no_kernel_table_l4"]


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_every_view_of_every_file_renders_and_writes_nothing(path) -> None:
    before, neighbours = hashlib.sha256(path.read_bytes()).hexdigest(), sorted(path.parent.iterdir())
    analysis = inspect(path)
    for view in Nsys.views:
        document = analysis.views[view]()
        assert render_text(document)
        assert render_markdown(document)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert sorted(path.parent.iterdir()) == neighbours


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


GOLDEN = CORPUS / "golden_stages.sqlite"


@pytest.mark.parametrize("rank", ["0", "1"])
def test_the_original_way_gives_the_original_figures(rank: str) -> None:
    rows = [row for row in table(inspect(GOLDEN, compat="pithtrain"), "overlap") if row["rank"] == rank]
    figures = {
        row["stage"]: (row["exposed_ns"], row["overlap"], row["overlap_min"], row["overlap_max"]) for row in rows
    }
    sixth = pytest.approx(200 / 1200)
    assert figures == {"stage1_f": (400, 0, 0, 0), "stage2_f": (0, 1, 1, 1), "stage4_f": (1000, sixth, sixth, sixth)}
    assert {row["window"] for row in rows} == {"10000..20000"}


def test_the_original_way_prints_plain_nanoseconds_and_what_it_leaves_out() -> None:
    page = render_text(inspect(GOLDEN, compat="pithtrain").views["overlap"](), 300)
    (head,) = [line.split() for line in page.splitlines() if line.startswith("pid ") and "stage" in line]
    assert head[:7] == ["pid", "rank", "stage", "exposed_ns", "overlap", "overlap_min", "overlap_max"]
    assert ["100", "0", "stage4_f", "1000"] in [line.split()[:4] for line in page.splitlines()]
    assert "2 kernels across an edge of the window and 3 kernels of communication outside every stage" in page
    assert "outside" not in render_text(inspect(GOLDEN).views["streams"]())


def test_a_file_against_itself_names_no_greatest_difference() -> None:
    text = render_text(Nsys(read_nsys).compare([GOLDEN], [GOLDEN], {}).views["difference"](), 300)
    assert "Every kernel took the same time on both sides." in text
    assert "greatest difference" not in text
    assert text.count("window 10000..20000 ns") == text.count("before and after: window") == 1


def test_the_original_way_compares_no_work_outside_of_stages() -> None:
    sides = [Nsys(read_nsys).compare([GOLDEN], [GOLDEN], options) for options in ({}, {"compat": "pithtrain"})]
    texts = [render_text(side.views["difference"](), 300) for side in sides]
    assert ["(pp_p2p)" in text for text in texts] == [True, False]


def test_the_original_way_classifies_the_streams() -> None:
    rows = table(inspect(GOLDEN, compat="pithtrain"), "streams")
    streams = {(r["rank"], r["stream"]): (r["kind"], r["purpose"], r["busy_ns"], r["barrier_ns"]) for r in rows}
    talk = "communication"
    for rank in "01":
        assert streams[rank, "7"] == ("compute", "", 3500, 100)
        assert streams[rank, "20"] == (talk, "ep_a2a", 2200, 0)
        assert streams[rank, "21"] == (talk, "cp_ring", 400, 0)
        assert streams[rank, "22"] == (talk, "pp_p2p", 100, 0)
    assert streams["1", "23"] == (talk, "unknown", 100, 0)
    assert len(streams) == 9


def test_by_default_kernels_are_clipped_and_nothing_is_dropped() -> None:
    """By hand: 19900..20100 loses 100 ns to the edge; its launch at 14600 lies in no stage.

    Rank 1 has another 100 ns of unknown purpose at 16000, uncovered. The send at 14100..14200
    lies under compute from 13500 to 15000.
    """
    rows = table(inspect(GOLDEN), "overlap")
    exposed = {(row["rank"], row["stage"]): row["exposed_ns"] for row in rows}
    for rank, unknown in (("0", 100), ("1", 200)):
        assert exposed[rank, "stage1_f"] == 400
        assert exposed[rank, "stage2_f"] == 0
        assert exposed[rank, "stage4_f"] == 1000
        assert exposed[rank, "(pp_p2p)"] == 0
        assert exposed[rank, "(unknown)"] == unknown
    assert len(rows) == 10


def test_by_default_exposure_of_a_rank_is_by_union() -> None:
    """Rank 0: 12500..13500 under stages 1 and 4 once, the barrier 15000..15100, the edge 19900..20000."""
    metrics = inspect(GOLDEN).metrics
    assert [m.value for m in metrics.find("exposed_comm", (("rank", "0"),))] == [1200]
    assert [m.value for m in metrics.find("exposed_sum", (("rank", "0"),))] == [400 + 1000 + 100 + 100]
    communication = 1000 + 1200 + 100 + 100 + 100
    assert [m.value for m in metrics.find("overlap", (("rank", "0"),))] == [pytest.approx(1 - 1200 / communication)]
    assert [m.value for m in metrics.find("idle_time", (("rank", "0"),))] == [10000 - 3500 - 1200]


def test_a_kernel_that_the_window_cuts_has_no_vote_on_a_stream() -> None:
    rows = table(inspect(GOLDEN), "streams")
    assert {r["purpose"] for r in rows if r["stream"] == "20"} == {"ep_a2a"}


def test_the_window_is_the_median_anchor_and_cited() -> None:
    analysis = inspect(GOLDEN)
    assert "10000..20000 ns" in analysis.window
    assert "number 2 of 3" in analysis.window
    assert table(analysis, "window")[0]["straddling"] == 1
    assert table(analysis, "window")[0]["cut off"] == 100


def test_processes_are_named_by_their_label() -> None:
    rows = table(inspect(GOLDEN), "setup")
    assert [(r["pid"], r["rank"], r["mesh"], r["settings"]) for r in rows] == [
        ("100", "0", "pp=0/1 dp=0/1 cp=0/1 ep=0/2", "mbs=1 seq=2048"),
        ("200", "1", "pp=0/1 dp=0/1 cp=0/1 ep=1/2", "mbs=1 seq=2048"),
    ]


def test_a_wider_window_shows_what_lies_between_chunks() -> None:
    analysis = inspect(GOLDEN, start="0", end="30000")
    assert "0..30000 ns" in analysis.window
    stages = {row["stage"]: row["kernels"] for row in table(analysis, "overlap") if row["rank"] == "0"}
    assert stages["stage4_f"] == 2


@pytest.mark.parametrize(
    ("scope", "count"),
    [
        ((("stage", "stage2"),), 2),
        ((("stage", "stage[24]_f"), ("rank", "1")), 2),
        ((("rank", "*"), ("stage", "*")), 6),
        ((("category", "pp_p2p"),), 2),
        ((("stage", "stage9"),), 0),
    ],
)
def test_scopes_find_stages_and_ranks(scope: tuple[tuple[str, str], ...], count: int) -> None:
    assert len(inspect(GOLDEN).metrics.find("overlap", scope)) == count
