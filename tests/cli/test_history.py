"""history add, regressions, site: what is made of many records."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from pytest_perfgate.adapters.stores.records import Records, render_record
from pytest_perfgate.model.measurement import Environment
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.verdict import RunReport
from tests.cli.conftest import Place
from tests.reports import case, run


def day(number: int, *times: float, mode: str = "full", commit: str = "") -> RunReport:
    """The run of one day: a case a time, each of another name."""
    environment = Environment(python="3.11", platform="Linux", commit=commit or f"{number:040x}")
    cases = [case(f"test_{name}", time, 1e6, Outcome.PASSED) for name, time in zip("abcdefg", times)]
    return run(*cases, started=f"2026-06-{number:02}T10:00:00+00:00", environment=environment, mode=mode)


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


def sittings(place: Place, name: str) -> list[dict]:
    done = place.perfgate("history", name, "--json")
    return json.loads(done.out)[0]["sittings"] if done.code == 0 else []


def test_records_are_added_once(place: Place, folder: Path) -> None:
    done = place.perfgate("history", "add", "runs")
    assert (done.code, "added 3 runs with 6 results" in done.out) == (0, True)
    assert [s["time"] for s in sittings(place, "test_a")] == [1e6 + 1, 1e6 + 2, 3e6]
    assert "nothing new in 3 records" in place.perfgate("history", "add", "runs").out
    shutil.copy(folder / "1.json", "again.json")
    assert "nothing new in 1 record" in place.perfgate("history", "add", "again.json").out
    (place.root / ".perfgate" / "history.db").unlink()
    place.perfgate("history", "add", "runs/3.json", "runs/1.json", "runs/2.json")
    assert [s["time"] for s in sittings(place, "test_a")] == [1e6 + 1, 1e6 + 2, 3e6], "in the order of their time"


def test_what_a_run_remembered_is_not_added_again(place: Place) -> None:
    from pytest_perfgate.app.accepted import sittings as of_run

    report = day(1, 1e6)
    place.history.append(tuple(of_run(report)))
    place.record(report)
    assert "nothing new in 1 record" in place.perfgate("history", "add").out
    (place.root / "r.json").write_bytes(render_record(report))
    assert "nothing new" in place.perfgate("history", "add", "r.json").out, "the same run, written as one file"
    assert len(sittings(place, "test_a")) == 1


def test_a_part_of_a_run_and_then_the_whole_are_one(place: Place) -> None:
    whole = day(1, 1e6, 2e6)
    for name, report in (("part", replace(whole, cases=whole.cases[:1], complete=False)), ("whole", whole)):
        (place.root / f"{name}.json").write_bytes(render_record(report))
    assert "1 result" in place.perfgate("history", "add", "part.json").out
    assert "1 result" in place.perfgate("history", "add", "whole.json").out
    assert [len(sittings(place, name)) for name in ("test_a", "test_b")] == [1, 1]


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


def slower_project(place: Place) -> None:
    """A month in which one of two cases got slower at the twentieth, and the other was forgotten after the tenth."""
    noise = [1 + (at * 7919 % 13 - 6) / 2000 for at in range(30)]
    for at in range(1, 29):
        times = [1e6 * noise[at] * (1.1 if at >= 20 else 1), *([2e6 * noise[at]] if at <= 10 else [])]
        (place.root / f"{at:02}.json").write_bytes(render_record(day(at, *times)))
    assert place.perfgate("history", "add", ".").code == 0


def test_regressions_of_a_month(place: Place) -> None:
    slower_project(place)
    done = place.perfgate("regressions")
    assert done.code == 0
    assert "1 case got slower and stayed so" in done.out
    assert f"{20:040x}"[:7] in done.out
    assert place.perfgate("regressions", "--fail").code == 1
    assert place.perfgate("regressions", "--fail", "--since", "2026-06-25").code == 0
    assert place.perfgate("regressions", "--fail", "--over", "20%").code == 0
    every = json.loads(place.perfgate("regressions", "--json").out)
    assert [(step["commit"], round(step["after"] / step["before"], 2)) for step in every["slower"]] == [
        (f"{20:040x}", 1.1)
    ]
    assert place.perfgate("regressions", "--markdown", "digest.md").code == 0
    assert (place.root / "digest.md").read_text().startswith("# Regressions")
    assert place.perfgate("regressions", "--markdown", "-").out.startswith("# Regressions")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--device", "AMD-*"], "history-empty"), (["--since", "soon"], "command-usage"),
        (["--over", "much"], "not a share"), (["--over=-3%"], "not a share"), (["--stale", "0"], "whole number"),
    ],
)  # fmt: skip
def test_regressions_of_nothing(place: Place, words: list[str], code: str) -> None:
    place.perfgate("history", "add", place.record(day(1, 1e6)))
    done = place.perfgate("regressions", *words)
    assert (done.code, code in done.err) == (2, True)
