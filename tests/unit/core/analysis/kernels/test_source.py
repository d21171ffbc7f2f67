"""Where a kernel waits, as a page and as files beside the report."""

from __future__ import annotations

from pytest_perfgate.core.analysis.kernels.source import annotation_view, code_files, sampled, source_lines, source_text
from pytest_perfgate.core.render.html import render_markdown
from tests.launches import LINES, SOURCE, launch

SAMPLED = launch(lines=LINES, sources=SOURCE)


def test_the_hottest_come_first_with_what_they_wait_for() -> None:
    text = render_markdown(annotation_view([SAMPLED], "Kernels"))
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows[1] == r"| 60 % | long\_scoreboard | 0x0010 | FFMA R2, R2, R2, R3 | 8 | k.cu:2 |"
    assert rows[2] == "| 30 % | not collected | 0x0020 | (not in the report) | 8 | k.cu:3 |"
    assert r"| 70 % | long\_scoreboard | k.cu:2 | a = b \* b; |" in rows
    assert "3 of 4 instructions, 100 % of 100 samples." in text


def test_without_samples_it_says_how_to_have_them() -> None:
    assert "--section SourceCounters" in render_markdown(annotation_view([launch()], "Kernels"))
    assert sampled(launch().facts) == 0


def test_samples_without_places_have_no_table_of_lines() -> None:
    bare = launch(lines=LINES[3:] + LINES[:1], sources={})
    assert "Hottest source lines" in render_markdown(annotation_view([bare], "Kernels"))
    assert source_text(bare.facts, "k.cu:2") == ""
    assert source_lines(launch(lines=LINES[3:]).facts) == {}


def test_files_hold_source_machine_code_and_ptx() -> None:
    files = {name: build() for name, build in code_files([SAMPLED, SAMPLED, launch("other")]).items()}
    assert list(files) == [
        "sass/k.tsv", "source/k/k.cu.txt", "ptx/k.ptx", "sass/k-2.tsv", "source/k-2/k.cu.txt", "ptx/k-2.ptx",
    ]  # fmt: skip
    sass = files["sass/k.tsv"].splitlines()
    assert sass[0].split("\t")[:3] == ["offset", "share", "samples"]
    assert sass[2].split("\t") == ["0x0010", "0.6000", "60", "8", "long_scoreboard", "FFMA R2, R2, R2, R3", "k.cu:2"]
    assert files["source/k/k.cu.txt"].splitlines()[1] == " 70.0 %  long_scoreboard             2 |   a = b * b;"
    assert files["source/k/k.cu.txt"].splitlines()[0] == " " * 37 + "1 | __global__ void k() {"
    assert files["ptx/k.ptx"] == "ld.global\nst.global\n"


def test_names_of_kernels_make_safe_files() -> None:
    names = list(code_files([launch("../../etc/x<int>", lines=LINES[3:])]))
    assert names == ["sass/etc-x-int.tsv", "ptx/etc-x-int.ptx"]
    bare = launch("@", lines=(LINES[0].__class__(place="", text="NOP"),))
    (built,) = code_files([bare]).values()
    assert built().splitlines()[1] == "0x0000\t\t\t\t\tNOP\t"
