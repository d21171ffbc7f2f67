from __future__ import annotations

from pathlib import Path

import pytest

from pytest_perfgate.adapters.devices.visible import DeviceCatalogue
from pytest_perfgate.adapters.readers.rocprof import read_rocprof
from pytest_perfgate.adapters.readers.rocprof_forms import FORMS, IDENTITY, form_of
from pytest_perfgate.app.inspections.ncu import Rocprof
from pytest_perfgate.model.errors import PerfgateError
from tests.corpus import corpus
from tests.unit.adapters.readers.rocprof_rows import COUNTED, TRACE

ROCPROF = Rocprof(read_rocprof, DeviceCatalogue)


@pytest.mark.corpus
def test_a_copy_on_mi300x_moves_the_bytes_that_it_must() -> None:
    """2^20 doubles read and written: 8 MiB each way, counted in requests of 32, 64 and 128 bytes."""
    from pytest_perfgate.core.analysis.kernels.counters import memory_bytes

    kernels = read_rocprof([corpus("rocprof/pmc_perf_mi300x.csv")])
    assert [k.name for k in kernels] == ["vecCopy(double*, double*, double*, int, int)"] * 3
    assert all(k.arch == "gfx942" for k in kernels)
    assert memory_bytes(kernels[-1].counters) == pytest.approx(2 * 8 * 2**20, rel=0.01)
    analysis = ROCPROF.inspect([corpus("rocprof/pmc_perf_mi300x.csv")], {})
    dram = [m.value for m in analysis.metrics.find("dram")]
    assert dram == pytest.approx([0.196, 0.233, 0.234], abs=0.002)
    assert analysis.metrics.find("tc_util") == ()
    assert analysis.metrics.find("l2_hit")[0].value == pytest.approx(0.335, abs=0.002)
    assert analysis.metrics.find("rocprof", (("counter", "SQ_WAVES"),))[0].value == 16384


@pytest.mark.corpus
def test_a_trace_lends_its_times_to_the_counters_of_its_dispatches() -> None:
    both = read_rocprof([corpus("rocprof/kernel_trace.csv"), corpus("rocprof/counter_collection.csv")])
    alone = read_rocprof([corpus("rocprof/counter_collection.csv")])
    assert len(both) == len(alone) == 7
    assert all(k.duration is None for k in alone)
    assert all(k.duration and k.counters["SQ_WAVES"].value == 16384 for k in both)


@pytest.mark.corpus
def test_the_first_generation_has_times_and_no_counters() -> None:
    analysis = ROCPROF.inspect([corpus("rocprof/results.csv")], {})
    assert len(analysis.metrics.find("duration")) == 56
    assert analysis.metrics.find("dram") == ()


