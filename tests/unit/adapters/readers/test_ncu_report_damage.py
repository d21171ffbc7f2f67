"""Tests of adapters/readers/ncu_report: pages by their forms, and damaged reports."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pytest_perfgate.adapters.devices.visible import DeviceCatalogue
from pytest_perfgate.adapters.readers.ncu_report import (
    long_head,
    read_ncu,
)
from pytest_perfgate.adapters.system import processes
from pytest_perfgate.adapters.system.processes import run_captured
from pytest_perfgate.app.inspections.ncu import Ncu
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from tests.ncu_file import Kernel, ncu_file, written

LONG_HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
)
OLD = LONG_HEADER.replace('"Context"', '"Kernel Time","Context"').replace('"Block Size","Grid Size","Device","CC",', "")
RULES = LONG_HEADER.replace('"Metric Value"', '"Metric Value","Rule Name","Rule Type","Rule Description"')
WIDE_HEADER = '"ID","Process ID","Host Name","Kernel Name","CC","gpu__time_duration.sum","sm__throughput.avg"\n'
UNITS = '"","","","","","us","%"\n'


def line(number: object, name: str, time: str, unit: str = "us", *, process: int = 10, host: str = "h") -> str:
    who = f'"{number}","{process}","app","{host}","{name}","1","7","(128, 1, 1)","(64, 1, 1)","0","9.0"'
    return f'{who},"Speed","Duration","{unit}","{time}"\n'


def row(number: int, name: str, time: str, *, process: int = 10) -> str:
    return f'"{number}","{process}","h","{name}","12.1","{time}","55.5"\n'


def old(number: int, time: str, unit: str) -> str:
    who = f'"{number}","10","app","h","k","2020-Jul-01 10:00:00","1","7"'
    return f'{who},"Speed","Duration","{unit}","{time}"\n{who},"Speed","SOL SM","%","30"\n'


NOTHING = line(0, "k", "1").replace('"us","1"', '"","","SOLBottleneck","OPT","x, y\nz"')
K, J = line(0, "k", "1"), line(1, "j", "2")
PAGES = {
    "of 2020": (OLD + old(0, "5.41", "usecond"), "k=5410"),
    "in base units": (OLD + old(0, "5,410", "nsecond"), "k=5410"),
    "in seconds": (LONG_HEADER + line(0, "k", "0.001", "second"), "k=1000000"),
    "with the sign of micro": (LONG_HEADER + line(0, "k", "5.41", "\u00b5s"), "k=5410"),
    "of two processes that count from zero": (LONG_HEADER + K + line(0, "j", "2", process=11), "k=1000 j=2000"),
    "of two ranks with the same kernel": (LONG_HEADER + K + line(0, "k", "2", process=11), "k=1000 k=2000"),
    "of two hosts": (LONG_HEADER + K + line(0, "k", "2", host="other"), "k=1000 k=2000"),
    "with launches in turns": (LONG_HEADER + K + J + K.replace("Duration", "L2 Hit Rate"), "k=1000 j=2000"),
    "with numbers that the program prints": (
        LONG_HEADER + K + "5\n7, 8\nloss 3\n" + J + "==PROF== bye\n",
        "k=1000 j=2000",
    ),
    "behind a line that has no end": ("hello " + LONG_HEADER + K, "k=1000"),
    "with a line break in a name": (LONG_HEADER + line(0, "k<\nint>", "1"), "k<\nint>=1000"),
    "with numbers above a thousand launches": (
        LONG_HEADER + line("1,000", "k", "1") + line("1,001", "k", "2"),
        "k=1000 k=2000",
    ),
    "with results of rules": (RULES + K[:-1] + ',"","",""\n' + NOTHING, "k=1000"),
    "with a time that is not a number": (
        LONG_HEADER + line(0, "k", "-nan(ind)") + line(1, "k", "inf"),
        "k=None k=None",
    ),
    "of two runs in one file": (LONG_HEADER + K + LONG_HEADER + line(0, "k", "2"), "k=1000 k=2000"),
    "wide": (WIDE_HEADER + UNITS + row(0, "k", "5.41") + row(1, "j", "1,234.5"), "k=5410 j=1234500"),
    "wide, with units in its header": (
        WIDE_HEADER.replace('.sum"', '.sum [us]"').replace('.avg"', '.avg [%]"') + row(0, "k", "5.41"),
        "k=5410",
    ),
    "wide, of two processes": (WIDE_HEADER + UNITS + row(0, "k", "1") + row(0, "k", "2", process=11), "k=1000 k=2000"),
    "wide, with one number of another locale": (WIDE_HEADER + UNITS + row(0, "k", "1.234,5"), "k=1234500"),
    "with the empty rule that ncu ends a metric with": (RULES + K[:-1] + ',""\n' + NOTHING, "k=1000"),
    "with lines as old shells end them": ((WIDE_HEADER + UNITS + row(0, "k", "1")).replace("\n", "\r"), "k=1000"),
}
REFUSED = {
    "without its line of units": (WIDE_HEADER + row(0, "k", "5410"), "without a unit"),
    "with a time in something else": (
        LONG_HEADER + line(0, "k", "1", "fortnight"),
        "'fortnight', which is not a unit of time",
    ),
    "cut inside a row of the middle": (LONG_HEADER + K[:-6] + "\n" + J, "cut short"),
    "cut inside a quote of the middle": (LONG_HEADER + K[:-30] + "\n" + J, "cannot be read"),
    "wide, cut inside a row": (WIDE_HEADER + UNITS + row(0, "k", "1")[:-8] + "\n", "cut short"),
    "cut inside a quote": (LONG_HEADER + K + J[:40], "cut short"),
    "with a header alone": (LONG_HEADER, "holds no kernel"),
    "with a time beyond all numbers": (
        LONG_HEADER + line(0, "k", "1e308"),
        "line 2: Duration is 1e308, and no counter",
    ),
    "with a time below zero": (LONG_HEADER + line(0, "k", "-5"), "line 2: Duration is -5, and it is at least 0"),
    "with a cell too many": (
        LONG_HEADER + K + J.replace('"Speed"', '"x","Speed"'),
        "line 3 has 16 cells, and the header has 15",
    ),
    "with a cell too many before rules": (RULES + K.replace('"Speed"', '"x","Speed"'), "line 2 has 16 cells"),
    "with a cell gone": (LONG_HEADER + K + J.replace('"Speed",', ""), "cut short: line 3 has 14 cells"),
    "with a cell gone before rules": (RULES + K.replace('"Speed",', "")[:-1] + ',""\n', "line 2 has 15 cells"),
    "wide, with a cell too many": (
        WIDE_HEADER + UNITS + row(0, "k", "1") + row(1, "j", "2").replace('"12.1"', '"x","12.1"'),
        "line 4 has 8 cells, and the header has 7",
    ),
    "wide, with a header that lost a column": (
        WIDE_HEADER.replace('"Host Name",', "") + row(0, "k", "1"),
        "line 2 has 7 cells",
    ),
    "wide, with cells behind the last column": (
        WIDE_HEADER + UNITS + row(0, "k", "1")[:-1] + ',"",""\n',
        "line 3 has 9 cells",
    ),
    "wide, with a column twice": (WIDE_HEADER.replace("sm__throughput.avg", "gpu__time_duration.sum"), "2 times"),
    "wide, with a launch twice": (
        WIDE_HEADER + UNITS + row(0, "k", "1") + row(0, "k", "2"),
        "launch 0 h 10 k appears twice, in line 3 and in line 4",
    ),
    "appended to itself": (
        LONG_HEADER + K + J + LONG_HEADER + K + J,
        "launch 0 h 10 app k appears twice .* line 2 and in line 5",
    ),
    "with zeros in the middle": (LONG_HEADER + K + "\0" * 40 + J[40:], "line 3 holds 40 NUL bytes"),
    "with two values of one metric": (
        LONG_HEADER + K.replace("Duration", "gpu__time_duration.sum") + line(0, "k", "2"),
        "gpu__time_duration.sum is 1000, and 2000 in line 3",
    ),
    "with more than all of a peak": (
        LONG_HEADER + line(0, "k", "148", "%").replace("Duration", "Achieved Occupancy"),
        "line 2: Achieved Occupancy is 148, and it is at most 100",
    ),
    "with a rule that saves more than all": (
        RULES.rstrip("\n")
        + ',"Estimated Speedup"\n'
        + line(0, "k", "5").rstrip("\n")
        + ',"Stall","OPT","wait","1e300"\n',
        "line 2: a speedup of 1e.300 %",
    ),
    "with no register": (
        LONG_HEADER + line(0, "k", "0", "register/thread").replace("Duration", "Registers Per Thread"),
        "Registers Per Thread is 0, and it is at least 1",
    ),
}


def times_of(path: Path) -> str:
    inspector = Ncu(read_ncu, DeviceCatalogue)
    assert inspector.recognises(path, path.read_bytes()[:4096]) or path.read_bytes().startswith(b"hello ")
    for build in inspector.inspect([path], {}).views.values():
        render_text(build())
    return " ".join(f"{k.name}={None if k.duration is None else round(k.duration)}" for k in read_ncu([path]))


@pytest.mark.parametrize("form", PAGES)
def test_a_page_tells_its_launches(tmp_path: Path, form: str) -> None:
    page, expected = PAGES[form]
    assert times_of(written(tmp_path, page.encode(), "page.csv")) == expected


@pytest.mark.parametrize("form", REFUSED)
def test_a_page_that_cannot_be_trusted_is_refused(tmp_path: Path, form: str) -> None:
    page, message = REFUSED[form]
    with pytest.raises(PerfgateError, match=message):
        times_of(written(tmp_path, page.encode(), "page.csv"))


def test_a_packed_page_is_unpacked_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress((LONG_HEADER + K + J).encode())
    assert times_of(written(tmp_path, packed, "page.csv.gz")) == "k=1000 j=2000"
    with pytest.raises(PerfgateError, match="damaged or cut short"):
        times_of(written(tmp_path, packed[:-12], "page.csv.gz"))


CARD = {"device__attribute_compute_capability_major": 9, "device__attribute_compute_capability_minor": 0}
MEASURED = {**CARD, "gpu__time_duration.sum": 5410.0, "launch__registers_per_thread": 40, "launch__block_size": 128}
KERNELS: list[Kernel] = [("k", MEASURED), ("j", {**MEASURED, "gpu__time_duration.sum": 1000.0})]


@pytest.fixture
def library() -> None:
    pytest.importorskip("ncu_report", reason="ncu-report is not installed (extra: ncu)")


@pytest.mark.usefixtures("library")
def test_a_report_of_several_launches_reads_packed_or_not(tmp_path: Path) -> None:
    data = ncu_file(KERNELS)
    assert times_of(written(tmp_path, data)) == "k=5410 j=1000"
    assert times_of(written(tmp_path, gzip.compress(data), "own.ncu-rep.gz")) == "k=5410 j=1000"
    (first, _) = read_ncu([tmp_path / "own.ncu-rep.gz"])
    assert (first.arch, first.launch.threads, first.resources.registers) == ("sm_90", 128, 40)
    assert first.source == str(tmp_path / "own.ncu-rep.gz")


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("time", "expected"), [("fast", None), (float("nan"), None), (7, 7.0)])
def test_a_metric_may_be_of_another_type(tmp_path: Path, time: float | str, expected: float | None) -> None:
    (kernel,) = read_ncu([written(tmp_path, ncu_file([("k", {**CARD, "gpu__time_duration.sum": time})]))])
    assert kernel.duration == expected
    assert times_of(tmp_path / "own.ncu-rep") == f"k={expected and int(expected)}"


@pytest.mark.usefixtures("library")
def test_a_launch_without_any_metric_has_none(tmp_path: Path) -> None:
    (kernel,) = read_ncu([written(tmp_path, ncu_file([("k", {})]))])
    assert (kernel.duration, kernel.launch, kernel.resources, dict(kernel.counters)) == (None, None, None, {})
    absent = Ncu(read_ncu, DeviceCatalogue).inspect([tmp_path / "own.ncu-rep"], {}).metrics.missing("duration")
    assert "--section SpeedOfLight" in absent.fix


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (ncu_file(KERNELS, leave_out=11), "result 1 of 2 is damaged"),
        (ncu_file([]), "the report holds no kernel"),
        (ncu_file(KERNELS, version=None), "announces 2 results"),
        (ncu_file(KERNELS) + b"\0\0\0", "ends inside a block"),
        (gzip.compress(ncu_file(KERNELS), mtime=0)[:-9], "damaged or cut short"),
        (ncu_file([("k", {"gpu__time_duration.sum": -1.0})]), "-1, and it is at least 0"),
        (ncu_file([("k", {"gpu__time_duration.sum": 1e300})]), "at most 1e.18"),
        (ncu_file([("k", {"sm__warps_active.avg.pct_of_peak_sustained_active": 3e6})]), "at most 100"),
        (ncu_file([("k", {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": -1e-300})]), "at least 0"),
        (ncu_file([("k", {"lts__t_sector_hit_rate.pct": 3e6})]), "at most 200"),
    ],
)  # fmt: skip
def test_a_damaged_report_says_what_is_damaged(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(PerfgateError, match=message):
        read_ncu([written(tmp_path, data)])


@pytest.mark.usefixtures("library")
def test_a_report_that_is_cut_anywhere_is_refused_or_has_whole_launches(tmp_path: Path) -> None:
    """A cut between two blocks leaves a report that is whole as far as it goes."""
    data = ncu_file(KERNELS)
    results: list[int | str] = []
    for end in sorted({*range(0, len(data), 7), len(ncu_file(KERNELS[:1]))}):
        try:
            results.append(len(read_ncu([written(tmp_path, data[:end])])))
        except PerfgateError as error:
            results.append(error.code.name)
    assert [one for one in results if one not in {"ncu-report", "ncu-nothing"}] == [1]


@pytest.mark.parametrize("name", ["run.log", "page.csv", "page.csv.gz", "out"])
def test_a_page_behind_much_that_the_program_printed_is_told(tmp_path: Path, name: str) -> None:
    page = "".join(f"step {n}: loss {1 / (n + 1):.3f}\n" for n in range(2_000)) + LONG_HEADER + K + J
    data = gzip.compress(page.encode()) if name.endswith("gz") else page.encode()
    path = written(tmp_path, data, name)
    assert Ncu(read_ncu, DeviceCatalogue, long_head).recognises(path, path.read_bytes()[:4096])
    assert [k.name for k in read_ncu([path])] == ["k", "j"]


def test_all_reports_are_read_by_one_process_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start of the process, and of NVIDIA's module in it, takes longer than any of them."""
    pytest.importorskip("ncu_report", reason="ncu-report is not installed (extra: ncu)")
    data = {name: ncu_file([(f"{name}(int)", {"gpu__time_duration.sum": 5.0})]) for name in ("k", "j", "i")}
    paths = [written(tmp_path, content, f"{name}.ncu-rep") for name, content in data.items()]
    paths[1] = written(tmp_path, gzip.compress(data["j"]), "j.ncu-rep.gz")
    page = written(tmp_path, (LONG_HEADER + K).encode(), "page.csv")
    starts = []
    monkeypatch.setattr(processes, "run_captured", lambda *a, **k: starts.append(a) or run_captured(*a, **k))
    assert [one.name for one in read_ncu([paths[0], page, *paths[1:]])] == ["k(int)", "k", "j(int)", "i(int)"]
    assert len(starts) == 1


def test_a_block_that_announces_more_than_it_holds_is_refused(tmp_path: Path) -> None:
    """The library aborts its process where a source is announced and none follows."""
    pytest.importorskip("ncu_report", reason="ncu-report is not installed (extra: ncu)")
    data = ncu_file([("k(int)", {"gpu__time_duration.sum": 5.0})])
    at = data.index(b"\x08\x00\x10\x00\x22")
    for damaged in (data[: at + 1] + b"\x01" + data[at + 2 :], data[: at + 3] + b"\x01" + data[at + 4 :]):
        whole, cut = written(tmp_path, data, "whole.ncu-rep"), written(tmp_path, damaged, "damaged.ncu-rep")
        with pytest.raises(PerfgateError, match="ended with signal 6") as error:
            read_ncu([whole, cut, whole])
        assert error.value.place == str(cut)
