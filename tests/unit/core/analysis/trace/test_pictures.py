"""Pictures of traces: what they show is what the views count, and what cannot be drawn says why."""

from __future__ import annotations

import pytest

from pytest_perfgate.app.inspections import picture, pictures_document, view, views_of, with_pictures_first
from pytest_perfgate.core.render.html import render_html
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Picture, Section
from tests.corpus import corpus
from tests.drawings import areas, flaws, texts
from tests.kineto_file import host, kernel, launch, written
from tests.kineto_job import PEAKS, job, shaped, step_events

NAMES = ("steps", "timeline", "mfu", "overlap", "roofline", "tree", "kernels")


@pytest.fixture
def steps(kineto, tmp_path):
    events = [event for n in (1, 2, 3) for event in step_events(n, 200 * n)]
    return kineto.inspect([written(tmp_path / "t.json", events)], PEAKS)


def test_every_picture_of_a_trace_is_sound(steps):
    assert tuple(steps.pictures) == NAMES
    assert [flaws(draw()) for draw in steps.pictures.values()] == [[]] * len(NAMES)


def test_bars_of_steps_are_the_table_of_steps(steps):
    """Of 100 µs: 35 of computation, 16 of communication by itself, 8 of copies and fills, 39 of nothing."""
    bars = picture(steps, "steps").bars
    assert [bar.label for bar in bars] == ["step 1", "step 2", "step 3"]
    (table,) = steps.views["steps"]().blocks
    rows = [dict(zip((column.name for column in table.columns), row)) for row in table.rows]
    for bar, row in zip(bars, rows):
        compute, exposed, _, idle = (part / sum(bar.parts) for part in bar.parts)
        assert compute == pytest.approx(row["computation"])
        assert exposed == pytest.approx(row["exposed communication"])
        assert idle == pytest.approx(row["idle"])


def test_the_timeline_marks_exposed_communication_only(steps):
    drawn = picture(steps, "timeline")
    labels = [bar.label for bar in drawn.bars]
    assert labels == ["stream 7", "stream 9, communication", "exposed communication"]
    assert "-hidden)" in drawn.svg, "the first 3 of 18 µs run beside a product"
    assert drawn.svg.count('height="4" fill="currentColor"') == 3, "one foot a step"


def test_overlap_has_each_kernel_of_its_kind(steps):
    (bar,) = picture(steps, "overlap").bars
    overlap = next(m.value for m in steps.metrics.find("overlap") if not m.labels)
    assert bar.parts == (pytest.approx(overlap), pytest.approx(1 - overlap))
    assert bar.text.rstrip().endswith("█")


def test_the_tree_holds_all_linked_time(steps):
    bars = picture(steps, "tree").bars
    assert bars[0].text == "183 µs"
    assert [bar.label.strip() for bar in bars[:3]] == ["all", "ProfilerStep", "aten::mm"], "steps are one place"


def test_short_kernels_are_counted(steps):
    drawn = picture(steps, "kernels")
    assert "up to 10 µs are 50 % of them" in drawn.alt
    assert sum(bar.parts[0] for bar in drawn.bars) == pytest.approx(1)


def test_points_of_the_roofline_stand_where_the_table_says(steps):
    drawn = picture(steps, "roofline")
    (table,) = steps.views["roofline"]().blocks
    placed = [row for row in table.rows if row[6] and row[7]]
    assert len(drawn.bars) == len(placed)
    assert drawn.bars[0].parts[0] == pytest.approx(placed[0][9], rel=1e-6)
    assert any(text.startswith("balance ") for text in texts(drawn.svg))


@pytest.mark.parametrize(
    ("name", "events", "options"),
    [
        ("mfu", step_events(1, 0), PEAKS),
        ("mfu", step_events(1, 0), {}),
        ("roofline", step_events(1, 0), {}),
        ("overlap", [kernel("gemm", 0, 5)], {}),
        ("tree", [kernel("gemm", 0, 5)], {}),
        ("steps", [host("aten::mm", 0, 9), launch(3, 1)], {}),
        ("timeline", [host("aten::mm", 0, 9), launch(3, 1)], {}),
        ("kernels", [kernel("Memset", 0, 5, cat="gpu_memset")], {}),
    ],
)
def test_what_cannot_be_drawn_says_why(kineto, tmp_path, name, events, options):
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], options)
    with pytest.raises(PerfgateError) as error:
        picture(analysis, name)
    assert error.value.code.name == "picture-none"
    (section,) = [block for block in pictures_document(analysis).blocks if isinstance(block, Section)]
    assert any(item.startswith(f"{name}: ") for item in section.blocks[0].items)


