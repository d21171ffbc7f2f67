"""Every view of an nsys export as people see it: text, Markdown, and the picture of the window."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_perfgate.adapters.readers.nsys_report import read_nsys
from pytest_perfgate.app.inspections.nsys import Nsys
from pytest_perfgate.core.render.html import render_html, render_markdown
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.metric import Analysis, Picture
from tests.drawings import flaws
from tests.nsys_file import ExportMaker

GOLDEN = Path(__file__).with_name("nsys")


def pipeline(path: Path) -> Path:
    """Two ranks of a pipeline: one hides most of its communication, one waits for a hop and has a barrier."""
    maker = ExportMaker(path)
    for rank, pid in enumerate((100, 101)):
        late = 40_000 * rank
        maker.range(pid, 0, 2_000_000, f"rank={rank}; pp={rank}/2 dp=0/1 cp=0/1 ep=0/1; mbs=1 seq=2048")
        maker.range(pid, 1_000, 500_000, "forward chunk 3 backward chunk 2")
        maker.range(pid, 2_000, 9_000, "layer00.stage2_f")
        maker.range(pid, 9_000, 20_000, "layer00.stage3_f")
        maker.range(pid, 20_000, 30_000, "pipeline send/recv")
        maker.kernel(pid, 10_000, 200_000, "gemm_bf16", launched=1_500, device=rank)
        maker.kernel(pid, 20_000, 120_000, "ncclDevKernel_SendRecv", stream=20, launched=3_000, device=rank)
        maker.kernel(pid, 205_000, 330_000 - late, "flash_attention", launched=10_000, device=rank)
        maker.kernel(pid, 150_000, 240_000 + late, "ncclDevKernel_AllToAll", stream=20, launched=4_000, device=rank)
        maker.kernel(pid, 300_000, 420_000, "ncclDevKernel_SendRecv", stream=24, launched=21_000, device=rank)
    maker.kernel(101, 430_000, 470_000, "ncclDevKernel_AllReduce", stream=7, launched=22_000, device=1)
    maker.kernel(101, 480_000, 520_000, "gemm_bf16", launched=23_000, device=1)
    maker.copy(100, 440_000, 455_000)
    return maker.done()


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    folder = tmp_path_factory.mktemp("golden")
    pipeline(folder / "step.sqlite")
    here = Path.cwd()
    os.chdir(folder)
    try:
        return Nsys(read_nsys).inspect([Path("step.sqlite")], {})
    finally:
        os.chdir(here)


def check(name: str, text: str) -> None:
    """``PERFGATE_GOLDEN=write`` writes what a person has looked at."""
    path = GOLDEN / name
    if os.environ.get("PERFGATE_GOLDEN") == "write":
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("view", Nsys.views)
def test_views(analysis: Analysis, view: str) -> None:
    document = analysis.views[view]()
    check(f"{view}.txt", render_text(document))
    check(f"{view}.md", render_markdown(document))


@pytest.mark.parametrize("name", ["timeline", "overlap", "ranks"])
def test_pictures(analysis: Analysis, name: str) -> None:
    picture = analysis.pictures[name]()
    check(f"{name}.svg", picture.svg.replace("><", ">\n<") + "\n")
    assert not flaws(picture)


def test_the_picture_of_the_window_is_in_its_view(analysis: Analysis) -> None:
    document = analysis.views["timeline"]()
    (picture,) = [block for block in document.blocks if isinstance(block, Picture)]
    page = render_html(document)
    assert picture.svg in page
    assert picture.narrow in page


def test_a_lane_without_communication_is_not_said_to_be_marked(tmp_path: Path) -> None:
    maker = ExportMaker(tmp_path / "alone.sqlite")
    maker.kernel(100, 10_000, 200_000, "gemm_bf16", launched=1_500)
    alone = Nsys(read_nsys).inspect([maker.done()], {}).pictures["timeline"]()
    assert alone.alt.endswith("no communication is exposed")


def job(path: Path, ranks: int) -> Path:
    maker = ExportMaker(path)
    for rank in range(ranks):
        maker.range(100 + rank, 0, 1_000_000, f"rank={rank}; pp=0/1")
        maker.kernel(100 + rank, 10_000, 200_000, "gemm_bf16", launched=1_500, device=rank)
        maker.kernel(100 + rank, 150_000, 240_000, "ncclDevKernel_AllToAll", stream=20, launched=4_000, device=rank)
    return maker.done()


def test_bars_of_ranks_stand_by_number_and_a_mean_is_of_one_side(tmp_path: Path) -> None:
    few, other, many, later = (job(tmp_path / f"{n}.sqlite", ranks) for n, ranks in enumerate((11, 11, 26, 26)))
    pictures = Nsys(read_nsys).compare([few], [other], {}).pictures
    for name in ("ranks", "overlap"):
        bars = [bar.label for bar in pictures[name]().bars]
        assert [bar.split(":")[0].split(",")[0] for bar in bars] == [f"rank {at // 2}" for at in range(22)]
        assert [bar.rpartition(", ")[2] for bar in bars] == ["before", "after"] * 11
    labels = [bar.label for bar in Nsys(read_nsys).compare([many], [later], {}).pictures["ranks"]().bars]
    assert labels[:2] == ["rank 0, before – rank 2, before", "rank 0, after – rank 2, after"]


def test_bars_of_jobs_of_other_sizes_are_paired_by_rank_and_say_how_many_ranks_each_is_of(tmp_path: Path) -> None:
    few, more, many = (job(tmp_path / f"{n}.sqlite", ranks) for n, ranks in enumerate((2, 3, 26)))
    picture = Nsys(read_nsys).compare([more], [few], {}).pictures["ranks"]()
    sides = [f"rank {at}, {side}" for at in (0, 1) for side in ("before", "after")]
    assert [bar.label for bar in picture.bars] == [*sides, "rank 2, before"]
    assert "mean of" not in picture.svg
    assert "mean of 1 rank, and after of 3 ranks" in Nsys(read_nsys).compare([few], [many], {}).pictures["ranks"]().svg
