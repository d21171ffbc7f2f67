"""Pages of ``ncu --csv`` as other locales, shells and options of ncu write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_perfgate.adapters.devices.visible import DeviceCatalogue
from pytest_perfgate.adapters.readers.fields import decimal_comma, parse_numeral, with_point
from pytest_perfgate.adapters.readers.ncu_report import read_ncu
from pytest_perfgate.app.inspections.ncu import Ncu
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import KernelFacts

DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
HEAD = '"ID","Kernel Name","Block Size","Grid Size","CC","Metric Name","Metric Unit","Metric Value"\n'
WIDE = f'"ID","Kernel Name","CC","gpu__time_duration.sum","{DRAM}"\n"","","","us","%"\n'
SUMMED = '"Process ID","Kernel Name","Device","Invocations","Metric Name","Metric Unit","Minimum","Maximum","Average"\n'

SASS = """==PROF== Connected to process 7
"Kernel Name","void k<float, 4>(T1 *, ""odd"")"
"#","Address","Source","Warp Stall Sampling (All Samples)","Instructions Executed","# Samples","Instructions Executed","stall_long_sb","stall_selected","stall_wait","stall_long_sb (Not Issued)"
"1","0x7f0010","      LDG.E.128 R4, [R2.64]","1,300","64","1,300","9","1200","60","40","99999"
"2","0x7f0020","@!P0 FFMA R1, R2, R3, R4","20","128","20","9","0","20","0","0"
"3","0x7f0030","      EXIT","0","64","0","9","0","0","0","0"
"Kernel Name","second(int)"
"Address","Source","Warp Stall Sampling (All Cycles)","# Samples"
"4096","      BRA 0x10","7","7"
"""


def long_page(duration: str, dram: str, cycles: str) -> str:
    who = '"0","k(int)","(256, 1, 1)","(64, 1, 1)","9.0"'
    lines = (("Duration", "us", duration), ("DRAM Throughput", "%", dram), ("Elapsed Cycles", "cycle", cycles))
    return HEAD + "".join(f'{who},"{name}","{unit}","{cell}"\n' for name, unit, cell in lines)


def read(folder: Path, text: str, encoding: str = "utf-8") -> tuple[KernelFacts, ...]:
    (folder / "page.csv").write_bytes(text.encode(encoding))
    assert Ncu(read_ncu, DeviceCatalogue).recognises(folder / "page.csv", (folder / "page.csv").read_bytes()[:4096])
    return read_ncu([folder / "page.csv"])


def test_a_capability_may_have_a_decimal_comma(tmp_path: Path) -> None:
    (facts,) = read(tmp_path, long_page("1.234,56", "61,80", "12.319.469").replace('"9.0"', '"9,0"'))
    assert (facts.arch, facts.duration) == ("sm_90", 1234560)


def test_a_sum_below_zero_is_refused_of_any_counter(tmp_path: Path) -> None:
    page = HEAD + '"0","k(int)","(1, 1, 1)","(1, 1, 1)","9.0","dram__bytes_write.sum","byte","-8192"\n'
    with pytest.raises(PerfgateError) as error:
        read(tmp_path, page)
    assert error.value.code.name == "ncu-report"


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


@pytest.mark.parametrize("unit", ["us", "\u00b5s"])
def test_a_page_in_the_code_page_of_a_french_windows_keeps_its_thousands(tmp_path: Path, unit: str) -> None:
    page = long_page("1\u00a0234,56", "61,80", "12\u00a0319\u00a0469").replace('"us"', f'"{unit}"')
    (kernel,) = read(tmp_path, page.replace("k(int)", "caf\u00e9(int)"), "cp1252")
    assert (kernel.name, kernel.duration) == ("caf\u00e9(int)", pytest.approx(1_234_560.0))
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
    kernels = read(tmp_path, SUMMED + "".join(rows))
    assert [(k.name, k.duration) for k in kernels] == [("a", 5000.0), ("b", 2000.0)]


def test_metrics_go_by_label_by_full_name_or_by_both(tmp_path: Path) -> None:
    who = '"0","k","(1, 1, 1)","(1, 1, 1)","8.0"'
    both = f'{who},"SOL SM","%","70"\n{who},"DRAM share ({DRAM})","%","20"\n{who},"Memory [%]","%","30"\n'
    (kernel,) = read(tmp_path, HEAD + both)
    assert (kernel.counters[SM].value, kernel.counters[DRAM].value) == (70.0, 20.0)
    (of_2019,) = read(tmp_path, HEAD + f'{who},"SOL FB","%","40"\n{who},"SOL TEX","%","5"\n')
    assert of_2019.counters[DRAM].value == 40.0
    assert "l1tex__throughput.avg.pct_of_peak_sustained_active" in of_2019.counters


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
        SASS[:-9],
        SASS[:-14],
    ],
)
def test_a_page_that_ends_inside_a_row_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(PerfgateError, match="cut short"):
        read(tmp_path, text)


CUDA = """"File Path","/home/me/k.cu"
"Function Name","k"
"#","Address","Source","# Samples"
"1","","__global__ void k(float* a) {","0"
"2","","  a[0] += 1.f;  // ""twice"", or so","41"
"""
BOTH = """"File Path","k.cu"
"Function Name","k"
"Line No","Source","Address","Source","# Samples"
"12","a += b;","-","FADD R1, R1, R2","40"
"","","0x10","FADD R1, R1, R2","30"
"""
SESSION = """Launch Settings
"Launch Attribute","Value"
"Version","2025.1.1.0"
Session
"Session Attribute","Value"
"Report","a.ncu-rep"
"""
TEXT = """  k(int) (64, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Duration                         us        5.41
"""
RAW_TEXT = """==PROF== Connected to process 1
  k(int) (64, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    ---------------------- ----------- ------------
    Metric Name            Metric Unit Metric Value
    ---------------------- ----------- ------------
    gpu__time_duration.sum          us         5.41
"""
FAILED = "==PROF== Connected to process 1\n==ERROR== No kernels were profiled.\n"


def test_the_source_page_of_machine_code_says_where_it_waits_and_what_ran(tmp_path: Path) -> None:
    first, second = read(tmp_path, SASS)
    assert (first.name, second.name) == ('void k<float, 4>(T1 *, "odd")', "second(int)")
    assert [(line.offset, line.samples, line.executed, line.reason) for line in first.lines] == [
        (0, 1300.0, 64.0, "long_sb"), (16, 20.0, 128.0, ""), (32, 0.0, 64.0, ""),
    ]  # fmt: skip
    assert first.executed == {"LDG.E.128": 64.0, "FFMA": 128.0, "EXIT": 64.0}
    assert (second.lines[0].samples, second.executed, second.duration) == (7.0, {}, None)


def test_limits_and_views_find_what_the_source_page_holds(tmp_path: Path) -> None:
    (tmp_path / "page.csv").write_text(SASS.partition('"Kernel Name","second')[0])
    analysis = Ncu(read_ncu, DeviceCatalogue).inspect([tmp_path / "page.csv"], {"limits": "executed(LDG.128) >= 1"})
    assert [m.value for m in analysis.metrics.find("executed", (("opcode", "LDG.128"),))] == [64.0]
    assert analysis.metrics.missing("duration").fix
    shown = render_text(analysis.views["annotation"]())
    assert "98.5 %" in shown
    assert "LDG.E.128 R4" in shown
    for build in analysis.views.values():
        render_text(build())


def test_the_source_page_of_a_source_has_its_lines(tmp_path: Path) -> None:
    (kernel,) = read(tmp_path, CUDA)
    assert [(line.place, line.samples) for line in kernel.lines] == [
        ("/home/me/k.cu:1", 0.0),
        ("/home/me/k.cu:2", 41.0),
    ]
    assert '"twice", or so' in kernel.sources["/home/me/k.cu"]
    (both,) = read(tmp_path, BOTH)
    assert [(line.text, line.samples) for line in both.lines] == [("FADD R1, R1, R2", 30.0)]


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        (SESSION, "session page", "--csv --page raw"),
        (TEXT, "page as text", "add --csv"),
        (RAW_TEXT, "page as text", "add --csv"),
        (FAILED, "ncu printed no page: No kernels were profiled.", ""),
        (FAILED + "==ERROR== ERR_NVGPUCTRPERM\n", "counters", "RestrictProfiling"),
        (SASS.partition('"1","0x7f')[0], "no instruction", ""),
    ],
)
def test_a_page_without_kernels_says_which_one_it_is(tmp_path: Path, text: str, what: str, fix: str) -> None:
    with pytest.raises(PerfgateError) as caught:
        read(tmp_path, text)
    assert what in caught.value.what
    assert fix in caught.value.fix


@pytest.mark.parametrize("cell", ["nan", "n/a", "(!) nan", "inf", "-nan", "", "no data", "<null>"])
def test_what_is_no_number_is_absent(tmp_path: Path, cell: str) -> None:
    (kernel,) = read(tmp_path, long_page("10", cell, "5"))
    assert DRAM not in kernel.counters
    (wide,) = read(tmp_path, WIDE + f'"0","k","9.0","12","{cell}"\n')
    assert (DRAM in wide.counters, wide.duration) == (False, 12_000.0)


def test_base_units_say_the_same_as_scaled_ones(tmp_path: Path) -> None:
    base = long_page("1,234,560", "61.80", "12319469").replace('"us"', '"ns"')
    (kernel,) = read(tmp_path, base)
    assert kernel.duration == pytest.approx(1_234_560.0)


def test_names_with_commas_and_quotes_and_one_kernel_on_two_devices(tmp_path: Path) -> None:
    head = '"ID","Kernel Name","Device","CC","gpu__time_duration.sum"\n"","","","","ns"\n'
    name = 'void k<""a"", (int)2>(T1 *, T2)'
    kernels = read(tmp_path, f'{head}"0","{name}","0","9.0","5"\n"1","{name}","1","8.0","7"\n')
    assert [(k.name, k.arch, k.duration) for k in kernels] == [
        ('void k<"a", (int)2>(T1 *, T2)', "sm_90", 5.0), ('void k<"a", (int)2>(T1 *, T2)', "sm_80", 7.0),
    ]  # fmt: skip
    summed = SUMMED + "".join(f'"7","k","{d}","3","Duration","us","1","9","{d}"\n' for d in (1, 2))
    assert [k.duration for k in read(tmp_path, summed)] == [1000.0, 2000.0]


def test_two_runs_in_one_file_are_not_one_launch(tmp_path: Path) -> None:
    one = "==PROF== Connected\n" + long_page("10", "61.8", "5") + "==PROF== Disconnected\n"
    kernels = read(tmp_path, one + one.replace('"10"', '"20"') + WIDE + '"0","k","9.0","12","1"\n')
    assert [(k.index, k.duration) for k in kernels] == [(0, 10_000.0), (1, 20_000.0), (2, 12_000.0)]


def test_points_in_whole_nanoseconds_separate_thousands(tmp_path: Path) -> None:
    who = '"0","k","(1, 1, 1)","(1, 1, 1)","8.0"'
    (kernel,) = read(tmp_path, HEAD + f'{who},"Duration","ns","117.344"\n{who},"dram__bytes.sum","byte","27.552"\n')
    assert (kernel.duration, kernel.counters["dram__bytes.sum"].value) == (117_344.0, 27_552.0)
    (wide,) = read(tmp_path, WIDE.replace('"us"', '"ns"') + '"0","k","9.0","117.344","7"\n')
    assert wide.duration == 117_344.0
    (point,) = read(
        tmp_path, HEAD + f'{who},"Duration","ns","117.344"\n{who},"SOL SM","%","61.87"\n{who},"SOL FB","%","1.5"\n'
    )
    assert point.duration == pytest.approx(117.344), "where the rest of the page has decimal points, so has the time"


def test_shapes_keep_their_commas_where_something_took_the_quotes(tmp_path: Path) -> None:
    line = "0,k(int),(32, 1, 1),(4,1,1),8.0,Duration,us,12.5\n"
    (kernel,) = read(tmp_path, HEAD.replace('"', "") + line)
    assert (kernel.name, kernel.duration, kernel.launch.block) == ("k(int)", 12_500.0, (32, 1, 1))
    with pytest.raises(PerfgateError, match="quotes around names"):
        read(tmp_path, HEAD.replace('"', "") + line.replace("k(int)", "k(int, int)"))


def test_numerals() -> None:
    assert not decimal_comma(["1,234", "7", None, "text", "1.2.3"])
    assert decimal_comma(["0,93"])
    assert (with_point("1.234,5"), with_point("(256, 1, 1)"), with_point("n/a")) == ("1234.5", "(256, 1, 1)", "n/a")
    assert (parse_numeral("1 234.5"), parse_numeral("1 2"), parse_numeral(None)) == (1234.5, None, None)


@pytest.mark.parametrize("count", ["-1", "1e400", "1e308", "9" * 30])
def test_a_source_page_with_a_count_that_none_can_be_is_refused(tmp_path: Path, count: str) -> None:
    (tmp_path / "page.csv").write_text(SASS.replace('"128","20"', f'"{count}","20"'))
    with pytest.raises(PerfgateError, match="has a count of") as caught:
        read_ncu([tmp_path / "page.csv"])
    assert caught.value.place.endswith("page.csv")


def test_an_instruction_stands_once_unless_it_is_inlined_below_several_lines_of_source(tmp_path: Path) -> None:
    (tmp_path / "page.csv").write_text(SASS + SASS.splitlines()[-1] + "\n")
    with pytest.raises(PerfgateError, match="stands again in line"):
        read_ncu([tmp_path / "page.csv"])
    (tmp_path / "both.csv").write_text(BOTH + BOTH.splitlines()[-1] + "\n")
    (kernel,) = read_ncu([tmp_path / "both.csv"])
    assert [line.offset for line in kernel.lines] == [0, 0]


def test_only_metrics_of_a_wide_page_are_counters(tmp_path: Path) -> None:
    who = '"ID","Process ID","Kernel Name","Context","Stream","Device","CC"'
    page = f'{who},"{DRAM}"\n"","","","","","","","%"\n"0","7","k","1","7","0","9.0","50.0"\n'
    (facts,) = read(tmp_path, page)
    assert (list(facts.counters), facts.arch) == ([DRAM], "sm_90")


@pytest.mark.parametrize("rollup", ["avg", "max", "min"])
def test_a_time_under_another_rollup_is_the_time(tmp_path: Path, rollup: str) -> None:
    (facts,) = read(tmp_path, WIDE.replace("duration.sum", f"duration.{rollup}") + '"0","k","9.0","12.5","50"\n')
    assert facts.duration == 12_500
    with pytest.raises(PerfgateError, match=f"duration.{rollup} is given without a unit"):
        read(
            tmp_path,
            WIDE.replace("duration.sum", f"duration.{rollup}").replace('"us"', '""') + '"0","k","9.0","1","5"\n',
        )


def test_a_table_in_the_body_of_a_section_is_no_metric(tmp_path: Path) -> None:
    head = HEAD.replace("\n", ',"Rule Name","Rule Type"\n')
    numa = '"GPU ID","GPU Name","CPU Affinity"\n"0","NVIDIA H100 PCIe","0-27"\n'
    page = long_page("1", "61.80", "9").removeprefix(HEAD)
    first, rest = page.split("\n", 1)
    (facts,) = read(tmp_path, f"{head}{first}\n    The system has no NVLink.\n\n{numa}{rest}")
    assert (facts.duration, facts.counters[DRAM].value) == (1000, 61.8)
    for short in ('"0","NVIDIA H100 PCIe","0-27"\n', first.partition(",")[2] + "\n"):
        with pytest.raises(PerfgateError, match="cells"):
            read(tmp_path, f"{head}{short}{rest}")


def test_a_raw_page_as_text_is_known_as_one(tmp_path: Path) -> None:
    rule = "  ------------ ----------- ------------\n"
    text = (
        f"[7] app@box\n  k(int) (1, 1, 1)x(64, 1, 1)\n  Metric Name  Metric Unit Metric Value\n{rule}  launch__x    1\n"
    )
    with pytest.raises(PerfgateError, match="a page as text"):
        read(tmp_path, text)
