"""How wide a cell of a page may be."""

from __future__ import annotations

from pytest_perfgate.core.render.html import render_html
from pytest_perfgate.model.metric import Column, Document, Table


def test_a_short_text_stands_on_one_line_and_a_long_one_wraps() -> None:
    table = Table(title="", columns=(Column(name="a"), Column(name="b")), rows=(("communication", "x" * 80),))
    page = render_html(Document(title="t", blocks=(table,)))
    assert '<td class="text short">communication</td>' in page
    assert f'<td class="text">{"x" * 80}</td>' in page


def test_a_long_name_breaks_between_its_words() -> None:
    table = Table(title="", columns=(Column(name="a"),), rows=(("aten::_flash_attention_forward<&>",),))
    page = render_html(Document(title="t", blocks=(table,)))
    assert '<td class="text">aten::<wbr>_flash_<wbr>attention_<wbr>forward&lt;&amp;&gt;</td>' in page
