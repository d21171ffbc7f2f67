"""Tests of adapters/readers/kineto_text."""

from __future__ import annotations

import gzip
import json
import random

import pytest

from pytest_perfgate.adapters.readers import kineto, kineto_text
from pytest_perfgate.adapters.readers import kineto as kineto_halves
from pytest_perfgate.adapters.readers.kineto import read_kineto
from pytest_perfgate.model.errors import PerfgateError
from tests.kineto_file import document, host, kernel, launch, written

EVENTS = [
    event
    for n in range(40)
    for event in (
        host(f'aten::mm "}}, {{ {n}', 100 * n, 9, nested=[{"name": "a", "x": 1}, {"name": "b", "x": [{}, {}]}]),
        launch(100 * n + 1, n + 1),
        kernel("gemm", 100 * n + 10, 20, correlation=n + 1),
    )
]
DOCUMENT = document(EVENTS)
BY_KEY = document([dict(sorted(event.items())) for event in EVENTS])
BY_NAME = document([{"name": event["name"], **event} for event in EVENTS])
FORMS = {
    "one line": json.dumps(DOCUMENT),
    "compact": json.dumps(DOCUMENT, separators=(",", ":")),
    "as Kineto indents": json.dumps(DOCUMENT, indent=1),
    "two spaces": json.dumps(DOCUMENT, indent=2),
    "four spaces": json.dumps(DOCUMENT, indent=4),
    "tabs": json.dumps(DOCUMENT, indent="\t"),
    "carriage returns": json.dumps(DOCUMENT, indent=2).replace("\n", "\r\n"),
    "no indent": json.dumps(DOCUMENT, indent=0),
    "keys in order": json.dumps(BY_KEY),
    "keys in order, indented": json.dumps(BY_KEY, indent=2),
    "names first": json.dumps(BY_NAME),
    "devices last": json.dumps({"traceEvents": EVENTS, "deviceProperties": [{"id": 0}, {"id": 1}]}, indent=1),
    "a bare list": json.dumps(EVENTS),
    "a bare list, indented": json.dumps(BY_KEY["traceEvents"], indent=2),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_read_in_pieces(tmp_path, monkeypatch, name):
    path = tmp_path / "t.json"
    path.write_text(FORMS[name], newline="")
    (whole,) = read_kineto(path)
    monkeypatch.setattr(kineto_text, "CHUNK", 2048)
    columns, _ = kineto._read(path, 0, None)
    assert len(columns.chunks) > 4
    (pieces,) = read_kineto(path)
    for column in ("start", "end", "category", "name", "place", "correlation", "index"):
        assert getattr(pieces, column).tolist() == getattr(whole, column).tolist(), column
    assert pieces.names == whole.names


def test_a_bare_list_is_read_to_its_end_and_by_one_process(tmp_path, monkeypatch):
    """It has no header behind which a second process could begin, and may be longer than any header."""
    path = tmp_path / "t.json"
    path.write_text(json.dumps(EVENTS, indent=1))
    monkeypatch.setattr(kineto_text, "CHUNK", 2048)
    monkeypatch.setattr(kineto, "_LONGEST_HEADER", 4096)
    monkeypatch.setattr(kineto_halves, "LARGE", 1)
    assert kineto_halves.middle(path) is None
    assert len(read_kineto(path)[0]) == len(EVENTS)
    packed = tmp_path / "t.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert len(read_kineto(packed)[0]) == len(EVENTS)
    path.write_text(json.dumps(EVENTS, indent=1)[:-300])
    with pytest.raises(PerfgateError, match="in the middle of an event list"):
        read_kineto(path)


NOTED_EVENTS = [
    event
    for n in range(60)
    for event in (
        host(f"aten::mm {n}", 100 * n, 9, note="a text that is skipped"),
        launch(100 * n + 1, n + 1),
        kernel(f"gemm {n}", 100 * n + 10, 20, correlation=n + 1),
    )
]
TEXT = json.dumps(document(NOTED_EVENTS)).encode()


def refused(kineto, path, data: bytes) -> PerfgateError:
    path.write_bytes(data)
    with pytest.raises(PerfgateError) as error:
        kineto.inspect([path], {})
    return error.value


def between(first: bytes, second: bytes, byte: bytes) -> bytes:
    """The text with a range that begins in one string and ends in another filled with a byte."""
    start, end = TEXT.index(first) + 3, TEXT.index(second) + 3
    return TEXT[:start] + byte * (end - start) + TEXT[end:]


@pytest.mark.parametrize("byte", [b"\0", b"\xff", b"\x01", b"\x80"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_range_from_one_text_into_another_that_is_overwritten_is_damage(kineto, tmp_path, byte, packed) -> None:
    data = between(b"gemm 7", b"gemm 40", byte)
    error = refused(kineto, tmp_path / ("t.json.gz" if packed else "t.json"), gzip.compress(data) if packed else data)
    assert error.code.name == "trace-malformed"
    assert f"overwrite it from byte {TEXT.index(b'gemm 7') + 3:,}" in error.what


@pytest.mark.parametrize("seed", range(40))
def test_a_zeroed_range_anywhere_is_refused(kineto, tmp_path, monkeypatch, seed) -> None:
    monkeypatch.setattr(kineto_text, "CHUNK", 4096)
    chance = random.Random(seed)
    start, length = chance.randrange(len(TEXT) - 300), chance.randrange(1, 200)
    refused(kineto, tmp_path / "t.json", TEXT[:start] + b"\0" * length + TEXT[start + length :])


@pytest.mark.parametrize("odd", [b"tab\there", b"line\nbreak", b"latin \xe9", b"a \x1b[31m colour"])
def test_what_writers_leave_unescaped_in_a_text_is_no_damage(kineto, tmp_path, odd) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(TEXT.replace(b"a text that is skipped", odd).replace(b"gemm 7", b"gemm 7 " + odd))
    assert kineto.inspect([path], {}).metrics.find("kernel_count")[0].value == 60


@pytest.mark.parametrize("name", ['say "hi"', '"', 'library = Library("own", "IMPL")\n(1): <module>', 'a \\"b\\" "c"'])
def test_quotes_that_older_writers_leave_unescaped_in_a_name_are_part_of_it(tmp_path, name) -> None:
    path = tmp_path / "t.json"
    process = {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}}
    text = json.dumps(document([process, *NOTED_EVENTS, process])).replace('"gemm 7"', f'"{name}"')
    path.write_text(text)
    (trace,) = read_kineto(path)
    assert len(trace) == len(NOTED_EVENTS)
    assert set(trace.names) - {event["name"] for event in NOTED_EVENTS} == {
        name.replace("\\", "").replace("\n", "\N{REPLACEMENT CHARACTER}")
    }
    assert {thread.process_name for thread in trace.threads} == {"python"}


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "trace"])
@pytest.mark.parametrize("size", [5_000, 3_000_000])
def test_a_trace_is_told_however_long_its_metadata_is(kineto, tmp_path, name, size) -> None:
    whole = {"distributedInfo": {"groups": "x" * size}, **document(NOTED_EVENTS)}
    data = json.dumps(whole).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert kineto.recognises(path, path.read_bytes()[:4096])
    assert kineto.inspect([path], {}).metrics.find("kernel_count")[0].value == 60


