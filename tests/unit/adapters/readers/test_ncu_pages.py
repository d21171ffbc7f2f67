"""Pages of ``ncu --csv`` as other locales, shells and options of ncu write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_perfgate.adapters.devices.catalogue import DeviceCatalogue
from pytest_perfgate.adapters.readers.ncu import read_ncu
from pytest_perfgate.adapters.readers.numerals import decimal_comma, parse_numeral, with_point
from pytest_perfgate.app.inspections.ncu import Ncu
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.kernel import KernelFacts

DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
HEAD = '"ID","Kernel Name","Block Size","Grid Size","CC","Metric Name","Metric Unit","Metric Value"\n'
WIDE = f'"ID","Kernel Name","CC","gpu__time_duration.sum","{DRAM}"\n"","","","us","%"\n'
SUMMED = '"Process ID","Kernel Name","Device","Invocations","Metric Name","Metric Unit","Minimum","Maximum","Average"\n'


def long_page(duration: str, dram: str, cycles: str) -> str:
    who = '"0","k(int)","(256, 1, 1)","(64, 1, 1)","9.0"'
    lines = (("Duration", "us", duration), ("DRAM Throughput", "%", dram), ("Elapsed Cycles", "cycle", cycles))
    return HEAD + "".join(f'{who},"{name}","{unit}","{cell}"\n' for name, unit, cell in lines)


def read(folder: Path, text: str, encoding: str = "utf-8") -> tuple[KernelFacts, ...]:
    (folder / "page.csv").write_bytes(text.encode(encoding))
    assert Ncu(read_ncu, DeviceCatalogue).recognises(folder / "page.csv", (folder / "page.csv").read_bytes()[:4096])
    return read_ncu([folder / "page.csv"])


@pytest.mark.parametrize(
    ("duration", "dram", "cycles"),
    [
        ("1,234.56", "61.80", "12,319,469"),
        ("1.234,56", "61,80", "12.319.469"),
        ("1\u202f234,56", "61,80", "12\u202f319\u202f469"),
        ("1\u00a0234,56", "61,80", "12\u00a0319\u00a0469"),
        ("1'234.56", "61.80", "12\u2019319\u2019469"),
        ("1,234.56", "61.80", "1,23,19,469"),
        ("1234,56", "61,80", "12319469"),
        ("1,234.56 (1: 1,000.56; 2: 234)", "61.80 (1: 60; 2: 63)", "12,319,469"),
    ],
)
def test_a_page_says_the_same_in_every_locale(tmp_path: Path, duration: str, dram: str, cycles: str) -> None:
    (kernel,) = read(tmp_path, long_page(duration, dram, cycles))
    assert kernel.duration == pytest.approx(1_234_560.0)
    assert kernel.counters[DRAM].value == pytest.approx(61.8)
    assert kernel.counters["Elapsed Cycles"].value == pytest.approx(12_319_469)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_shell_may_write_a_mark_before_the_page(tmp_path: Path, encoding: str) -> None:
    (kernel,) = read(tmp_path, long_page("10", "61.8", "5").replace("\n", "\r\n"), encoding)
    assert (kernel.name, kernel.arch, kernel.duration) == ("k(int)", "sm_90", 10_000.0)


def test_a_wide_page_with_decimal_commas_keeps_what_is_no_metric(tmp_path: Path) -> None:
    (kernel,) = read(tmp_path, WIDE + '"0","k(int)","9.0","1.412,30","22,5"\n')
    assert (kernel.arch, kernel.duration) == ("sm_90", pytest.approx(1_412_300.0))
    assert kernel.counters[DRAM].value == 22.5


def test_a_summary_has_a_kernel_for_each_name_and_its_means(tmp_path: Path) -> None:
    rows = ('"7","a","A100","3","Duration","us","1","9","5"\n', '"7","b","A100","1","Duration","us","2","2","2"\n')
    found = read(tmp_path, SUMMED + "".join(rows))
    assert [(k.name, k.duration) for k in found] == [("a", 5000.0), ("b", 2000.0)]


def test_metrics_go_by_label_by_full_name_or_by_both(tmp_path: Path) -> None:
    who = '"0","k","(1, 1, 1)","(1, 1, 1)","8.0"'
    both = f'{who},"SOL SM","%","70"\n{who},"DRAM share ({DRAM})","%","20"\n{who},"Memory [%]","%","30"\n'
    (kernel,) = read(tmp_path, HEAD + both)
    assert (kernel.counters[SM].value, kernel.counters[DRAM].value) == (70.0, 20.0)


def test_what_the_program_prints_behind_the_page_is_no_kernel(tmp_path: Path) -> None:
    assert len(read(tmp_path, long_page("10", "61.8", "5") + "done, bye\n")) == 1


def test_semicolons_may_stand_between_the_columns(tmp_path: Path) -> None:
    (kernel,) = read(tmp_path, long_page("1,5", "61,8", "5").replace('","', '";"'))
    assert kernel.duration == 1500.0


@pytest.mark.parametrize(
    "text",
    [
        long_page("10", "61.8", "12,319")[:-4],
        long_page("10", "61.8", "12,319")[:-20],
        WIDE + '"0","k(int)","9.0","1,41',
        WIDE + '"0","k(int)","9.0"',
    ],
)
def test_a_page_that_ends_inside_a_row_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(PerfgateError, match="cut short"):
        read(tmp_path, text)


def test_the_source_page_is_named_as_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(PerfgateError, match="source page"):
        read(tmp_path, '"Kernel Name","k"\n"#","Address","Source","# Samples"\n"0","0x7f","MOV R1","1"\n')


def test_numerals() -> None:
    assert not decimal_comma(["1,234", "7", None, "text", "1.2.3"])
    assert decimal_comma(["0,93"])
    assert (with_point("1.234,5"), with_point("(256, 1, 1)"), with_point("n/a")) == ("1234.5", "(256, 1, 1)", "n/a")
    assert (parse_numeral("1 234.5"), parse_numeral("1 2"), parse_numeral(None)) == (1234.5, None, None)
