"""Links to sections and prose that looks like markup, in each rendering."""

from __future__ import annotations

from pytest_perfgate.core.render.html import harmless, render_html, render_markdown
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.metric import Bullets, Document, Link, Paragraph, Section

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
