"""Reports of two programs: nothing of one says anything of the other."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import pytest

from pytest_perfgate.adapters.devices.visible import DeviceCatalogue
from pytest_perfgate.adapters.readers.ncu_report import read_ncu
from pytest_perfgate.app.inspections.ncu import Ncu, Rocprof
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.profiles import Counter, KernelFacts

HEAD = '"ID","Kernel Name","Block Size","Grid Size","CC","Metric Name","Metric Unit","Metric Value"\n'


def page(path: Path, *names: str) -> Path:
    who = '"(1, 1, 1)","(1, 1, 1)","8.0","Duration","us"'
    path.write_text(HEAD + "".join(f'"{at}","{name}",{who},"{at + 1}"\n' for at, name in enumerate(names)))
    return path


@pytest.mark.parametrize("name", ["page.csv", "page.csv.bak", "page", "page.1"])
def test_the_content_of_a_page_tells_what_it_is_and_not_its_name(tmp_path: Path, name: str) -> None:
    file = page(tmp_path / name, "first")
    assert Ncu(read_ncu, DeviceCatalogue).recognises(file, file.read_bytes())
    assert not Ncu(read_ncu, DeviceCatalogue).recognises(tmp_path / "docs.md", file.read_bytes())


def test_a_table_in_an_archive_that_does_not_compress_is_an_archive(tmp_path: Path) -> None:
    table = tmp_path / "kernel_trace.csv"
    table.write_text(
        '"Kind","Kernel_Id","Kernel_Name","Start_Timestamp","End_Timestamp"\n"KERNEL_DISPATCH",1,"k",1,2\n'
    )
    rocprof = Rocprof(lambda paths: (), DeviceCatalogue)
    assert rocprof.recognises(table, table.read_bytes())
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.write(table, "kernel_trace.csv")
    with tarfile.open(tmp_path / "a.tar", "w") as packed:
        packed.add(table, "kernel_trace.csv")
    for name in ("a.zip", "a.tar"):
        assert not rocprof.recognises(tmp_path / name, (tmp_path / name).read_bytes()[:4096])


def test_two_reports_without_a_kernel_in_common_are_not_compared(tmp_path: Path) -> None:
    ncu = Ncu(read_ncu, DeviceCatalogue)
    one, other = page(tmp_path / "a.csv", "first", "second"), page(tmp_path / "b.csv", "third")
    with pytest.raises(PerfgateError, match="no kernel in common: first, second; and third"):
        ncu.compare([one], [other], {})
    both = page(tmp_path / "c.csv", "second", "fourth")
    assert ncu.compare([one], [both], {}).metrics.find("slowdown")


def test_dispatches_of_one_launch_keep_their_own_times_and_counters() -> None:
    facts = [
        KernelFacts(name=name, arch="gfx942", duration=time, counters=counters, index=index)
        for index, (name, time, counters) in enumerate(
            [
                ("a", 5.0, {}),
                ("a", 7.0, {}),
                ("a", None, {}),
                ("b", 7.0, {}),
                ("a", 9.0, {"MfmaUtil": Counter(name="MfmaUtil", value=40.0)}),
            ]
        )
    ]
    rocprof = Rocprof(lambda _: facts, DeviceCatalogue)
    alike = rocprof._diagnosed([], {})
    assert [d.numbers.get("duration") for d in alike] == [5.0, 7.0, None, 7.0, 9.0]
    assert [d.facts for d in alike] == facts
    assert [d.name for d in alike] == ["a", "a", "a", "b", "a"]
    assert ["tc_util" in d.numbers for d in alike] == [False, False, False, False, True]


@pytest.mark.parametrize(("named", "written"), [("MI300X_A1", {}), ("", {"device": "Instinct MI300X"})])
def test_the_device_of_a_dispatch_gives_its_peak(named: str, written: dict[str, str]) -> None:
    counters = {name: Counter(name=name, value=value) for name, value in (("FETCH_SIZE", 1e6), ("WRITE_SIZE", 0.0))}
    rocprof = Rocprof(
        lambda _: [KernelFacts(name="a", arch="gfx942", device=named, duration=1e6, counters=counters)], DeviceCatalogue
    )
    (dram,) = rocprof.inspect([Path("x.csv")], written).metrics.find("dram")
    assert dram.value == pytest.approx(1024e6 / 1e-3 / 5.325e12)


@pytest.mark.parametrize("name", ["MI300Y", "MI3"])
def test_a_device_that_is_not_one_of_the_catalogue_is_refused(name: str) -> None:
    rocprof = Rocprof(
        lambda _: [KernelFacts(name="a", arch="gfx942", device="MI300X_A1", duration=1e6)], DeviceCatalogue
    )
    with pytest.raises(PerfgateError) as error:
        rocprof.inspect([Path("x.csv")], {"device": name})
    assert error.value.code.name == "kernel-option"


def test_a_row_of_means_counts_with_all_its_launches() -> None:
    def row(name: str, mean: float, calls: float) -> KernelFacts:
        counters = {"Calls": Counter(name="Calls", value=calls)}
        return KernelFacts(name=name, arch="gfx942", duration=mean, counters=counters)

    rocprof = Rocprof(lambda _: [row("long", 100e3, 1), row("often", 20e3, 20)], DeviceCatalogue)
    analysis = rocprof.inspect([Path("x.csv")], {"flops": "1GFLOP"})
    assert analysis.metrics.find("tflops")[0].value == pytest.approx(1e9 / 500e-6)
    report = render_text(analysis.views["report"]())
    assert "often (80 % of the time)" in report
    assert "Kernel time: 500 µs" in report


def test_kernels_that_are_not_compared_stand_by_their_short_names() -> None:
    names = {"a.csv": "void one::first<int>(int*)", "b.csv": "void one::second<int>(int*)"}
    rocprof = Rocprof(lambda paths: [KernelFacts(name=names[paths[0].name], arch="gfx942")], DeviceCatalogue)
    with pytest.raises(PerfgateError, match="no kernel in common: first; and second"):
        rocprof.compare([Path("a.csv")], [Path("b.csv")], {})