def test_other_json_is_no_trace_however_long_it_is(kineto, tmp_path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"rows": ["x" * 50] * 5_000}))
    assert not kineto.recognises(path, path.read_bytes()[:4096])


@pytest.mark.parametrize("indent", [None, 2, 4])
@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
@pytest.mark.parametrize("chunk", [1, 64, 300, 2**24])
def test_chunks_of_any_size_and_layout_give_the_same_columns(tmp_path, monkeypatch, indent, name, chunk):
    monkeypatch.setattr(kineto_text, "CHUNK", chunk)
    events = [kernel(f"k{n % 3}", 10 * n, 5, correlation=n) for n in range(40)]
    (trace,) = read_kineto(written(tmp_path / name, events, indent=indent))
    assert trace.start.tolist() == [10_000 * n for n in range(40)]
    assert trace.correlation.tolist() == list(range(40))
    assert trace.names == ("k0", "k1", "k2")


def test_what_was_searched_for_a_cut_is_not_searched_again() -> None:
    """An event of hundreds of megabytes is gone through once, not once for each block of it."""
    event = b'{"ph":"X","args":"' + b"x" * 2**20 + b'"}'
    assert kineto_text.last_cut(event + b"," + event) == len(event) - 1
    assert kineto_text.last_cut(event + b"," + event, len(event)) == len(event) - 1, (
        "a cut may begin in what was there before"
    )
    assert kineto_text.last_cut(event + b"," + event, 2 * len(event) - 5) == -1
    assert kineto_text.last_cut(event) == -1


def test_the_layout_of_torch_is_cut_between_events_only(tmp_path, monkeypatch):
    monkeypatch.setattr(kineto_text, "CHUNK", 50)
    tricky = "a },\\n  { b"
    lines = ",\n  ".join(json.dumps(e, indent=4) for e in [kernel(tricky, 0, 1), kernel("},", 5, 1), kernel("x", 9, 2)])
    path = tmp_path / "t.json"
    path.write_text('{\n  "schemaVersion": 1,\n  "traceEvents": [\n  ' + lines + '\n  ],\n  "traceName": "t"\n}')
    (trace,) = read_kineto(path)
    assert [trace.names[n] for n in trace.name] == [tricky, "},", "x"]


def test_a_text_longer_than_many_blocks_is_joined_once(tmp_path, monkeypatch):
    """Where each block is copied with all that came before it, a text of 400 MB takes minutes."""
    searched, last_cut = [], kineto_text.last_cut

    def noted(text, at=0):
        searched.append(text)
        return last_cut(text, at)

    monkeypatch.setattr(kineto_text, "CHUNK", 4096)
    monkeypatch.setattr(kineto_text, "last_cut", noted)
    events = [*EVENTS, host("aten::mm", 10**6, 9, note="k" * 400_000)]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document(events)))
    (trace,) = read_kineto(path)
    assert len(trace) == len(events)
    assert max(sum(one is other for other in searched) for one in searched) > 90
