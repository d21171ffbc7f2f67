"""What the log keeps of kernels, and what changed in them."""

from __future__ import annotations

from dataclasses import replace

from pytest_perfgate.core.analysis.kernels.reports import MOST, devlog_part
from pytest_perfgate.core.render.html import render_markdown
from tests.launches import ELAPSED, compiled, launch


def told(now: list, then: list) -> str:
    return render_markdown(devlog_part(now, then), level=3)


def test_the_first_version_says_what_it_is() -> None:
    text = told([launch()], [])
    assert text.startswith("### Kernels\n\n#### k\n\n- Bottleneck: memory-bound: compute 21.0 %")
    assert "Previous" not in text
    assert "New in this version" not in text


def test_a_later_version_says_what_moved() -> None:
    slower = launch(time=5e5, counters={f"sm__throughput{ELAPSED}": 81.0, f"dram__throughput{ELAPSED}": 30.0})
    text = told([slower, launch("new")], [launch(), launch("gone")])
    assert "- Bottleneck: compute-bound" in text
    assert "- Before: memory-bound" in text
    assert "| duration | 400 µs | 500 µs | +25.0 % |" in text
    assert "New in this version." in text
    assert "No longer there: gone." in text


def test_the_mix_of_two_builds_the_largest_difference_first() -> None:
    narrow, wide = compiled("copy_narrow"), replace(compiled("copy_wide"), name="copy_narrow")
    text = told([wide], [narrow])
    assert "| registers | 10 | 12 | +20.0 % |" in text
    assert "loop: 16-byte loads" in text
    assert "The same machine code" in told([narrow], [narrow])


def test_more_changes_than_an_entry_shows_are_counted() -> None:
    other = replace(compiled("gemm_tiled"), name="k")
    text = told([other], [replace(compiled("gemm_naive"), name="k")])
    rows = text.partition("| Instructions |")[2].splitlines()
    assert len([row for row in rows if row.startswith("| ")]) == MOST
    assert "smaller changes are left out." in text


def test_code_that_differs_in_operands_alone_is_not_called_the_same() -> None:
    here = compiled("copy_wide")
    code = replace(here.facts.code, words=here.facts.code.words[:-1] + b"\1")
    there = replace(here, facts=replace(here.facts, code=code))
    assert "Other operands or another order" in told([there], [here])


def test_a_class_that_nobody_collected() -> None:
    assert "- Bottleneck: not collected" in told([compiled("copy_wide")], [])
