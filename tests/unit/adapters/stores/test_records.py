"""Tests of adapters/stores/records."""

from __future__ import annotations

import gzip
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores.records import Pointer, Records, read_record, render_record
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Artifact
from pytest_perfgate.model.metric import Absent
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.privacy import Names, shareable
from pytest_perfgate.model.verdict import Shard
from tests.reports import baseline, case, run

REPORT = run(
    case("test_a", 1e6, 9e5, Outcome.REGRESSED),
    case("test_b[x]", 2e6),
    replace(case("test_c", 1.0), measurement=None),
    complete=False,
)


def test_a_record_reads_as_it_was_written(records: Records) -> None:
    path = records.write(REPORT)
    assert records.last() == path
    for source in ("", str(path)):
        read = records.read(source)
        assert read == REPORT
    assert not read.complete


def test_a_record_that_was_indented_or_packed_reads_alike(records: Records, tmp_path: Path) -> None:
    path = records.write(REPORT)
    spread = json.dumps(json.loads(path.read_bytes()), indent=4).encode()
    for name, data in (("spread", spread), ("packed", gzip.compress(spread))):
        copy = path.with_name(f"{name}.json")
        copy.write_bytes(data)
        assert read_record(copy) == REPORT
    (tmp_path / "cut.json").write_bytes(gzip.compress(spread)[:-20])
    with pytest.raises(PerfgateError) as error:
        read_record(tmp_path / "cut.json")
    assert error.value.code.name == "record-unreadable"
    with pytest.raises(PerfgateError, match="it is a folder"):
        read_record(tmp_path)


def test_a_record_names_no_home_folder_and_its_project_s_files_from_there() -> None:
    (bare,) = run(case("test_a", 1e6)).cases
    root = Path("/home/ann/repo")
    paths = ("/home/ann/repo/k.cubin", "/home/bob/x.json", "/opt/x.json")
    artifacts = tuple(Artifact(kind="attachment", path=path) for path in paths)
    report = run(replace(bare, measurement=replace(bare.measurement, artifacts=artifacts)))
    inside = shareable(render_record(report).decode(), Names())
    assert [path in inside for path in ("~/repo/k.cubin", "~/x.json", "/opt/x.json", "/home")] == [True] * 3 + [False]
    assert [path in shareable(inside, Records(root)._names) for path in ("~/repo", '"k.cubin"')] == [False, True]


def test_a_record_is_small(records: Records) -> None:
    report = run(*(case(f"test_gemm[{n}]", 1e6 + n, 9e5, Outcome.REGRESSED) for n in range(200)))
    assert records.write(report).stat().st_size / 200 < 2048


def test_one_file_holds_all_where_it_travels(tmp_path: Path, records: Records) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(render_record(REPORT))
    assert records.read(str(path)) == REPORT


def test_written_again_it_is_the_same_record(records: Records) -> None:
    first = records.write(run(case("test_a", 1e6)))
    assert records.write(REPORT) == first
    assert records.read() == REPORT


@pytest.mark.parametrize(
    ("started", "stamp"),
    [
        ("2026-11-21T04:57:50+00:00", "20261121T045750Z"),
        ("2026-11-21T06:57:50+02:00", "20261121T045750Z"),
        ("2026-11-21T04:57:50.123456", "20261121T045750Z"),
        ("2026-11-21", "20261121T000000Z"),
        ("some / day", "some-day"),
        ("", "run"),
    ],
)
def test_a_record_is_named_for_when_it_began(records: Records, started: str, stamp: str) -> None:
    path = records.write(replace(REPORT, started=started))
    assert path.name == f"{stamp}-{os.getpid()}.json"


def test_shards_that_share_a_folder_do_not_share_a_name(records: Records) -> None:
    """Nodes of a cluster count their processes each for itself."""
    paths = {records.write(replace(REPORT, shards=(Shard(run=run),))) for run in ("a" * 32, "b" * 32)}
    assert len(paths) == 2
    assert all(path.exists() for path in paths)


def test_a_clock_that_was_set_back_removes_an_old_record_and_not_the_new_one(records: Records) -> None:
    later = time.time() + 7200
    for number in range(101):
        path = records.write(replace(REPORT, started=f"2026-11-21T05:{number % 60:02}:{number // 60:02}+00:00"))
        os.utime(path, (later + number, later + number))
    new = records.write(REPORT)
    assert new.exists()
    assert records.read() == REPORT


def test_a_record_of_the_older_form_of_name_is_read(records: Records) -> None:
    new = records.write(REPORT)
    old = new.with_name("2026-11-21T04-57-50-00-00-9494.json")
    new.rename(old)
    (new.parent / "last").write_text(f"{old.name}\n")
    assert records.read() == REPORT
    assert records.paths() == (old,)


def test_an_absent_metric_of_an_older_record_keeps_its_fix(records: Records) -> None:
    (bare,) = run(case("test_a", 1e6)).cases
    absences = tuple(Absent(name=name, why="no GPU", fix=f"set {name}") for name in ("mfu", "sol"))
    metrics = replace(bare.measurement.metrics, absent=absences)
    path = records.write(run(replace(bare, measurement=replace(bare.measurement, metrics=metrics))))
    older = path.read_text().replace('"fix":"set', '"mend":"set')
    assert older.count('"mend"') == 2
    path.write_text(older)
    assert records.read().cases[0].measurement.metrics.absent == absences


def test_a_case_of_an_older_record_keeps_its_reason(records: Records) -> None:
    path = records.write(run(replace(case("test_a", 1e6), incomparable="another timer")))
    path.write_text(path.read_text().replace('"incomparable":', '"unheld":'))
    assert '"unheld":' in path.read_text()
    assert records.read().cases[0].incomparable == "another timer"


