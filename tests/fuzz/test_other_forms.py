"""The same measurement written in another way: whoever reads it must come to the same figures."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pytest_perfgate.adapters.readers.nsys_report import read_nsys
from pytest_perfgate.app.inspections.nsys import Nsys
from tests.corpus import corpus
from tests.fuzz import seeds
from tests.fuzz.campaign import alike
from tests.fuzz.seen import figures_of
from tests.kineto_file import written
from tests.kineto_job import job
from tests.nsys_file import ExportMaker

Change = Callable[[bytes], bytes]


def values(figures: Mapping[str, Any]) -> dict[str, list[float]]:
    """Values by the name of their metric alone: what is renamed has other labels."""
    by_name: dict[str, list[float]] = {}
    for name, numbers in figures.items():
        by_name.setdefault(name.partition("{")[0], []).extend(numbers)
    return {name: sorted(numbers) for name, numbers in by_name.items()}


def figures(folder: Path, name: str, data: bytes) -> Mapping[str, Any]:
    path = folder / name
    path.write_bytes(data)
    return figures_of(path)


@cache
def figures_before(name: str, data: bytes) -> Mapping[str, Any]:
    """Of a file as it is, read once for all the forms that it is held against."""
    with tempfile.TemporaryDirectory() as folder:
        return figures(Path(folder), name, data)


def events(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Change:
    def make(data: bytes) -> bytes:
        tree = json.loads(data)
        return json.dumps({**tree, "traceEvents": change(tree["traceEvents"])}).encode()

    return make


def later(by: float) -> Change:
    return events(lambda entries: [{**one, "ts": one["ts"] + by} if "ts" in one else one for one in entries])


def shuffled(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return random.Random(3).sample(entries, len(entries))


def renamed(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Kernels that no table of classes knows, under other names."""
    names = {"odd": "strange", "gather": "gather_2", "dot": "dot_2"}
    return [{**one, "name": names.get(one["name"], one["name"])} for one in entries]