@pytest.mark.parametrize("sysinfo", ["gpu_arch,gpu_model\n,\n", "gpu_model,gpu_arch\nMI300X\n", "gpu_arch\n", ""])
def test_a_machine_that_is_not_named_is_one_of_amd(tmp_path: Path, sysinfo: str) -> None:
    (tmp_path / "pmc_perf.csv").write_text(COUNTED)
    (tmp_path / "sysinfo.csv").write_text(sysinfo)
    assert {facts.arch for facts in read_rocprof([tmp_path / "pmc_perf.csv"])} == {"gfx"}


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_a_trace_may_begin_with_blank_lines_and_have_any_line_ends(tmp_path: Path, ends: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(f"\n\n{TRACE}".replace("\n", ends).encode())
    assert ROCPROF.recognises(path, path.read_bytes())
    assert [facts.duration for facts in read_rocprof([path])] == [1000, None]


def test_a_trace_without_shapes_and_numbers_has_its_times(tmp_path: Path) -> None:
    path, rows = tmp_path / "t.csv", '"KERNEL_DISPATCH","k(int)",100,300\n"KERNEL_DISPATCH","k(int)",400,500\n'
    path.write_text('"Kind","Kernel_Name","Start_Timestamp","End_Timestamp"\n' + rows)
    assert ROCPROF.recognises(path, path.read_bytes())
    assert [facts.duration for facts in read_rocprof([path])] == [200, 100]
    path.write_text(path.read_text() + rows)
    with pytest.raises(PerfgateError) as error:
        read_rocprof([path])
    assert error.value.code.name == "rocprof-csv"


def test_the_grid_of_amd_is_in_work_items_and_a_missing_stamp_is_no_time(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TRACE)
    first, second = read_rocprof([tmp_path / "t.csv"])
    assert first.duration == 1000.0
    assert first.launch.grid == (16, 2, 1)
    assert second.duration is None
    (tmp_path / "t.csv").write_text(TRACE.replace("1100", "9" * 400))
    assert read_rocprof([tmp_path / "t.csv"])[0].duration is None


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", '"Kernel_Name"\n"k"\n', "\x00\x01"])
def test_what_is_none_of_them_says_so(tmp_path: Path, content: str) -> None:
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(PerfgateError, match="rocprof-csv"):
        read_rocprof([tmp_path / "x.csv"])


def test_files_are_distinct_names_by_content(tmp_path: Path) -> None:
    assert ROCPROF.recognises(tmp_path / "t.csv", TRACE.encode())
    assert not ROCPROF.recognises(tmp_path / "t.csv", b'"ID","Process ID","Kernel Name"\n')
    assert ROCPROF.recognises(tmp_path / "t.txt", TRACE.encode())
    assert not ROCPROF.recognises(tmp_path / "t.csv", b'{"Kernel_Name": "k", "Counter_Name": "SQ_WAVES"}\n')


@pytest.mark.parametrize(("columns", "form"), FORMS)
def test_each_form_is_recognised_and_its_rows_have_an_identity(tmp_path: Path, columns, form) -> None:
    """Rows of counters repeat their dispatch, so that they alone have none."""
    header = ",".join(sorted(columns))
    assert ROCPROF.recognises(tmp_path / "t.csv", f"{header}\n".encode())
    assert form_of(columns, tmp_path) is form
    assert (form in IDENTITY) != (columns >= {"Counter_Name"})


def test_one_dispatch_is_counted_as_one(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("\n".join(TRACE.splitlines()[:2]) + "\n")
    assert ROCPROF.inspect([tmp_path / "t.csv"], {}).window.startswith("1 dispatch ")


def test_dispatches_of_two_processes_are_two_and_an_infinite_cell_is_no_number(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(COUNTED)
    first, second = read_rocprof([tmp_path / "c.csv"])
    assert [k.counters["SQ_WAVES"].value for k in (first, second)] == [16.0, 16.0]
    assert (first.resources, second.resources.registers) == (None, 8)


def test_later_traces_name_their_columns_otherwise_and_write_stamps_as_floats(tmp_path: Path) -> None:
    head, row = TRACE.splitlines()[:2]
    named = (
        f'{head},"LDS_Block_Size","Scratch_Size","VGPR_Count"\n{row.replace("100,1100", "100.0,1100.0")},2048,64,128\n'
    )
    (tmp_path / "t.csv").write_text(named)
    (kernel,) = read_rocprof([tmp_path / "t.csv"])
    assert (kernel.duration, kernel.resources.shared, kernel.resources.stack) == (1000.0, 2048, 64)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TRACE.replace("End_Timestamp", "Stop"), "no column End_Timestamp"),
        (TRACE[:-20], "cut short"),
        (COUNTED.replace("Dispatch_Id", "Id"), "no column Dispatch_Id"),
    ],
)
def test_a_renamed_column_is_named_and_a_cut_file_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(PerfgateError, match=message):
        read_rocprof([tmp_path / "t.csv"])


