from __future__ import annotations

import math

import pytest

from pytest_perfgate.core.render.html import escape, render_markdown
from pytest_perfgate.core.render.text import display_width, render_text
from pytest_perfgate.core.render.words import quantity, signed
from pytest_perfgate.model.metric import Bullets, Code, Column, Document, Paragraph, Picture, Section, Table
from pytest_perfgate.model.values import Dimension

TABLE = Table(
    columns=(
        Column(name="kernel"),
        Column(name="time", dimension=Dimension.TIME),
        Column(name="exposed", dimension=Dimension.TIME, unit="ns"),
        Column(name="overlap", dimension=Dimension.FRACTION),
    ),
    rows=(("gemm|<b>", 412_310.0, 412_310.0, 0.66), ("複製", 980.0, 0.0, None), ("third", 1.0, 1.0, 1.0)),
    limit=2,
)
DOCUMENT = Document(
    title="Report",
    subtitle="one kernel",
    blocks=(
        Paragraph(text="It says something."),
        Section(
            title="Numbers",
            blocks=(TABLE, Bullets(items=("a", "b"), ordered=True), Code(text="x = `1`", language="python")),
        ),
        Picture(svg="<svg/>", alt="A roofline"),
    ),
)


@pytest.mark.parametrize(
    ("number", "dimension", "text"),
    [
        (412_310.0, Dimension.TIME, "412.3 µs"),
        (999_999.9, Dimension.TIME, "1 ms"),
        (0.4, Dimension.TIME, "0.4 ns"),
        (2.5e9, Dimension.TIME, "2.5 s"),
        (0.6634, Dimension.FRACTION, "66.34 %"),
        (4.8e12, Dimension.BANDWIDTH, "4.8 TB/s"),
        (989.4e12, Dimension.FLOPS, "989.4 TFLOPS"),
        (51.58e9, Dimension.WORK, "51.58 GFLOP"),
        (1536.0, Dimension.BYTES, "1.5 KiB"),
        (1234567.0, Dimension.COUNT, "1,234,567"),
        (1.5e9, Dimension.CLOCK, "1.5 GHz"),
        (692.769, Dimension.INTENSITY, "692.8 FLOP/B"),
        (0.0, Dimension.TIME, "0 ns"),
        (-1500.0, Dimension.TIME, "-1.5 µs"),
        (None, Dimension.TIME, "not collected"),
        (math.nan, Dimension.FRACTION, "not collected"),
        (math.inf, Dimension.RATIO, "inf"),
        (1.7, Dimension.RATIO, "1.7x"),
        (61.0, Dimension.TEMPERATURE, "61 °C"),
        (3.25, Dimension.PLAIN, "3.25"),
        (5e299, Dimension.TIME, "5.000e+290 s"),
        (1e300, Dimension.COUNT, "1.000e+300"),
    ],
)
def test_numbers_read_as_people_write_them(number: float | None, dimension: Dimension, text: str) -> None:
    assert quantity(number, dimension) == text


def test_changes_carry_their_sign() -> None:
    assert signed(0.079) == "+7.9 %"
    assert signed(-0.021) == "-2.1 %"
    assert [signed(far) for far in (9.999, 10.0, 18.594)] == ["+999.9 %", "+1,000 %", "+1,859 %"]
    assert [signed(far) for far in (100.0, 366944.273, math.inf)] == ["over 10,000 %"] * 3


def test_text_aligns_wide_characters_and_owns_up_to_what_it_leaves_out() -> None:
    text = render_text(DOCUMENT)
    rows = [line for line in text.splitlines() if "gemm" in line or "複製" in line]
    assert len({display_width(row) for row in rows}) == 1
    assert "412.3 µs" in text
    assert "412310" in text
    assert "not collected" in text
    assert "third" not in text
    assert "... and 1 more rows" in text
    assert "[A roofline]" in text


def test_markdown_keeps_a_cell_a_cell() -> None:
    text = render_markdown(DOCUMENT)
    assert "gemm\\|\\<b\\>" in text
    assert "```python\nx = `1`\n```" in text
    assert text.startswith("# Report\n\none kernel\n")
    assert "## Numbers" in text
    assert escape("a\nb|c") == "a b\\|c"


