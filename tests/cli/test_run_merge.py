"""merge: the records of shards into one, which report, accept and devlog take; a fault leaves all as it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores.records import Records, read_record, render_record
from pytest_perfgate.core.judge.policy import REGRESSED, UNMEASURED
from pytest_perfgate.model.plan import Effect, Outcome
from pytest_perfgate.model.verdict import RunReport, SuiteNote
from tests.cli.conftest import Place
from tests.reports import case
from tests.shards import A100, record


def keep(place: Place, name: str, report: RunReport) -> str:
    path = place.root / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(render_record(report))
    return name


def test_shards_become_the_last_run(place: Place) -> None:
    keep(place, "shards/1.json", record(1, "ac", outcome=Outcome.REGRESSED))
    keep(place, "shards/2.json", record(2, "bd"))
    done = place.perfgate("merge", "shards", "--to", "whole.json")
    assert done.code == REGRESSED
    assert "2 shards merged" in done.out
    assert "2 regressed, 2 passed" in done.out
    whole = Records(place.root).read()
    assert whole == read_record(place.root / "whole.json")
    assert len(whole.cases) == 4
    assert all(report.measurement and report.measurement.processes[0].durations for report in whole.cases)


def test_the_report_shows_the_shards(place: Place) -> None:
    keep(place, "1.json", record(1, "ac", outcome=Outcome.REGRESSED))
    keep(place, "2.json", record(2, "bd"))
    place.perfgate("merge", "1.json", "2.json")
    text = place.perfgate("report").out
    assert "node-1" in text
    assert "node-2" in text
    assert "By device" not in text
    assert "4 cases: 2 regressed, 2 passed." in text


def test_a_record_of_one_shard_says_which(place: Place) -> None:
    keep(place, "1.json", replace(record(1, "ac"), filtered=True))
    assert "shard 1/2, 2 of 4 gated tests" in place.perfgate("report", "1.json").out


def test_a_column_a_device(place: Place) -> None:
    for name, report in {
        "h1": record(1, "ac", outcome=Outcome.REGRESSED), "h2": record(2, "bd"),
        "a1": record(1, "ac", device=A100), "a2": record(2, "bd", device=A100),
    }.items():  # fmt: skip
        keep(place, f"shards/{name}.json", report)
    assert place.perfgate("merge", "shards", "--expect", "4").code == REGRESSED
    text = place.perfgate("report", "--markdown", "-").out
    rows = [line for line in text.splitlines() if "PASSED" in line and "REGRESSED" in line]
    assert len(rows) == 2
    assert all(row.index("PASSED") < row.index("REGRESSED") for row in rows), "devices are sorted by name"


def test_a_merged_record_is_accepted(place: Place) -> None:
    keep(place, "1.json", replace(record(1, "ac"), cases=tuple(case(f"test_{one}", 1e6) for one in "ac")))
    keep(place, "2.json", replace(record(2, "bd"), cases=tuple(case(f"test_{one}", 2e6) for one in "bd")))
    place.perfgate("merge", "1.json", "2.json", "--to", "whole.json")
    assert place.perfgate("accept", "--from", "whole.json").code == 0
    assert place.times() == {"test_a": 1e6, "test_b": 2e6, "test_c": 1e6, "test_d": 2e6}


def test_devlog_compare_and_history_take_it(place: Place) -> None:
    keep(place, "1.json", record(1, "ac"))
    keep(place, "2.json", record(2, "bd"))
    place.perfgate("merge", "1.json", "2.json", "--to", "whole.json")
    assert place.perfgate("compare", "whole.json", "whole.json").code == 0
    entry = place.perfgate("devlog")
    assert entry.code == 0
    assert all(f"test_{letter}" in entry.out for letter in "abcd")
    assert place.perfgate("history", "add", "whole.json").code == 0
    first = {str(key) for _, key in place.history.keys("NVIDIA-H200")}
    assert len(first) == 4
    place.perfgate("history", "add", "whole.json")
    (key,) = [key for _, key in place.history.keys("NVIDIA-H200") if key.test == "test_a"]
    assert len(place.history.read(key, "NVIDIA-H200")) == 1, "once, however often it is added"


def test_what_is_missing_is_not_measured(place: Place) -> None:
    keep(place, "1.json", record(1, "ac"))
    done = place.perfgate("merge", "1.json", "--json")
    answer = json.loads(done.out)
    assert (done.code, answer["exit"], answer["missing"]) == (UNMEASURED, UNMEASURED, ["2/2 on NVIDIA H200"])
    assert place.perfgate("merge", "1.json").code == UNMEASURED


def test_an_interrupted_shard_is_one_that_was_not_measured(place: Place) -> None:
    one = record(1, "ac")
    keep(place, "1.json", replace(one, shards=(replace(one.shards[0], status=2),)))
    keep(place, "2.json", record(2, "bd"))
    assert place.perfgate("merge", "1.json", "2.json").code == UNMEASURED, "nobody interrupted the merge"
    keep(place, "2.json", record(2, "bd", outcome=Outcome.REGRESSED))
    assert place.perfgate("merge", "1.json", "2.json").code == REGRESSED, "it outranks what was not measured"


def test_what_failed_the_suite_is_said_where_every_case_passed(place: Place) -> None:
    note = SuiteNote(
        kind="unused", effect=Effect.FAIL, text="2 baselines that no limit asked for", names=("x::a", "x::b")
    )
    keep(place, "1.json", replace(record(1, "ac"), notes=(note,), status=1))
    keep(place, "2.json", record(2, "bd"))
    done = place.perfgate("merge", "1.json", "2.json")
    assert done.code == UNMEASURED
    assert "fail  2 baselines that no limit asked for: x::a, x::b\n" in done.out


@pytest.mark.parametrize(
    ("second", "code"),
    [
        (render_record(record(2, "bd"))[:2000], "record-unreadable"),
        (render_record(record(1, "ac")), "merge-twice"),
        (render_record(record(2, "bd", changes="another")), "merge-unlike"),
        (b'{"results": []}', "record-unreadable"),
        (b"", "record-unreadable"),
    ],
    ids=["half", "twice", "other changes", "no record", "empty"],
)
def test_a_refusal_writes_nothing_and_takes_nothing(place: Place, second: bytes, code: str) -> None:
    before = place.record(record(1, "ac"))
    keep(place, "shards/1.json", record(1, "ac"))
    (place.root / "shards" / "2.json").write_bytes(second)
    done = place.perfgate("merge", "shards", "--to", "whole.json")
    assert done.code >= 10
    assert code in done.err
    assert not (place.root / "whole.json").exists()
    assert Records(place.root).last() == before
    assert (place.root / "shards" / "2.json").read_bytes() == second


def test_an_empty_folder_is_an_error(place: Place) -> None:
    (place.root / "shards").mkdir()
    assert "record-missing" in place.perfgate("merge", "shards").err


def test_no_number_of_shards_is_below_one(place: Place) -> None:
    assert place.perfgate("merge", "shards", "--expect", "0").code == 2


@pytest.mark.slow
def test_killed_at_any_moment_the_last_record_is_the_one_before_or_whole(place: Place) -> None:
    before = place.record(record(1, "ac"))
    for index in range(1, 3):
        keep(place, f"shards/{index}.json", record(index, "ac" if index == 1 else "bd"))
    command = [sys.executable, "-c", "import sys; from pytest_perfgate.cli import main; sys.exit(main())"]
    begun = time.monotonic()
    subprocess.run([*command, "merge", "shards", "--to", "whole.json"], cwd=place.root, check=False, stdout=-3)
    took = time.monotonic() - begun
    Records(place.root).pointer.point(before.name)
    (place.root / "whole.json").unlink()
    for step in range(20):
        child = subprocess.Popen([*command, "merge", "shards", "--to", "whole.json"], cwd=place.root, stdout=-3)
        time.sleep(took * (0.4 + 0.035 * step))
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert len(Records(place.root).read().cases) in {2, 4}
        if (place.root / "whole.json").exists():
            assert len(read_record(place.root / "whole.json").cases) == 4
        assert [len(read_record(path).cases) for path in sorted(Path("shards").glob("*.json"))] == [2, 2]