def test_the_accepted_line_of_an_older_record_keeps_its_fields(records: Records) -> None:
    line = baseline("test_a", 1e6, runs=3, detects=0.2)
    path = records.write(run(replace(case("test_a", 1e6), baseline=line)))
    former = path.read_text().replace('"runs":3', '"sittings":3').replace('"detects":0.2', '"blind":0.2')
    assert former != path.read_text()
    path.write_text(former)
    (read,) = records.read().cases
    assert (read.baseline.runs, read.baseline.detects) == (3, 0.2)


def test_a_record_is_known_by_its_bare_name_and_a_wrong_one_is_told_where_they_lie(records: Records) -> None:
    path = records.write(REPORT)
    assert records.read(path.name) == REPORT
    with pytest.raises(PerfgateError, match="record-missing") as missed:
        records.read("nosuch")
    assert missed.value.fix.endswith(f"the records of this project are in {path.parent}")


def test_without_a_run(records: Records) -> None:
    with pytest.raises(PerfgateError, match="record-missing"):
        records.read()
    with pytest.raises(PerfgateError, match="record-missing"):
        records.read("nowhere.json")


@pytest.mark.parametrize("clock_hz", [(), (1.5e9, 1.6e9)])
def test_the_history_takes_of_the_samples_the_clocks_alone(tmp_path: Path, clock_hz: tuple[float, ...]) -> None:
    """The figures are in the record: unpacking every duration took most of the time of `perfgate history add`."""
    one = case("test_a", 1e6, 1e6, Outcome.PASSED)
    processes = tuple(replace(samples, clock_hz=clock_hz) for samples in one.measurement.processes)
    (tmp_path / "r.json").write_bytes(
        render_record(run(replace(one, measurement=replace(one.measurement, processes=processes))))
    )
    (source,) = Records(tmp_path).sources([str(tmp_path / "r.json")])
    measurement = source.read().cases[0].measurement
    assert [(samples.durations, samples.clock_hz) for samples in measurement.processes] == [((), clock_hz)] * len(
        processes
    )
    assert measurement.metrics == one.measurement.metrics


def test_the_record_fits_the_published_schema() -> None:
    from ci.record_schema import record_schema

    published = Path(__file__).parents[4] / "docs" / "record.schema.json"
    assert json.loads(published.read_text()) == json.loads(json.dumps(record_schema())), (
        "write it again: python -m ci.record_schema"
    )


def test_where_there_is_none_those_of_projects_below_are_named(tmp_path: Path) -> None:
    for name in ("libs/kern", "other"):
        Records(tmp_path / name).write(run())
    with pytest.raises(PerfgateError) as caught:
        Records(tmp_path).read()
    assert caught.value.fix.endswith("--root libs/kern (of 2)")
    with pytest.raises(PerfgateError, match="run the gate first"):
        Records(tmp_path / "libs" / "kern" / ".perfgate").read()


@pytest.fixture
def pointer(tmp_path: Path) -> Pointer:
    marker = Pointer(tmp_path)
    marker.point("old.json")
    return marker


def test_a_run_that_measured_nothing_leaves_the_last_record_what_it_was(pointer: Pointer) -> None:
    pointer.suspend("a goes on")
    assert pointer.closed() == "a goes on"
    with pytest.raises(PerfgateError, match="a goes on") as caught:
        pointer.name()
    assert caught.value.code.name == "record-missing"
    pointer.resume("a goes on")
    assert (pointer.name(), pointer.closed()) == ("old.json", "")
    assert pointer.path.read_text() == "old.json\n"


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_two_runs_at_once_that_measured_nothing_leave_it_too(pointer: Pointer, order: str) -> None:
    pointer.suspend("a")
    pointer.suspend("b")
    assert pointer.closed() == "b"
    pointer.resume(order[0])
    assert pointer.closed() == order[1]
    pointer.resume(order[1])
    assert pointer.name() == "old.json"


def test_what_another_wrote_meanwhile_stays(pointer: Pointer) -> None:
    pointer.suspend("a")
    pointer.suspend("b")
    pointer.point("b.json")
    pointer.resume("a")
    assert pointer.name() == "b.json"
    pointer.suspend("c")
    pointer.close("in CI")
    pointer.resume("c")
    assert pointer.closed() == "in CI"


def test_a_run_that_was_killed_is_still_told_after_one_that_measured_nothing(pointer: Pointer) -> None:
    pointer.suspend("killed")
    pointer.suspend("mistyped")
    pointer.resume("mistyped")
    assert pointer.closed() == "killed"
    for number in range(50):
        pointer.suspend(f"killed {number}")
    assert pointer.closed() == "killed 49"
    assert len(pointer.path.read_text().splitlines()) == 20
    pointer.point("new.json")
    assert pointer.path.read_text() == "new.json\n"


def test_where_no_run_has_left_a_record_nothing_is_written(tmp_path: Path) -> None:
    fresh = Pointer(tmp_path)
    fresh.suspend("a")
    fresh.resume("a")
    fresh.close("b")
    assert (list(tmp_path.iterdir()), fresh.closed()) == ([], "")


def test_a_pointer_that_is_no_text_is_said_and_outlives_a_run_that_measured_nothing(pointer: Pointer) -> None:
    pointer.path.write_bytes(b"\xff\n")
    pointer.suspend("a")
    pointer.resume("a")
    assert pointer.path.read_bytes() == b"\xff\n"
    with pytest.raises(PerfgateError, match="it is not text"):
        pointer.name()