def numbered(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Other numbers of processes, threads, streams and correlations."""
    renumbered = []
    for one in entries:
        args = dict(one.get("args", {}))
        if "correlation" in args:
            args["correlation"] += 5000
        more = {"id": one["id"] + 5000} if one.get("cat") == "ac2g" else {}
        renumbered.append({**one, **more, **({"args": args} if args else {})})
    return renumbered


TRACES: Mapping[str, Change] = {
    "a second later": later(1e6),
    "a day later": later(86_400e6),
    "before zero": later(-5000),
    "packed": gzip.compress,
    "events in another order": events(shuffled),
    "kernels renamed": events(renamed),
    "correlations numbered otherwise": events(numbered),
    "blanks": lambda data: json.dumps(json.loads(data), indent=2).encode(),
    "shown in another unit": lambda data: json.dumps({**json.loads(data), "displayTimeUnit": "ns"}).encode(),
    "times in more digits": events(
        lambda entries: [{**one, "ts": float(one["ts"])} if "ts" in one else one for one in entries]
    ),
}


@pytest.mark.parametrize("form", TRACES)
def test_a_trace_in_another_form_has_the_same_figures(tmp_path: Path, form: str) -> None:
    for number, data in enumerate(seeds.traces().values()):
        before = figures_before(f"{number}.json", data)
        after = figures(tmp_path, f"{number}.other.json", TRACES[form](data))
        assert before
        assert alike(values(before), values(after)) if "renamed" in form else alike(before, after)


def altered(*statements: str) -> Change:
    def make(data: bytes) -> bytes:
        database = sqlite3.connect(":memory:")
        database.deserialize(data)
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        for statement in statements:
            for table in tables if "{table}" in statement else [""]:
                columns = {row[1] for row in database.execute(f"pragma table_info({table})")} if table else set()
                if not table or {"start", "end"} <= columns:
                    database.execute(statement.format(table=table))
        database.commit()
        return database.serialize()

    return make


EXPORTS: Mapping[str, Change] = {
    "a second later": altered('update {table} set start = start + 1000000000, "end" = "end" + 1000000000'),
    "before zero": altered('update {table} set start = start - 3000, "end" = "end" - 3000'),
    "rows in another order": altered(
        "create table kept as select * from {table} order by start desc",
        "delete from {table}",
        "insert into {table} select * from kept",
        "drop table kept",
    ),
    "kernels renamed": altered(
        "update StringIds set value = 'another_' || value where value not like '%nccl%' "
        "and id in (select shortName from CUPTI_ACTIVITY_KIND_KERNEL)",
    ),
    "a later version's tables and columns": altered(
        *(
            f"alter table {name} rename to {name}_V2"
            for name in ("StringIds", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS")
        ),
        "alter table CUPTI_ACTIVITY_KIND_KERNEL_V2 add column unheardOf integer default 7",
    ),
    "names numbered otherwise": altered(
        "update StringIds set id = id + 1000",
        "update CUPTI_ACTIVITY_KIND_KERNEL set shortName = shortName + 1000",
        "update CUPTI_ACTIVITY_KIND_RUNTIME set nameId = nameId + 1000",
        "update NVTX_EVENTS set textId = textId + 1000",
    ),
}


@pytest.mark.parametrize("form", [form for form in EXPORTS if "rows" not in form])
def test_an_export_in_another_form_has_the_same_figures(tmp_path: Path, form: str) -> None:
    if not hasattr(sqlite3.Connection, "deserialize"):
        pytest.skip("sqlite3 reads databases from memory since Python 3.11")
    for name, data in seeds.exports().items():
        before = figures_before(name, data)
        assert before
        after = figures(tmp_path, f"other.{name}", EXPORTS[form](data))
        assert alike(values(before), values(after)) if "renamed" in form else alike(before, after), name


def test_rows_of_an_export_in_another_order_have_the_same_figures(tmp_path: Path) -> None:
    for name, data in seeds.exports().items():
        path = tmp_path / f"turned.{name}"
        path.write_bytes(data)
        with sqlite3.connect(path) as database:
            for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
                database.execute(f"create table kept as select * from {table} order by start desc, rowid desc")
                database.execute(f"delete from {table}")
                database.execute(f"insert into {table} select * from kept")
                database.execute("drop table kept")
        database.close()
        assert alike(figures_before(name, data), figures_of(path))


def in_nanoseconds(data: bytes) -> bytes:
    return data.replace(b'"us","5.41"', b'"ns","5410"').replace(b'"us","%"', b'"ns","%"').replace(
        b'"12.1",', b'"12100",').replace(b'"2.1",', b'"2100",')  # fmt: skip


def rows_turned(data: bytes) -> bytes:
    """Kernels in another order, each with its lines."""
    head, *rows = data.decode().splitlines(keepends=True)
    units = [row for row in rows if row.startswith('"",')]
    rest = [row for row in rows if not row.startswith('"",')]
    return (head + "".join(units) + "".join(rest[::-1])).encode()


@pytest.mark.parametrize("change", [in_nanoseconds, rows_turned, gzip.compress], ids=["units", "rows", "packed"])
def test_a_page_in_another_form_has_the_same_figures(tmp_path: Path, change: Change) -> None:
    pages = {name: data for name, data in seeds.ncu_pages().items() if change(data) != data}
    assert pages, "the change must say something of a page"
    for name, data in pages.items():
        before = figures_before(name, data)
        assert before
        suffix = ".gz" if change is gzip.compress else ""
        assert alike(before, figures(tmp_path, f"other.{name}{suffix}", change(data)))


def test_counters_in_another_order_have_the_same_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of our own files: launches of one name are numbered as the file has them, and the corpus repeats names."""
    monkeypatch.delenv("PERFGATE_CORPUS", raising=False)
    for name, data in seeds.rocprof().items():
        head, *rows = data.decode().splitlines(keepends=True)
        before = figures_before(name, data)
        assert alike(before, figures(tmp_path, f"other.{name}", (head + "".join(rows[::-1])).encode()))


def test_kernels_in_another_order_have_the_same_figures(tmp_path: Path) -> None:
    """Launches of one kernel keep their order, which numbers them; with the corpus too, where it is set."""
    tried = 0
    for name, data in seeds.rocprof().items():
        head, *rows = filter(None, csv.reader(io.StringIO(data.decode())))
        column = next((at for at, title in enumerate(head) if title in {"Kernel_Name", "KernelName", "Name"}), -1)
        if column < 0:  # facts of the machine: no kernels
            continue
        text = io.StringIO()
        csv.writer(text).writerows([head, *sorted(rows, key=lambda row: row[column])])
        assert alike(figures_before(name, data), figures(tmp_path, f"other.{name}", text.getvalue().encode())), name
        tried += 1
    assert tried >= 2


def test_dispatches_at_another_time_have_the_same_figures(tmp_path: Path) -> None:
    """With the corpus too, where it is set."""
    tried = 0
    for name, data in seeds.rocprof().items():
        head, *rows = filter(None, csv.reader(io.StringIO(data.decode())))
        columns = [at for at, title in enumerate(head) if title.endswith("_Timestamp") or title in {"BeginNs", "EndNs"}]
        if not columns or any(len(row) != len(head) for row in rows):
            continue
        for row in rows:
            for at in columns:
                row[at] = str(int(row[at]) + 10**12) if row[at].isdecimal() else row[at]
        text = io.StringIO()
        csv.writer(text).writerows([head, *rows])
        assert alike(figures_before(name, data), figures(tmp_path, f"other.{name}", text.getvalue().encode())), name
        tried += 1
    assert tried >= 2


DISPATCHES = (("k(int)", 100, 1100, 128, 4096, 16), ("j(int)", 1200, 1300, 64, 1024, 32))
ROCPROFS = {
    "Index,KernelName,gpu-id,queue-id,pid,tid,grd,wgr,lds,scr,arch_vgpr,BeginNs,EndNs,SQ_WAVES": (
        '{n},"{0} [clone .kd]",1,0,5,5,{4},{3},0,0,8,{1},{2},{5}'
    ),
    "Dispatch_ID,GPU_ID,Queue_ID,PID,TID,GRD,WGR,LDS,SCR,Arch_VGPR,Kernel_Name,Start_Timestamp,End_Timestamp,SQ_WAVES": (
        '{n},1,0,5,5,{4},{3},0,0,8,"{0} [clone .kd]",{1},{2},{5}'
    ),
    "Dispatch_Id,Process_Id,Grid_Size,Kernel_Name,Workgroup_Size,LDS_Block_Size,Scratch_Size,VGPR_Count,Counter_Name,"
    "Counter_Value,Start_Timestamp,End_Timestamp": '{n},5,{4},"{0}",{3},0,0,8,SQ_WAVES,{5},{1},{2}',
}
"""Columns and rows of the first, the second and the third."""


def test_three_generations_of_rocprof_have_the_same_figures(tmp_path: Path) -> None:
    by_head = {}
    for number, (head, line) in enumerate(ROCPROFS.items()):
        rows = [line.format(*dispatch, n=n) for n, dispatch in enumerate(DISPATCHES)]
        by_head[head] = figures(tmp_path, f"results{number}.csv", "\n".join([head, *rows, ""]).encode())
    first, *others = by_head.values()
    assert {"rocprof", "kernel_time"} & set(values(first))
    for other in others:
        assert alike(values(first), values(other))


@pytest.mark.parametrize(("unit", "times"), [("ns", 1e3), ("ms", 1e-3), ("s", 1e-6)])
def test_a_benchmark_in_another_unit_has_the_same_figures(tmp_path: Path, unit: str, times: float) -> None:
    tree = json.loads(seeds.benchmarks()["google.json"])
    before = figures(tmp_path, "google.json", json.dumps(tree).encode())
    for row in tree["benchmarks"]:
        row.update(time_unit=unit, real_time=row["real_time"] * times, cpu_time=row["cpu_time"] * times)
    assert alike(before, figures(tmp_path, "other.json", json.dumps(tree).encode()))


def test_ranks_in_one_trace_have_the_figures_of_a_file_each(tmp_path: Path) -> None:
    """As a tool fuses them, which says the rank with each event and gives processes and threads numbers apart."""
    paths, fused = job(tmp_path, 3), []
    for rank, path in enumerate(paths):
        for one in json.loads(path.read_text())["traceEvents"]:
            args = {**one.get("args", {}), "rank": rank}
            more = {"pid": 100 * rank + one["pid"]} if isinstance(one.get("pid"), int) else {}
            fused.append({**one, **more, "args": args})
    several = figures_of(*paths)
    assert len(several) > 20
    assert alike(several, figures_of(written(tmp_path / "fused.json", fused)))


def split_by_process(path: Path, folder: Path) -> list[Path]:
    """The same export as one file for each process, as a job writes it that profiles each rank by itself."""
    with sqlite3.connect(path) as whole:
        pids = [pid for (pid,) in whole.execute("SELECT DISTINCT globalPid >> 24 FROM CUPTI_ACTIVITY_KIND_KERNEL")]
        names = [name for (name,) in whole.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        owners = {name: {row[1] for row in whole.execute(f"PRAGMA table_info({name})")} for name in names}
    parts = []
    for pid in pids:
        parts.append(folder / f"{path.stem}_{pid & 0xFFFFFF}.sqlite")
        shutil.copyfile(path, parts[-1])
        with sqlite3.connect(parts[-1]) as part:
            for name, columns in owners.items():
                for column in columns & {"globalPid", "globalTid"}:
                    part.execute(f"DELETE FROM {name} WHERE {column} >> 24 <> ?", (pid,))
    return parts


def three_ranks(path: Path) -> Path:
    maker = ExportMaker(path)
    for pid, pace in ((11, 100), (12, 130), (13, 90)):
        maker.range(pid, 0, 20 * pace, "step")
        for at in range(10):
            start = at * pace
            maker.kernel(pid, start, start + pace // 2, f"gemm_{at % 3}", device=pid - 11, launched=start - 5)
            maker.kernel(
                pid, start + 20, start + 60, "ncclDevKernel_AllReduce", stream=20, device=pid - 11, launched=start
            )
        maker.copy(pid, 5, 25, device=pid - 11)
    return maker.done()


def test_a_job_split_by_rank_has_the_figures_of_the_whole(tmp_path: Path) -> None:
    whole = three_ranks(tmp_path / "whole.sqlite")
    parts = split_by_process(whole, tmp_path)
    assert len(parts) == 3
    one, several = (Nsys(read_nsys).inspect(paths, {}).metrics.metrics for paths in ([whole], parts))
    assert {(m.name, m.labels): m.value for m in several} == {(m.name, m.labels): m.value for m in one}
    alone = [Nsys(read_nsys).inspect([path], {}).metrics.find("busy_time") for path in parts]
    assert sorted(m.value for part in alone for m in part) == sorted(
        m.value for m in one if m.name == "busy_time" and len(m.labels) == 1
    )


@pytest.mark.corpus
def test_a_real_job_split_by_rank_has_the_figures_of_the_whole(tmp_path: Path) -> None:
    whole = tmp_path / "train.sqlite"
    shutil.copyfile(corpus("nsys/train_2gpu_before.sqlite"), whole)
    whole.chmod(0o644)
    parts = split_by_process(whole, tmp_path)
    one, several = (Nsys(read_nsys).inspect(paths, {}).metrics.metrics for paths in ([whole], parts))
    assert len(one) > 20
    assert {(m.name, m.labels): m.value for m in several} == {(m.name, m.labels): m.value for m in one}
