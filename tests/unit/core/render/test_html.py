"""Tests of core/render/html."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pytest_perfgate.core.render.html import (
    CommentWords,
    escape,
    harmless,
    render_comment,
    render_html,
    render_markdown,
)
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.metric import Bar, Bullets, Code, Column, Document, Link, Paragraph, Picture, Section, Table
from pytest_perfgate.model.plan import Effect, Outcome
from pytest_perfgate.model.verdict import SuiteNote
from tests.reports import case, run
from tests.unit.core.render.documents import DOCUMENT


def test_a_short_text_stands_on_one_line_and_a_long_one_wraps() -> None:
    table = Table(title="", columns=(Column(name="a"), Column(name="b")), rows=(("communication", "x" * 80),))
    page = render_html(Document(title="t", blocks=(table,)))
    assert '<td class="text short">communication</td>' in page
    assert f'<td class="text">{"x" * 80}</td>' in page


def test_a_long_name_breaks_between_its_words() -> None:
    table = Table(title="", columns=(Column(name="a"),), rows=(("aten::_flash_attention_forward<&>",),))
    page = render_html(Document(title="t", blocks=(table,)))
    assert '<td class="text">aten::<wbr>_flash_<wbr>attention_<wbr>forward&lt;&amp;&gt;</td>' in page


def test_the_name_of_an_option_stays_on_one_line() -> None:
    """Browsers break a line after each hyphen, and a narrow page has half an option on a line."""
    text, marked = "pytest -k a --perfgate-against=main", "pytest -k a <kbd>--perfgate-against</kbd>=main"
    table = Table(title="", columns=(Column(name="a"),), rows=((text,),), note=text)
    blocks = (Paragraph(text=text), Bullets(items=(text,)), Code(text=text), table)
    page = render_html(Document(title="t", blocks=blocks))
    assert page.count(marked) == 5
    assert re.search(r"kbd { [^}]*white-space:nowrap", page)


def test_the_arguments_of_a_long_template_and_a_long_word_are_folded_and_prose_is_not() -> None:
    name, prose = f"void scan<{'config, ' * 60}int>(float*)", "a sentence that says more " * 15
    table = Table(title="", columns=(Column(name="a"),), rows=((name,), ("Cijk_Alik_" * 40,), (prose,)))
    page = render_html(Document(title="t", blocks=(table,)))
    assert page.count("<summary>") == 2
    assert "int&gt;(float*)</summary>void scan&lt;config" in page


KERNEL = "void k<float>(float*, half const*)"
PAGE = Document(
    title="T",
    blocks=(
        Link(text="Details: mm", anchor="aten-mm"),
        Section(title="aten::mm", anchor="aten-mm", blocks=(Paragraph(text=KERNEL), Bullets(items=(KERNEL,)))),
    ),
)


def test_a_link_reaches_its_section():
    assert "Details: mm" in render_text(PAGE).splitlines()
    markdown, html = render_markdown(PAGE), render_html(PAGE)
    assert "[Details: mm](#aten-mm)" in markdown
    assert markdown.index('<a id="aten-mm"></a>') < markdown.index("## aten::mm")
    assert '<a href="#aten-mm">Details: mm</a>' in html
    assert 'id="aten-mm"' in html


def test_names_of_kernels_are_no_markup():
    assert render_markdown(PAGE).count(r"void k\<float>(float\*, half const\*)") == 2
    assert harmless("a <= b, 2 * 3") == "a <= b, 2 * 3"


def test_a_comment_with_many_failures_is_short() -> None:
    report = run(
        *(case(f"test_{n}", 1.2e6, 1e6, Outcome.REGRESSED) for n in range(30)),
        notes=(SuiteNote(kind="x", effect=Effect.FAIL, text="gone"),),
    )
    text = render_comment(report)
    assert "and 10 more" in text
    assert "- **fail** gone" in text
    assert text.count("```text") == 20


def test_a_comment_says_which_record_its_next_step_names() -> None:
    """The log of a run in CI says it too, and people read the comment."""
    slow = case("test_a", 1.2e6, 1e6, Outcome.REGRESSED)
    verdict = replace(slow.verdicts[0], next=("perfgate accept --from RECORD 'test_a' --reason '...'",))
    here, elsewhere = render_comment(run(slow)), render_comment(run(replace(slow, verdicts=(verdict,))))
    assert ("RECORD is" in here, elsewhere.count("RECORD is")) == (False, 1)


def test_a_comment_names_commit_and_device_and_calls_nobody() -> None:
    own = case("test_a", 1e6)
    device = replace(own.measurement.device, name="`@all`\nH200")
    other = replace(own, measurement=replace(own.measurement, device=device))
    dirty = replace(run().environment, dirty=True)
    assert "Commit `c0ffee1234 with changes` on `@all" in render_comment(run(other, environment=dirty))
    assert render_comment(run(environment=replace(dirty, commit=""))).count("`") == 0


def test_a_comment_of_a_record_that_nobody_vouches_for_mentions_nobody_and_leads_nowhere() -> None:
    text = "@owner ![](https://x.example/y) <img src=z>"
    note = SuiteNote(kind="x", effect=Effect.WARN, text=text)
    comment = render_comment(run(case(f"test_a[{text}]", 1e6), notes=(note,)))
    assert "owner" in comment
    for harm in ("@owner", "https://", "![", " <img"):
        assert harm not in comment


@pytest.mark.parametrize(
    "text", ["#12", "GH-12", "gh-7", "own/name#12", "!12", "~3", "&12", "%3", "$9", "www.example.com"]
)
def test_a_comment_refers_to_no_issue_and_no_page(text: str) -> None:
    note = SuiteNote(kind="x", effect=Effect.WARN, text=f"see {text}")
    comment = render_comment(run(case(f"test_a[{text}]", 1e6), notes=(note,)))
    assert text not in comment.replace("\\", "")
    assert comment.replace("\\", "").replace("\u200b", "").count(text) == 2


def test_a_command_of_a_comment_names_a_call_as_it_is() -> None:
    note = SuiteNote(kind="x", effect=Effect.WARN, text="if renamed, first perfgate accept t.py::test_a#gemm")
    assert "t.py::test\\_a#gemm" in render_comment(run(case("test_b", 1e6), notes=(note,)))


def test_a_long_name_moves_no_figure_of_a_comment_out_of_view() -> None:
    comment = render_comment(run(case(f"test_a[{'x' * 300}-last]", 1e6, 1e6), case("test_b", 1e6, 1e6)))
    (row,) = (line for line in comment.splitlines() if "test\\_a" in line)
    assert ("x" * 100 in row, "-last\\] |" in row) == (False, True)


def test_a_comment_of_a_large_suite_fits_and_says_what_is_missing() -> None:
    name = "-".join(f"parameter{n}=value{n}" for n in range(20))
    slow = [case(f"test_{n}[{name}]", 1.2e6, 1e6, Outcome.REGRESSED) for n in range(25)]
    comment = render_comment(run(*slow, *(case(f"test_{n}[{name}]", 1e6, 1e6) for n in range(25, 300))))
    assert len(comment) < 60_000
    assert "\n... and 100 more rows (perfgate report shows all)\n" in comment


def test_markdown_keeps_a_cell_a_cell() -> None:
    text = render_markdown(DOCUMENT)
    assert "gemm\\|\\<b\\>" in text
    assert "```python\nx = `1`\n```" in text
    assert text.startswith("# Report\n\none kernel\n")
    assert "## Numbers" in text
    assert escape("a\nb|c") == "a b\\|c"
    assert escape("~~a~~ &lt;") == "\\~\\~a\\~\\~ \\&lt;"
    assert harmless("at n=[a](//b.example)") == "at n=[a]\\(//b.example)"


def test_a_fence_is_longer_than_what_it_holds() -> None:
    document = Document(title="t", blocks=(Code(text="```\nx\n```"),))
    assert "````\n```\nx\n```\n````" in render_markdown(document)


def test_a_picture_has_its_form_for_phones_and_its_bars_in_markdown() -> None:
    drawn = Picture(
        svg="<svg>wide</svg>",
        narrow="<svg>narrow</svg>",
        alt="Steps <1>",
        key=("a",),
        bars=(Bar(label="x", parts=(0.5,)),),
    )
    page = Document(title="t", blocks=(drawn,))
    html = render_html(page)
    assert '<div class="wide"><svg>wide</svg></div><div class="narrow"><svg>narrow</svg></div>' in html
    assert "<figcaption>Steps &lt;1&gt;</figcaption>" in html
    text = render_markdown(page)
    assert text.count("```") == 2
    assert 40 < text.count("█") < 50
    bare = render_markdown(Document(title="t", blocks=(Picture(svg="<svg/>", alt="A roofline"),)))
    assert "*A roofline*" in bare
    assert "```" not in bare


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("PASSED +0.8 %", True),
        ("PASSED 20.65 µs", True),
        ("PASSED", True),
        ("passed 3 of 4", False),
        ("PASSED by", False),
    ],
)
def test_an_outcome_has_its_colour_before_a_change_and_before_a_figure(text: str, marked: bool) -> None:
    table = Table(columns=(Column(name="NVIDIA-H200"),), rows=((text,),))
    page = render_html(Document(title="t", blocks=(table,))).partition("</style>")[2]
    assert ('class="outcome passed"' in page) is marked


def test_a_column_in_which_nothing_stands_is_left_out() -> None:
    columns = (Column(name="operator"), Column(name="arguments"), Column(name="calls"))
    table = Table(columns=columns, rows=(("aten::mm", "", 2), ("aten::add", "", 0)))
    page = render_html(Document(title="t", blocks=(table,)))
    assert "arguments" not in page
    assert page.count("<th ") == page.count("<td ") / 2 == 2


def test_a_wide_table_scrolls_in_its_own_box_beside_the_name_of_its_row() -> None:
    """The column that stays is the first, or the second beside an outcome."""
    rows = (("passed", "test_a", "x" * 80),)
    verdicts = Table(columns=tuple(Column(name=name) for name in ("outcome", "case", "why")), rows=rows)
    kernels = Table(columns=tuple(Column(name=name) for name in ("kernel", "grid", "why")), rows=rows)
    page = render_html(Document(title="t", blocks=(verdicts, kernels)))
    assert page.count('<div class="table"><table class="second"><thead>') == 1
    assert page.count('<div class="table"><table><thead>') == 1
    (style,) = re.findall("<style>(.*)</style>", page, re.DOTALL)
    stays = re.search(r"([^}]*){ position:sticky; left:0;", style)
    assert stays is not None
    assert "table:not(.second) :is(th, td):first-child, .second :is(th, td):nth-child(2)" in stays[1]
    assert re.search(r"\.table { overflow-x:auto;[^}]* scroll }", style), "a shadow where more is to the right"


def test_names_in_headings_are_no_markup() -> None:
    name = "test_k[<b>-*x*]"
    drawn = Picture(svg="<svg/>", alt=f"Samples of {name}", name="samples")
    table = Table(title=name, columns=(Column(name="a"),), rows=(("1",),), note=f"without {name}")
    section = Section(title=name, blocks=(drawn, Link(text=name, anchor="s"), table))
    markdown = render_markdown(Document(title=name, subtitle=name, blocks=(section,)))
    assert "<b>" not in markdown.replace("\\<b", "")
    assert markdown.count("\\*x\\*") == 7


def test_an_annotation_names_a_test_whose_parameter_looks_like_a_path() -> None:
    (one,) = CommentWords().annotations(run(case("TestA::test_x[::b]", 2e6, 1e6, Outcome.REGRESSED)))
    assert (one.test, one.title) == ("test_x", "regressed: TestA::test_x[::b]")