def test_what_no_column_says_is_no_zero(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(COUNTED.replace("inf", "8"))
    analysis = ROCPROF.inspect([tmp_path / "c.csv"], {})
    assert analysis.metrics.find("registers")
    assert analysis.metrics.find("spills") == analysis.metrics.find("smem") == ()


V3 = (
    '"Correlation_Id","Dispatch_Id","Agent_Id","Process_Id","Grid_Size","Kernel_Name","Workgroup_Size","VGPR_Count",'
    '"Counter_Name","Counter_Value","Start_Timestamp","End_Timestamp"\n'
)


def counted(process: int, counter: str, *values: float, times: bool = True, name: str = "k(int)") -> str:
    stamps = "100,1100" if times else ","
    rows = (
        f'{n},{n},"Agent 1",{process},1024,"{name}",64,8,"{counter}",{value},{stamps}\n'
        for n, value in enumerate(values, 1)
    )
    return V3 + "".join(rows)


def laid(root: Path, **files: str) -> Path:
    """``pmc_1__7_counter_collection`` is a file in a folder."""
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_passes_of_a_dispatch_are_put_together(tmp_path: Path) -> None:
    """Each pass runs the program anew: dispatches keep their numbers, processes do not."""
    root = laid(
        tmp_path,
        pmc_1__host__218_counter_collection=counted(218, "MfmaUtil", 55.5, 10, times=False),
        pmc_2__host__219_counter_collection=counted(219, "OccupancyPercent", 25, 120),
        pmc_1__host__218_kernel_trace=TRACE,
        pmc_2__host__219_agent_info="ignored\n",
    )
    assert ROCPROF.recognises(root, b"")
    first, second = read_rocprof([root])
    assert {n: c.value for n, c in first.counters.items()} == {"MfmaUtil": 55.5, "OccupancyPercent": 25.0}
    assert (first.duration, second.duration) == (1000.0, 1000.0)
    analysis = ROCPROF.inspect([root], {"device": "MI300X"})
    assert [m.value for m in analysis.metrics.find("tc_util")] == [0.555, 0.1]
    assert [m.value for m in analysis.metrics.find("occupancy")] == [0.25], "120 per cent say nothing"
    assert "rocprofv3 --pmc OccupancyPercent" in analysis.metrics.missing("occupancy").fix
    assert analysis.metrics.missing("waves").why == "rocprof has no column for it"
    assert analysis.metrics.missing("l2_hit").fix.endswith("TCC_HIT_sum TCC_MISS_sum")


def test_a_counter_of_two_passes_is_of_the_first_and_a_dispatch_of_one_pass_lacks_the_others(tmp_path: Path) -> None:
    root = laid(
        tmp_path,
        pass_1__1_counter_collection=counted(1, "SQ_WAVES", 16, 17),
        pass_2__2_counter_collection=counted(2, "SQ_WAVES", 99) + counted(2, "MfmaUtil", 5).partition("\n")[2],
    )
    first, second = read_rocprof([root])
    assert {n: c.value for n, c in first.counters.items()} == {"SQ_WAVES": 16.0, "MfmaUtil": 5.0}
    assert set(second.counters) == {"SQ_WAVES"}


def test_passes_with_other_processes_cannot_be_put_together(tmp_path: Path) -> None:
    root = laid(
        tmp_path,
        pmc_1__1_counter_collection=counted(1, "SQ_WAVES", 16),
        pmc_1__2_counter_collection=counted(2, "SQ_WAVES", 16),
        pmc_2__3_counter_collection=counted(3, "MfmaUtil", 5),
    )
    with pytest.raises(PerfgateError, match="different numbers of processes"):
        read_rocprof([root])
    (root / "pmc_2" / "4_counter_collection.csv").write_text(counted(4, "MfmaUtil", 6))
    assert [k.counters["MfmaUtil"].value for k in read_rocprof([root])] == [5.0, 6.0]


def test_files_without_folders_are_passes_where_they_share_no_counter(tmp_path: Path) -> None:
    root = laid(tmp_path, a=counted(1, "SQ_WAVES", 16), b=counted(1, "MfmaUtil", 5), c=counted(1, "SQ_WAVES", 3))
    assert [set(k.counters) for k in read_rocprof([root / "a.csv", root / "b.csv"])] == [{"SQ_WAVES", "MfmaUtil"}]
    assert [k.counters["SQ_WAVES"].value for k in read_rocprof([root / "a.csv", root / "c.csv"])] == [16.0, 3.0]


def test_a_trace_of_another_process_lends_no_times(tmp_path: Path) -> None:
    files = {"7_kernel_trace": TRACE, "8_counter_collection": counted(8, "SQ_WAVES", 16, times=False)}
    assert sorted(k.duration or 0 for k in read_rocprof([laid(tmp_path, **files)])) == [0, 0, 1000.0]


V1_STATISTICS = (
    '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"bodyForce(Body*, float, int) [clone .kd]",10,261124944,'
    "26112494,100.0\n"
)
V3_STATISTICS = (
    '"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"\n'
    '"Jacobi(int, double)",1000,517647434,517647.434,42.56,510404,527365,2907.32\n"Norm",1,0,0,0,0,0,0\n'
)


def test_statistics_give_the_mean_of_all_dispatches_and_say_so(tmp_path: Path) -> None:
    (tmp_path / "results.stats.csv").write_text(V1_STATISTICS)
    assert ROCPROF.recognises(tmp_path / "results.stats.csv", V1_STATISTICS.encode())
    analysis = ROCPROF.inspect([tmp_path / "results.stats.csv"], {})
    (time,) = analysis.metrics.find("duration")
    assert (dict(time.labels)["kernel"], time.value, time.note) == ("bodyForce", 26112494.0, "mean of 10 dispatches")
    assert analysis.metrics.find("rocprof", (("counter", "TotalDurationNs"),))[0].value == 261124944
    assert analysis.window == "1 kernel in a table of means under rocprof"
    (tmp_path / "results.stats.csv").rename(tmp_path / "9_kernel_stats.csv")
    (tmp_path / "9_kernel_stats.csv").write_text(V3_STATISTICS)
    first, second = read_rocprof([tmp_path])
    assert (first.duration, first.counters["MaxNs"].value, second.duration) == (517647.434, 527365, None)


def test_statistics_without_a_mean_have_that_of_total_and_calls(tmp_path: Path) -> None:
    (tmp_path / "9_kernel_stats.csv").write_text("Name,Calls,TotalDurationNs,MinNs\nk,8,1000,90\nnone,0,0,0\n")
    first, second = read_rocprof([tmp_path])
    assert (first.duration, first.notes["duration"], second.duration) == (125.0, "mean of 8 dispatches", None)


def test_a_file_that_ends_in_a_number_may_be_cut_in_it(tmp_path: Path) -> None:
    (tmp_path / "9_kernel_stats.csv").write_text("Name,Calls,TotalDurationNs\nk,8,10")
    with pytest.raises(PerfgateError, match="no line break"):
        read_rocprof([tmp_path])


def test_a_name_that_begins_with_a_number_is_no_process(tmp_path: Path) -> None:
    (tmp_path / "2024_run_kernel_trace.csv").write_text(TRACE)
    (tmp_path / "2024_run_counter_collection.csv").write_text(COUNTED.replace("1,6,1024", "2,5,1024"))
    first, second = read_rocprof([tmp_path])
    assert (first.duration, second.duration) == (1000, None)
    assert all("SQ_WAVES" in kernel.counters for kernel in (first, second)), "each dispatch counts once"


LONG = (
    "GPU_ID,Dispatch_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,"
    "Kernel_Name,Start_Timestamp,End_Timestamp,Kernel_ID,Counter_Name,Counter_Value\n"
    "0,0,256,64,512,0,8,0,16,copy,10,20,0,SQ_WAVES,4\n"
    "0,0,256,64,512,0,8,0,16,copy,10,20,0,SQ_BUSY_CYCLES,100\n"
    "0,1,256,64,512,0,8,0,16,copy,30,45,0,SQ_WAVES,5\n"
    "0,1,256,64,512,0,8,0,16,copy,30,45,0,SQ_BUSY_CYCLES,110\n"
)


def test_counters_of_rocprof_compute_may_have_a_line_each(tmp_path: Path) -> None:
    (tmp_path / "pmc_perf.csv").write_text(LONG)
    first, second = read_rocprof([tmp_path])
    assert {name: counter.value for name, counter in first.counters.items()} == {"SQ_WAVES": 4, "SQ_BUSY_CYCLES": 100}
    assert (first.duration, second.duration, second.counters["SQ_WAVES"].value) == (10, 15, 5)
    assert (first.launch.blocks, first.resources.registers, first.resources.shared) == (4, 8, 512)
    (tmp_path / "pmc_perf.csv").write_text("".join(line for line in LONG.splitlines(True) if "BUSY" not in line))
    assert [set(kernel.counters) for kernel in read_rocprof([tmp_path])] == [{"SQ_WAVES"}] * 2


def test_statistics_of_a_kernel_in_capitals_count(tmp_path: Path) -> None:
    (tmp_path / "9_kernel_stats.csv").write_text(V3_STATISTICS.replace("Norm", "VEC_ADD"))
    assert [kernel.name for kernel in read_rocprof([tmp_path])] == ["Jacobi(int, double)", "VEC_ADD"]


DOMAINS = ("KERNEL_DISPATCH", "MEMORY_COPY_DEVICE_TO_HOST", "HSA_CORE_API", "MARKER_CONTROL_API", "HIP_RUNTIME_API")


@pytest.mark.parametrize(
    "name", ["hipMemcpy", "hsa_queue_create", "__hipPushCallConfiguration", "CopyHostToDevice", *DOMAINS]
)
def test_statistics_of_calls_are_of_no_kernel(tmp_path: Path, name: str) -> None:
    (tmp_path / "results.hip_stats.csv").write_text(
        V1_STATISTICS.replace("bodyForce(Body*, float, int) [clone .kd]", name)
    )
    with pytest.raises(PerfgateError, match="not of kernels"):
        read_rocprof([tmp_path / "results.hip_stats.csv"])


def test_a_folder_without_files_of_rocprof_says_so(tmp_path: Path) -> None:
    assert not ROCPROF.recognises(tmp_path, b"")
    with pytest.raises(PerfgateError, match="no file of rocprof"):
        read_rocprof([tmp_path])


CONVERTED = (
    '"Guid","Kind","Agent_Id","Dispatch_Id","Kernel_Name","Start_Timestamp","End_Timestamp","Lds_Block_Size",'
    '"Scratch_Size","Vgpr_Count","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y",'
    '"Grid_Size_Z"\n"0000-a","KERNEL_DISPATCH","Agent 4",1,"norm",1000,3000,8456,0,16,256,1,1,1024,1,1\n'
)


def test_what_was_converted_from_a_database_writes_its_columns_otherwise(tmp_path: Path) -> None:
    counters = (
        V3.replace('"Correlation_Id"', '"Guid","Correlation_Id"')
        + '"0000-a",1,1,"Agent 4",77,1024,"norm",256,16,"MfmaUtil",5,,\n'
    )
    root = laid(tmp_path, out_kernel_trace=CONVERTED, out_counter_collection=counters)
    (kernel,) = read_rocprof([root])
    assert (kernel.duration, kernel.resources.registers, kernel.counters["MfmaUtil"].value) == (2000.0, 16, 5.0)
    (alone,) = read_rocprof([root / "out_kernel_trace.csv"])
    assert (alone.resources.registers, alone.resources.shared, alone.launch.grid) == (16, 8456, (4, 1, 1))


def test_kinds_of_files_that_would_go_unread_are_refused_and_summaries_are_not(tmp_path: Path) -> None:
    (tmp_path / "1_kernel_trace.csv").write_text(TRACE)
    (tmp_path / "1_kernel_stats.csv").write_text(V3_STATISTICS)
    (tmp_path / "results.csv").write_text("a,b\n1,2\n")
    assert len(read_rocprof([tmp_path])) == 2, (
        "statistics of a trace say it again, and another tool's table is no file of it"
    )
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "results.stats.csv").write_text(V1_STATISTICS)
    with pytest.raises(PerfgateError, match=r"also here and not read: old.results\.stats\.csv"):
        read_rocprof([tmp_path])
    assert len(read_rocprof([tmp_path / "1_kernel_trace.csv"])) == 2


