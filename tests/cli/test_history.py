"""history add, regressions, site: what is made of many records."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pytest_perfgate.adapters.stores.baselines import Baselines
from pytest_perfgate.adapters.stores.records import Records, render_record
from pytest_perfgate.model.metric import Metric, Problem
from pytest_perfgate.model.values import Dimension
from pytest_perfgate.model.verdict import Shard, Universe
from tests.cli.conftest import Place
from tests.histories import KEY, entry
from tests.reports import day


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Records of three days: of two with their samples inside, of one with samples that were left behind."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for number in (1, 2):
        (folder / f"{number}.json").write_bytes(render_record(day(number, 1e6 + number, 2e6)))
    apart = Records(tmp_path / "elsewhere").write(day(3, 3e6, 4e6))
    shutil.copy(apart, folder / "3.json")
    (folder / "package.json").write_text("{}")
    return folder


def entries(place: Place, name: str) -> list[dict]:
    done = place.perfgate("history", name, "--json")
    return json.loads(done.out)[0]["runs"] if done.code == 0 else []


def test_records_are_added_once(place: Place, folder: Path) -> None:
    done = place.perfgate("history", "add", "runs")
    assert (done.code, "added 3 runs with 6 results" in done.out) == (0, True)
    assert [s["time"] for s in entries(place, "test_a")] == [1e6 + 1, 1e6 + 2, 3e6]
    assert "nothing new in 3 records" in place.perfgate("history", "add", "runs").out
    shutil.copy(folder / "1.json", "again.json")
    assert "nothing new in 1 record" in place.perfgate("history", "add", "again.json").out
    (place.root / ".perfgate" / "history.db").unlink()
    place.perfgate("history", "add", "runs/3.json", "runs/1.json", "runs/2.json")
    assert [s["time"] for s in entries(place, "test_a")] == [1e6 + 1, 1e6 + 2, 3e6], "in the order of their time"


def test_a_file_of_baselines_is_read_once_for_all_its_cases(
    place: Place, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, read = [], Baselines.read
    monkeypatch.setattr(Baselines, "read", lambda own, *at: (files.append(at), read(own, *at))[1])
    place.perfgate("history", "add", "runs")
    assert place.perfgate("history").code == 0
    assert len(entries(place, "test_a")) == 3
    assert files == [("NVIDIA-H200", "tests/test_k.py")] * 2, "of two cases, once by each command"


def test_a_history_that_cannot_be_written_is_shown(place: Place, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class OnReadOnlyDisk(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if sql.startswith("pragma synchronous"):
                raise sqlite3.OperationalError("attempt to write a readonly database")
            return super().execute(sql, *values)

    place.perfgate("history", "add", "runs")
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=OnReadOnlyDisk))
    assert [place.perfgate("history", *name).code for name in ((), ("test_a",))] == [0, 0]
    assert place.perfgate("history", "add", "runs/1.json", "--json").code != 0, "writing fails"


def test_many_records_are_read_by_several_processes_and_each_is_named_in_its_place(
    place: Place, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    for number in range(4, 40):
        started = f"2026-07-01T{number // 4:02}:{number % 4:02}:00+00:00"
        (folder / f"{number:02}.json").write_bytes(render_record(replace(day(1, 1e6 + number), started=started)))
    (folder / "17.json").write_text('{"perfgate": 1, "run": 7}')
    done = place.perfgate("history", "add", "runs", "--json")
    one = [(Path(row["record"]).stem, row["new"], bool(row["fault"])) for row in json.loads(done.out)]
    assert one == [(name, 0 if name == "17" else 2 if len(name) < 2 else 1, name == "17") for name, _, _ in sorted(one)]
    assert (len(one), done.code, "record-unreadable" in done.err) == (39, 12, True)
    assert len(entries(place, "test_a")) == 20, "the newest"
    assert "nothing new in 38 records" in place.perfgate("history", "add", "runs").out


def test_the_history_keeps_of_a_record_what_a_run_would_have_kept(place: Place, tmp_path: Path) -> None:
    from pytest_perfgate.app.accepted import entries as entries_of_run

    bad = replace(day(1, 1e6, 2e6), notes=())
    whole = replace(bad, cases=(bad.cases[0], replace(bad.cases[1], problems=(Problem(code="x", what="y"),))))
    (tmp_path / "r.json").write_bytes(render_record(whole))
    (source,) = Records(tmp_path).sources([str(tmp_path / "r.json")])
    assert tuple(entries_of_run(source.read())) == tuple(entries_of_run(whole))
    assert len(tuple(entries_of_run(whole))) == 1, "what is not to be trusted has no place"


def test_what_a_run_remembered_is_not_added_again(place: Place) -> None:
    from pytest_perfgate.app.accepted import entries as entries_of_run

    report = day(1, 1e6)
    place.history.append(tuple(entries_of_run(report)))
    place.record(report)
    assert "nothing new in 1 record" in place.perfgate("history", "add").out
    (place.root / "r.json").write_bytes(render_record(report))
    assert "nothing new" in place.perfgate("history", "add", "r.json").out, "the same run, written as one file"
    assert len(entries(place, "test_a")) == 1


def test_a_part_of_a_run_and_then_the_whole_are_one(place: Place) -> None:
    whole = day(1, 1e6, 2e6)
    for name, report in (("part", replace(whole, cases=whole.cases[:1], complete=False)), ("whole", whole)):
        (place.root / f"{name}.json").write_bytes(render_record(report))
    assert "1 result" in place.perfgate("history", "add", "part.json").out
    assert "1 result" in place.perfgate("history", "add", "whole.json").out
    assert [len(entries(place, name)) for name in ("test_a", "test_b")] == [1, 1]


def test_a_record_that_does_not_read_costs_no_other_its_place(place: Place, folder: Path) -> None:
    half = (folder / "2.json").read_bytes()
    (folder / "2.json").write_bytes(half[: len(half) // 2])
    (folder / "quick.json").write_bytes(render_record(day(4, 1e6, mode="quick")))
    done = place.perfgate("history", "add", "runs", "gone.json")
    assert done.code == 12
    assert "added 2 runs with 4 results" in done.out
    assert "left out runs/quick.json" in done.out
    assert "runs/2.json" in done.err
    assert "gone.json" in done.err
    rows = json.loads(place.perfgate("history", "add", "runs", "--json").out)
    assert [bool(row["fault"]) for row in rows] == [False, True, False, False]


def test_records_of_an_address(place: Place, folder: Path) -> None:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        done = place.perfgate("history", "add", f"{url}/1.json?token=secret", f"{url}/3.json", f"{url}/gone.json")
    finally:
        server.shutdown()
        server.server_close()
    assert done.code == 12
    assert "added 2 runs with 4 results" in done.out
    assert "secret" not in done.out + done.err


@pytest.mark.parametrize("words", [["add"], ["add", "empty"], ["test_a", "test_b"]])
def test_nothing_to_add(place: Place, words: list[str]) -> None:
    (place.root / "empty").mkdir()
    done = place.perfgate("history", *words)
    assert (done.code, "next" in done.err) == (12 if words[0] == "add" else 2, True)


def test_shards_and_their_merged_record_count_once(place: Place) -> None:
    whole = day(1, 1e6, 2e6)
    universe = Universe(cases=tuple((str(one.key), ()) for one in whole.cases))
    shards = [
        Shard(run=f"run{at}", index=at + 1, count=2, universe=universe, chosen=(at,), host=f"node{at}",
              device="NVIDIA-H200", environment=whole.environment, started=f"2026-06-01T10:0{at}:00+00:00")
        for at in (0, 1)
    ]  # fmt: skip
    parts = [replace(whole, cases=(whole.cases[at],), shards=(shards[at],)) for at in (0, 1)]
    for name, report in (("0", parts[0]), ("1", parts[1]), ("merged", replace(whole, shards=tuple(shards)))):
        (place.root / f"{name}.json").write_bytes(render_record(report))
    assert "added 1 run with 2 results" in place.perfgate("history", "add", "merged.json").out
    assert "nothing new in 2 records" in place.perfgate("history", "add", "0.json", "1.json").out
    (place.root / ".perfgate" / "history.db").unlink()
    place.perfgate("history", "add", "0.json", "1.json", "merged.json")
    runs = [(s["run"], s["host"], s["when"][14:16]) for name in ("test_a", "test_b") for s in entries(place, name)]
    assert runs == [("run0", "node0", "00"), ("run1", "node1", "01")]


def test_every_figure_as_a_table(place: Place, folder: Path) -> None:
    place.perfgate("history", "add", "runs")
    done = place.perfgate("history", "test_a", "--to", "csv:out/a.csv")
    assert (done.code, "wrote out/a.csv: 6 figures" in done.out) == (0, True)
    rows = list(csv.DictReader((place.root / "out" / "a.csv").open(newline="")))
    assert [row["value"] for row in rows if row["metric"] == "time"] == ["1000001.0", "1000002.0", "3000000.0"]
    assert {row["case"] for row in rows} == {"tests/test_k.py::test_a"}
    loss = Metric(name="loss", value=0.5, dimension=Dimension.PLAIN)
    place.history.append([entry(0.0, KEY, processes=0, metrics=(loss,)), entry(0.0, KEY, run="failed", processes=0)])
    assert "wrote own.csv: 1 figure\n" in place.perfgate("history", "bwd", "--to", "csv:own.csv").out, (
        "of no timed case"
    )
    assert "wrote all.csv: 13 figures" in place.perfgate("history", "--to", "csv:all.csv").out
    assert place.perfgate("history", "--to", "xml:a").code == 2
    assert place.perfgate("history", "--to", "csv").code == 2


def test_every_figure_for_a_data_lake(place: Place, folder: Path) -> None:
    pytest.importorskip("pyarrow")
    import pandas as pd

    place.perfgate("history", "add", "runs")
    assert place.perfgate("history", "--to", "parquet:all.parquet").code == 0
    frame = pd.read_parquet("all.parquet")
    assert (len(frame), str(frame["value"].dtype)) == (12, "float64")


@pytest.mark.parametrize("form", ["openmetrics", "bencher", "pytorch", "github-action-benchmark", "csv"])
def test_a_run_for_the_stores_that_teams_have(place: Place, folder: Path, form: str) -> None:
    done = place.perfgate("report", "runs/1.json", "--to", f"{form}:out")
    assert (done.code, "wrote out" in done.out) == (0, True)
    assert "test_a" in (place.root / "out").read_text()


def test_parquet_without_its_library_is_refused(place: Place, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_perfgate.adapters.formats.find_spec", lambda _name: None)
    done = place.perfgate("report", "runs/1.json", "--to", "parquet:out")
    assert (done.code, "pyarrow" in done.err) == (20, True)