def test_a_name_that_is_none_lists_those_that_are(steps):
    with pytest.raises(PerfgateError) as error:
        picture(steps, "piechart")
    assert error.value.code.name == "view-unknown"
    assert ", ".join(NAMES) in error.value.fix


def test_a_page_is_led_by_its_pictures(steps):
    page = with_pictures_first(view(steps), steps)
    answer, first, *_ = page.blocks
    assert isinstance(first, Section)
    assert answer.text.startswith("The window is ")
    fair = with_pictures_first(view(steps, "fair"), steps)
    assert [block.title for block in fair.blocks[:2]] == ["Executive summary", "Pictures"]
    assert with_pictures_first(view(steps, "timeline"), steps).blocks[0].title == "Pictures", "before a table"
    assert [block.name for block in first.blocks if isinstance(block, Picture)] == list(NAMES)
    html = render_html(page)
    assert html.index("<figure>") < html.index(">Where the time went</h2>")
    assert html.count('class="narrow"') == len(NAMES)
    assert (views_of(steps)[-1], view(steps, "pictures").title) == ("pictures", "Pictures of t.json")


def test_ranks_are_drawn_together(kineto, tmp_path):
    analysis = kineto.inspect(job(tmp_path, 3), {})
    assert [bar.label for bar in picture(analysis, "ranks").bars] == ["rank 0", "rank 1", "rank 2"]
    assert sum(text.startswith("rank ") for text in texts(picture(analysis, "timeline").svg)) == 3
    assert [flaws(draw()) for name, draw in analysis.pictures.items() if name != "roofline"] == [[]] * 5


@pytest.mark.corpus
@pytest.mark.parametrize(
    "name", ["nccl_a100_rank0of2", "vit_mi300", "bert_small_h100", "qwen3_decode_graph_mi300", "gpu_only_mi210"]
)
def test_pictures_of_real_traces_are_sound_and_small(kineto, name):
    analysis = kineto.inspect([corpus(f"torch/{name}.json.gz")], {})
    drawn = [block for block in pictures_document(analysis).blocks if isinstance(block, Picture)]
    assert len(drawn) >= 3
    assert [flaws(one) for one in drawn] == [[]] * len(drawn)
    assert max(len(one.svg) for one in drawn) < 400_000
    assert all(areas(one.svg) for one in drawn)


def test_two_traces_show_what_became_slower(kineto, tmp_path):
    """The product takes 20 µs at first and 40 µs then."""
    sides = []
    for name, length in (("before", 20), ("after", 40)):
        mm = host("aten::mm", 0, 9, **shaped([64, 64], [64, 64]))
        events = [mm, launch(2, 1), kernel("sgemm", 10, length, correlation=1)]
        sides.append(written(tmp_path / f"{name}.json", events))
    options = {**PEAKS, "reference_peak": PEAKS["peak"], "reference_bandwidth": PEAKS["bandwidth"]}
    analysis = kineto.compare(sides[:1], sides[1:], options)
    assert [flaws(draw()) for draw in analysis.pictures.values()] == [[]] * 3
    assert [bar.label for bar in picture(analysis, "steps").bars] == ["reference", "target"]
    assert "the GPU works 100 % and 100 % of it" in picture(analysis, "steps").alt
    assert [bar.text for bar in picture(analysis, "tree").bars] == ["40 µs, +100.0 %"] * 3
    assert "where 1 were before" in picture(analysis, "roofline").alt


def test_a_trace_of_a_host_beside_one_of_a_gpu_has_no_picture(kineto, tmp_path):
    paths = [
        written(tmp_path / "host.json", [host("aten::mm", 0, 9)]),
        written(tmp_path / "gpu.json", [kernel("gemm", 0, 5)]),
    ]
    analysis = kineto.compare(paths[:1], paths[1:], {})
    assert dict(analysis.pictures) == {}
    assert with_pictures_first(view(analysis), analysis) == view(analysis)