@pytest.mark.parametrize(("start", "time"), [(1000, 500.0), (0, None)])
def test_the_second_generation_names_the_shape_of_a_launch_otherwise(
    tmp_path: Path, start: int, time: float | None
) -> None:
    """A run that only counts writes 0 for the start."""
    text = (
        "Dispatch_ID,GPU_ID,Queue_ID,Queue_Index,PID,TID,GRD,WGR,LDS,SCR,Arch_VGPR,ACCUM_VGPR,SGPR,Wave_Size,SIG,OBJ,"
        "Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_ID,GRBM_COUNT\n\n"
        '1,4,1,1,9,9,1024,64,512,0,8,0,16,64,14046,1,"hello(char*) (.kd)",'
        f"{start},1500,33,12637.000000\n"
    )
    (tmp_path / "v2.csv").write_text(text)
    (kernel,) = read_rocprof([tmp_path / "v2.csv"])
    assert (kernel.name, kernel.duration, kernel.launch.grid) == ("hello(char*)", time, (16, 1, 1))
    assert (kernel.resources.shared, kernel.resources.stack, set(kernel.counters)) == (512, 0, {"GRBM_COUNT"})


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ('"Kind","Kernel_Id","Kernel_Name","Start_Timestamp","End_Timestamp"\n"KERNEL_DISPATCH",4,"k",10,35\n', 25.0),
        ('Kernel_Name,Count,Sum(ns),Mean(ns),Median(ns),Pct\n"k(int)",4,100.0,25.0,24.0,90.5\n', 25.0),
    ],
    ids=["a trace without shapes", "the kernels that took most"],
)
def test_a_table_that_says_little_more_than_times_gives_the_times(tmp_path: Path, text: str, time: float) -> None:
    (tmp_path / "few.csv").write_text(text)
    assert ROCPROF.recognises(tmp_path / "few.csv", text.encode())
    analysis = ROCPROF.inspect([tmp_path / "few.csv"], {})
    (duration,) = analysis.metrics.find("duration")
    assert (dict(duration.labels)["kernel"], duration.value) == ("k", time)
    assert analysis.metrics.find("registers") == ()


def test_a_table_that_a_shell_redirected_into_utf_16_is_read(tmp_path: Path) -> None:
    plain, other = tmp_path / "a_kernel_trace.csv", tmp_path / "b_kernel_trace.csv"
    plain.write_text(TRACE)
    other.write_bytes(TRACE.encode("utf-16"))
    times = [[facts.duration for facts in read_rocprof([path])] for path in (plain, other)]
    assert times[0] == times[1]
    assert times[0] == [1000, None]
