"""Files that are no record, and records or samples that are damaged."""

from __future__ import annotations

import json
import os
import tracemalloc
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.adapters.stores import records as module
from pytest_perfgate.adapters.stores.records import Records, read_record, render_record
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Outcome
from tests.reports import case, run

REPORT = run(case("test_a", 1e6, 9e5, Outcome.REGRESSED), case("test_b[x]", 2e6))


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", '{"perfgate": "1"}', '{"perfgate": 1}', '{"perfgate":1,"run":{"shared":5}}', "\xff",
        "[" * 200_000, '{"perfgate":1,"run":' + '{"a":' * 900 + "1" + "}" * 901,
    ],
    ids=["empty", "cut", "list", "text", "nothing", "no such", "latin", "brackets", "deep"],
)  # fmt: skip
def test_what_is_no_record(records: Records, tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(PerfgateError, match="record-unreadable"):
        records.read(str(tmp_path / "r.json"))


def test_a_later_version(records: Records, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"perfgate": 99}')
    with pytest.raises(PerfgateError, match="record-version"):
        records.read(str(tmp_path / "r.json"))


def test_every_cut_is_an_error(records: Records, tmp_path: Path) -> None:
    whole = render_record(REPORT).rstrip()
    for cut in range(0, len(whole), 37):
        (tmp_path / "r.json").write_bytes(whole[:cut])
        with pytest.raises(PerfgateError, match="record-"):
            records.read(str(tmp_path / "r.json"))


@pytest.mark.parametrize("damage", [b"", b"perfgate samples 1\n", b"perfgate samples 1\nxx"])
def test_damaged_samples(records: Records, damage: bytes) -> None:
    records.write(REPORT).with_suffix(".samples").write_bytes(damage)
    with pytest.raises(PerfgateError, match="record-unreadable"):
        records.read()


@pytest.mark.parametrize("count", [2**70, -5, "x", None])
def test_odd_counts_of_samples(records: Records, count: object) -> None:
    path = records.write(REPORT)
    body = json.loads(path.read_bytes())
    body["samples"]["counts"][0][0][0] = count
    path.write_text(json.dumps(body))
    with pytest.raises(PerfgateError, match="record-unreadable"):
        records.read()


def test_samples_that_unpack_to_more_than_they_say(records: Records) -> None:
    """A kilobyte may unpack to a gigabyte."""
    bomb = b"perfgate samples 1\n" + zlib.compress(bytes(1 << 26), 9)
    records.write(REPORT).with_suffix(".samples").write_bytes(bomb)
    tracemalloc.start()
    with pytest.raises(PerfgateError, match="record-unreadable"):
        records.read()
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()


def test_missing_samples(records: Records) -> None:
    path = records.write(REPORT)
    path.with_suffix(".samples").unlink()
    with pytest.raises(PerfgateError, match="record-unreadable") as caught:
        records.read()
    assert caught.value.what == f"the file of its samples is missing: {path.stem}.samples"
    assert "--perfgate-json" in caught.value.fix


def test_a_pipe_or_a_device_is_no_record(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for path in (tmp_path / "pipe.json", Path("/dev/zero")):
        with pytest.raises(PerfgateError) as error:
            read_record(path)
        assert error.value.code.name == "record-unreadable"


@pytest.mark.parametrize("suffix", [".samples", ".json", "last"])
def test_an_older_record_is_not_taken_for_one_that_a_full_disk_refused(
    records: Records, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    write = module.write_atomically

    def refused(path: Path, data: bytes) -> None:
        if path.name.endswith(suffix):
            raise PerfgateError("file-unwritable", "No space left on device")
        write(path, data)

    older = records.write(REPORT)
    monkeypatch.setattr(module, "write_atomically", refused)
    with pytest.raises(PerfgateError, match="No space left on device"):
        records.write(replace(REPORT, started="2027-01-01T00:00:00+00:00"))
    with pytest.raises(PerfgateError, match="could not write") as error:
        records.read()
    assert error.value.code.name == "record-missing"
    assert records.read(str(older)) == REPORT
