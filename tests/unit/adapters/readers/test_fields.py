"""Rows of a CSV that do not fit their header, or that stand twice: an error with the line; whom a file names."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest

from pytest_perfgate.adapters.readers.fields import named_by
from pytest_perfgate.adapters.readers.rocprof import read_rocprof
from pytest_perfgate.model.errors import PerfgateError
from tests.unit.adapters.readers.rocprof_rows import COUNTED, TRACE

STATISTICS = '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"k",10,10000,1000,100.0\n'

RESULTS = '"Index","KernelName","grd","wgr","DurationNs"\n0,"k",64,64,1000\n'


NAMELESS = "Kernel_Name,Kernel_Id,Queue_Id,Process_Id,Start_Timestamp,End_Timestamp\nk,4,1,7,100,350\nk,4,1,7,400,650\n"
"""Dispatches without a number: their queue and their times tell them apart."""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TRACE.replace("100,1100", "100,1100,7"), "line 2 has 12 cells, and the header has 11"),
        (TRACE.replace('"k(int)",100', "100"), "cut short: line 2 has 10 cells"),
        (TRACE.replace('DISPATCH",2', 'DISPATCH",1'), "dispatch 1 appears twice, in line 2 and in line 3"),
        (TRACE + TRACE, "the header is repeated in line 4"),
        (COUNTED + COUNTED.splitlines()[2] + "\n", "SQ_WAVES stands 1 times for dispatch 1 and 2 times for dispatch 1"),
        (COUNTED + COUNTED.partition("\n")[2], "SQ_WAVES of dispatch 1 appears again after other dispatches"),
        (STATISTICS + STATISTICS.partition("\n")[2], "dispatch k appears twice, in line 2 and in line 3"),
        (STATISTICS.replace("1000,", "1e30,"), "line 2: AverageNs is 1e30 ns, over a year"),
        (RESULTS.replace("1000", "32000000000000000"), "line 2: DurationNs is 32000000000000000 ns, over a year"),
        (TRACE.replace("100,1100", "100,32000000000000200"), "End_Timestamp 32000000000000200 is over a year after"),
        (COUNTED + COUNTED, "the header is repeated in line 4"),
        (NAMELESS + NAMELESS.splitlines()[1] + "\n", "dispatch k 4 1 7 100 350 appears twice, in line 2 and in line 4"),
        (TRACE.replace("100,1100", "1100,100"), "line 2: End_Timestamp 100 is before Start_Timestamp 1100"),
        (TRACE.replace("64,2,1,1024", "-64,2,1,1024"), "line 2: Workgroup_Size_X is -64"),
        (TRACE.replace("k(int)", "k\0\0\0int", 1), "line 2 holds 3 NUL bytes"),
        (TRACE.replace("End_Timestamp", "Start_Timestamp"), "the column 'Start_Timestamp' 2 times"),
    ],
)
def test_a_damaged_row_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(PerfgateError, match=message):
        read_rocprof([tmp_path / "t.csv"])


def test_dispatches_without_a_number_that_follow_each_other_are_several(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(NAMELESS)
    assert [kernel.duration for kernel in read_rocprof([tmp_path / "t.csv"])] == [250.0, 250.0]


FROM = {
    "of_ncu.csv": '==PROF== ready\n"ID","Host Name","Kernel Name"\n"","",""\n"0","node7","k(int, int)"\n',
    "of_pytest_benchmark.json": '{"machine_info": {"cpu": {"arch": "x"}, "node": "node7", "machine": "x86_64"}}',
    "of_asv.json": '{"params": {"arch": "x86_64", "machine": "node7"}}',
    "of_google.json": '{"context": {"host_name": "node7.cluster", "executable": "./b"}}',
    "of_a_trace.json": '{"hostname": "node7", "traceEvents": [{"node": "gemm", "host": "gpu"}]}',
    "node7_4711.1758927066581847260.pt.trace.json": '{"traceEvents": []}',
    "named_inside.json": '{"traceName": "log/node7_4711.175892706.pt.trace.json"}',
    "report.nsys-rep": "\1\2HOSTNAME=node7\0TERM=xterm\0",
}


@pytest.mark.parametrize("name", FROM)
def test_the_machine_that_a_file_is_from_is_known(tmp_path, name) -> None:
    path = tmp_path / name
    path.write_text(FROM[name])
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(FROM[name].encode()))
    for one in (path, *([packed] if name.endswith(".json") else [])):
        names = named_by([one, tmp_path])
        assert (names.users, names.hosts - {"node7.cluster"}) == (frozenset(), frozenset({"node7"}))


@pytest.mark.parametrize(
    ("name", "word"), [("t.json", "k" * 60_000), ("t.json", "a1" * 30_000), ("t.ncu-rep", "k" * 60_000)]
)
def test_one_long_word_is_searched_in_a_moment(tmp_path: Path, name: str, word: str) -> None:
    path = tmp_path / name
    path.write_text(f'{{"traceEvents": [{{"name": "{word}"}}], "host_name": "node7"}}')
    before = time.process_time()
    assert named_by([path]).hosts == {"node7"}
    assert time.process_time() - before < 10, "each place in the word is tried to the word's end"