def test_a_fence_is_longer_than_what_it_holds() -> None:
    held = Document(title="t", blocks=(Code(text="```\nx\n```"),))
    assert "````\n```\nx\n```\n````" in render_markdown(held)


def test_names_from_files_cannot_draw_on_the_terminal() -> None:
    evil = Document(title="t", blocks=(Table(columns=(Column(name="k"),), rows=(("a\x1b[31mred\n" + "x" * 99,),)),))
    text = render_text(evil)
    assert "\x1b" not in text
    assert "…" in text


def test_of_a_long_name_of_a_test_the_folders_go_first() -> None:
    deep = "a/very/deep/folder/of/tests/test_attrs_collections.py::test_unstructure"
    long = f"{deep}_attrs_mappings[UnstructureStrategy.AS_DICT-BaseConverter]"
    table = Table(columns=(Column(name="test"),), rows=((deep,), (long,)))
    text = render_text(Document(title="t", blocks=(table,)))
    assert "\n…/test_attrs_collections.py::test_unstructure\n" in text
    assert "\n…::test_unstructure_attrs_mappings[Unst" in text
    assert "_DICT-BaseConverter]\n" in text


def test_rows_that_are_left_out_say_where_they_are() -> None:
    table = Table(columns=(Column(name="n"),), rows=((1,), (2,)), limit=1, rest="perfgate report shows all")
    assert "... and 1 more rows (perfgate report shows all)" in render_text(Document(title="t", blocks=(table,)))


def test_a_table_too_wide_for_the_screen_gives_its_names_lines_of_their_own() -> None:
    """The report's verdicts were 125 columns wide: a terminal of 80 tore every row."""
    columns = (Column(name="outcome"), Column(name="case"), Column(name="now", dimension=Dimension.TIME))
    name = "tests/benchmarks/test_kernels.py::test_product[4096]"
    rows = (("BROKEN", name, 26_260.0), ("PASSED", name, 116_500.0), ("PASSED", f"{name}#two", 1e9))
    document = Document(title="t", blocks=(Table(columns=columns, rows=rows, note="noted"),))
    assert f"BROKEN   {name}      26.26 µs" in render_text(document, 100)
    assert render_text(document, 70).splitlines()[3:] == [
        "case",
        "  outcome       now",
        "  -------  --------",
        name,
        "  BROKEN   26.26 µs",
        "  PASSED   116.5 µs",
        f"{name}#two",
        "  PASSED        1 s",
        "noted",
    ]
    assert f"BROKEN   {name}      26.26 µs" in render_text(document, 70, 100), "a wider terminal has room"
    assert f"BROKEN   {name}      26.26 µs" in render_text(document, 18), "what fits in no way keeps its rows"


def test_a_sentence_behind_a_name_of_its_own_line_stays_whole() -> None:
    name, why = (
        f"void cutlass::Kernel<{'tensorop_' * 6}>(Params)",
        "three tensors were recorded where four are read " * 2,
    )
    table = Table(columns=(Column(name="kernel"), Column(name="why")), rows=((name, why.strip()),))
    lines = render_text(Document(title="t", blocks=(table,)), 98).splitlines()
    assert lines[-2:] == [name, f"  {why.strip()}"]


def test_what_is_said_around_a_table_is_folded_and_takes_no_other_form() -> None:
    name = f"tests/test_k.py::test_{'x' * 45}"
    columns = (Column(name="outcome"), Column(name="test"), Column(name="time", dimension=Dimension.TIME))
    said = " ".join(["word"] * 25)
    table = Table(title=said, columns=columns, rows=(("BROKEN", name, 26_260.0),) * 2, limit=1, rest=said, note=said)
    lines = render_text(Document(title="R", blocks=(table,)), 70).splitlines()
    assert max(map(len, lines)) <= 70
    assert name in lines, "its name has a line of its own and is whole"
    whole = " ".join(lines)
    assert whole.count(said) == 3
    short = Table(columns=columns, rows=(("BROKEN", "test_a", 26_260.0),), note=said)
    assert "BROKEN   test_a  26.26 µs" in render_text(Document(title="R", blocks=(short,)), 70)
