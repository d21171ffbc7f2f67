"""Tests of adapters/readers/kineto."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from pytest_perfgate.adapters.readers import kineto as kineto_halves
from pytest_perfgate.adapters.readers import kineto as reader
from pytest_perfgate.adapters.readers.kineto import looks_like_kineto, read_kineto
from pytest_perfgate.app.inspections import AnonymousInspector
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.privacy import Names
from pytest_perfgate.model.profiles import Category
from tests.kineto_file import document, host, kernel, launch, written

EVENTS = [host("aten::mm", 0, 10), launch(2, 1), kernel("gemm", 5, 20, correlation=1)]
TEXT = json.dumps(document(EVENTS))


def outcome(kineto, path):
    try:
        return "a report" if render_text(kineto.inspect([path], {}).views["report"]()) else "nothing"
    except PerfgateError as error:
        return error.code.name


def refused(path, code):
    with pytest.raises(PerfgateError) as error:
        read_kineto(path)
    assert error.value.code.name == code
    return error.value.text()


def test_a_byte_order_mark_is_no_part_of_a_trace(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(TEXT, encoding="utf-8-sig")
    assert looks_like_kineto(path, path.read_bytes())
    assert len(read_kineto(path)[0]) == 3


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wider_texts_are_recognised_and_refused(tmp_path, encoding, mark):
    path = tmp_path / "t.json"
    path.write_bytes(f"{mark}{TEXT}".encode(encoding))
    assert looks_like_kineto(path, path.read_bytes()[:4096])
    assert "convert it: iconv -f UTF-" in refused(path, "trace-encoding")


@pytest.mark.parametrize("where", ["args", "Input Dims", "name", "around"])
def test_a_depth_bomb_is_refused_or_skipped(tmp_path, kineto, where):
    deep = "[" * 200_000 + "]" * 200_000
    event = json.dumps(EVENTS[0])
    bombs = {
        "args": event.replace('"args": {', f'"args": {{"x": {deep}, '),
        "Input Dims": event.replace('"args": {', f'"args": {{"Input Dims": {deep}, "Input type": ["float"], '),
        "name": event.replace('"aten::mm"', deep),
        "around": deep,
    }
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": [' + ", ".join([bombs[where], *map(json.dumps, EVENTS[1:])]) + "]}")
    assert outcome(kineto, path) in {"trace-malformed", "a report"}


def test_what_is_no_event_is_counted(tmp_path):
    (trace,) = read_kineto(written(tmp_path / "t.json", [*EVENTS, 7, None, "text", {"ph": []}]))
    assert len(trace) == 3
    assert trace.dropped["category that is not an event"] == 4
    assert trace.events == 7


def test_times_that_no_clock_can_tell_are_refused(tmp_path):
    path = written(tmp_path / "t.json", [*EVENTS, kernel("late", 1e17, 1)])
    assert "further apart than any clock" in refused(path, "trace-malformed")


def test_full_memory_is_an_error_with_the_size(tmp_path, kineto, monkeypatch):
    def full(*_):
        raise MemoryError

    path = written(tmp_path / "t.json", EVENTS)
    with monkeypatch.context() as patched:
        patched.setattr(reader, "traces_of", full)
        assert "the memory is full; the file has 0 MB" in refused(path, "trace-memory")
    for module in ("kineto_trace", "kineto"):
        monkeypatch.setattr(f"pytest_perfgate.app.inspections.{module}.survey", full)
    guarded = AnonymousInspector(kineto, lambda _: Names())
    for fill in (lambda: guarded.inspect([path], {}), lambda: guarded.compare([path], [path], {})):
        with pytest.raises(PerfgateError, match="the memory is full") as caught:
            fill()
        assert (caught.value.code.name, str(path) in caught.value.place) == ("trace-memory", True)


@pytest.mark.parametrize(("info", "rank"), [({"rank": "2", "world_size": "4"}, 2), ({"rank": True}, None), ([], None)])
def test_a_rank_may_be_text_and_is_a_number(tmp_path, info, rank):
    (trace,) = read_kineto(written(tmp_path / "t.json", EVENTS, distributedInfo=info))
    assert trace.rank == rank
    assert trace.world == (4 if rank else None)


@pytest.mark.parametrize("rank", [2**31, 10**30, 1e30, "9" * 5000])
def test_a_rank_that_no_job_has_is_refused_in_the_header_and_in_an_event(tmp_path, rank):
    path = written(tmp_path / "t.json", EVENTS, distributedInfo={"rank": rank})
    assert "above 2,147,483,647" in refused(path, "trace-malformed")
    if not isinstance(rank, float):
        events = [{**event, "args": {**event["args"], "rank": rank}} for event in EVENTS]
        assert "above 2,147,483,647" in refused(written(path, events), "trace-malformed")


@pytest.mark.parametrize("stamp", [1e300, -1e17])
def test_time_stamps_past_the_resolution_of_their_floats_are_refused(tmp_path, stamp):
    path = written(tmp_path / "t.json", [{**event, "ts": stamp} for event in EVENTS])
    assert "larger than any clock" in refused(path, "trace-malformed")


def test_ranks_written_as_text_are_ranks_apart(tmp_path):
    events = [{**event, "args": {**event["args"], "rank": rank}} for rank in ("0", "1") for event in EVENTS]
    traces = read_kineto(written(tmp_path / "t.json", events))
    assert [(trace.rank, len(trace)) for trace in traces] == [(0, 3), (1, 3)]


@pytest.mark.parametrize(("name", "read"), [("C:\\\\Users\\x", "C:\\Users\\x"), ("a\\qb", "a\\qb")])
def test_paths_and_absent_values_that_break_json_are_repaired(tmp_path, name, read):
    path = tmp_path / "t.json"
    path.write_text(TEXT.replace('"gemm"', f'"{name}"').replace('"stream": 7', '"stream": 7, "blocks": N/A'))
    (trace,) = read_kineto(path)
    assert read in trace.names
    assert len(trace) == len(EVENTS)


def refusal(path, code):
    with pytest.raises(PerfgateError) as error:
        read_kineto(path)
    assert error.value.code.name == code
    assert str(path) in error.value.place
    return error.value.text()


def test_every_trace_of_the_corpus_is_read(corpus):
    files = sorted((corpus / "torch").rglob("*.json.gz"))
    assert len(files) >= 25
    for file in files:
        for trace in read_kineto(file):
            assert len(trace)
            assert (trace.end >= trace.start).all()


def test_a_truncated_gzip_says_so(tmp_path):
    path = written(tmp_path / "t.json.gz", EVENTS * 50)
    path.write_bytes(path.read_bytes()[:-40])
    assert "ends in the middle" in refusal(path, "trace-truncated")


def test_a_damaged_gzip_says_so(tmp_path):
    path = written(tmp_path / "t.json.gz", EVENTS * 500)
    data = bytearray(path.read_bytes())
    data[60:90] = b"\xff" * 30
    path.write_bytes(data)
    refusal(path, "trace-unreadable")


@pytest.mark.parametrize("cut", [10, 60, 200, 400])
def test_a_truncated_text_says_so(tmp_path, cut):
    path = written(tmp_path / "t.json", EVENTS)
    path.write_bytes(path.read_bytes()[:-cut])
    refusal(path, "trace-truncated")


@pytest.mark.parametrize("end", [b'"ts": 12.', b'"ts": -', b'"dur": 1e', b'"ts": 12.5, "na'])
def test_a_text_that_ends_inside_a_number_is_truncated_too(tmp_path, end):
    path = written(tmp_path / "t.json", EVENTS)
    text = path.read_bytes()
    path.write_bytes(text[: text.rindex(b"{")] + b"{" + end)
    refusal(path, "trace-truncated")


def test_two_documents_in_one_file_are_refused_with_the_place(tmp_path):
    path = written(tmp_path / "t.json", EVENTS)
    first = path.read_bytes()
    path.write_bytes(first + b"\n" + first)
    assert f"byte {len(first) + 1:,}" in refusal(path, "trace-two-documents")


def test_broken_json_names_the_byte(tmp_path):
    path = written(tmp_path / "t.json", EVENTS)
    text = path.read_bytes()
    at = text.index(b'"gemm"')
    path.write_bytes(text[:at] + b"gemm!!" + text[at + 6 :])
    assert f"byte {at:,}" in refusal(path, "trace-malformed")


def test_nan_control_characters_and_bad_utf8_are_repaired(tmp_path):
    path = written(tmp_path / "t.json", EVENTS)
    text = path.read_bytes()
    text = text.replace(b'"stream": 7', b'"stream": 7, "blocks per SM": NaN, "x": -Infinity')
    text = text.replace(b'"gemm"', b'"ge\x01m\xffm"')
    path.write_bytes(text)
    (trace,) = read_kineto(path)
    assert "ge�m�m" in trace.names


def test_a_time_that_is_no_number_is_counted_and_left_out(tmp_path):
    path = written(tmp_path / "t.json", EVENTS)
    path.write_bytes(path.read_bytes().replace(b'"dur": 20', b'"dur": NaN'))
    (trace,) = read_kineto(path)
    assert len(trace) == 2
    assert trace.dropped["without a time"] == 1


def test_integers_past_two_to_the_63_are_kept_apart(tmp_path):
    big = 10159970886766084423
    events = [
        launch(0, big),
        kernel("a", 1, 1, correlation=big),
        launch(2, big + 1),
        kernel("b", 3, 1, correlation=big + 1),
    ]
    (trace,) = read_kineto(written(tmp_path / "t.json", events))
    assert trace.correlation[0] == trace.correlation[1] != trace.correlation[2] == trace.correlation[3]


def test_integers_past_two_to_the_64_lose_no_event(tmp_path):
    events = [launch(0, 2**70), kernel("a", 1, 1, correlation=3)]
    (trace,) = read_kineto(written(tmp_path / "t.json", events))
    assert len(trace) == 2


def test_text_process_ids_and_quoted_sizes(tmp_path):
    events = [host("op", 0, 5, pid="Spans", tid="main"), kernel("Memcpy", 1, 2, cat="gpu_memcpy", bytes="4096")]
    (trace,) = read_kineto(written(tmp_path / "t.json", events))
    assert trace.threads[0].process == "Spans"
    assert trace.size.tolist() == [-1, 4096]


def test_one_odd_field_does_not_lose_the_event(tmp_path):
    events = [host("op", 0, 5, **{"External id": {"odd": 1}}), *EVENTS]
    (trace,) = read_kineto(written(tmp_path / "t.json", events))
    assert len(trace) == 4


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"", "trace-empty"),
        (b"  \n", "trace-empty"),
        (b'{"traceEvents": []}', "trace-empty"),
        (b'{"traceEvents": [{"ph": "M", "name": "process_name", "args": {"name": "x"}}]}', "trace-empty"),
        (b'{"other": 1}', "trace-not-a-trace"),
        (b"hello", "trace-malformed"),
        (b"[]", "trace-empty"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path, text, code):
    path = tmp_path / "t.json"
    path.write_bytes(text)
    refusal(path, code)


def test_a_missing_file_is_refused(tmp_path):
    refusal(tmp_path / "none.json", "file-missing")
    assert "name the file itself" in refusal(tmp_path, "file-kind")


def test_a_bare_list_of_events_is_a_trace(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(EVENTS))
    (trace,) = read_kineto(path)
    assert len(trace) == 3


def test_fused_ranks_come_apart(tmp_path):
    events = [kernel(f"k{r}", 10 * n, 5, rank=r, device=r) for n, r in enumerate((0, 1, 1, 3))] + [host("nobody", 0, 1)]
    traces = read_kineto(written(tmp_path / "t.json", events))
    assert [(t.rank, len(t)) for t in traces] == [(0, 1), (1, 2), (3, 1)]
    assert traces[0].dropped["without a rank in a file of several"] == 1


def test_the_rank_comes_from_the_header_else_from_the_name(tmp_path):
    assert read_kineto(written(tmp_path / "a.json", EVENTS, distributedInfo={"rank": 3, "world_size": 8}))[0].rank == 3
    assert read_kineto(written(tmp_path / "trace_rank5.json", EVENTS))[0].rank == 5
    assert read_kineto(written(tmp_path / "trace.json", EVENTS))[0].rank is None


def test_what_follows_a_packed_trace_is_told_from_padding(tmp_path):
    path = written(tmp_path / "t.json.gz", EVENTS)
    packed = path.read_bytes()
    path.write_bytes(packed + b"\0" * 600_000)
    assert len(read_kineto(path)[0]) == 3
    path.write_bytes(packed + b"\0" * 7 + b"rubbish")
    assert f"ends at byte {len(packed) + 7:,} of the file" in refusal(path, "trace-trailing")
    path.write_bytes(packed[:40] + gzip.compress(b"x"))
    refusal(path, "trace-unreadable")
    text = gzip.decompress(packed)
    path.write_bytes(gzip.compress(text[:100]) + gzip.compress(text[100:]))
    assert len(read_kineto(path)[0]) == 3


def test_a_comma_before_an_end_is_repaired_and_is_no_second_document(tmp_path):
    path = written(tmp_path / "t.json", [*EVENTS, host("a,]}b", 40, 1)])
    path.write_text(path.read_text().replace("}]", "},\n]").replace('"correlation": 1}', '"correlation": 1,}'))
    (trace,) = read_kineto(path)
    assert len(trace) == 4
    assert "a,]}b" in trace.names


def test_an_empty_file_inside_a_gzip_is_called_that(tmp_path):
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(b""))
    assert looks_like_kineto(path, path.read_bytes())
    assert "what is packed in it is empty" in refusal(path, "trace-empty")


def test_times_are_exact_nanoseconds_relative_to_the_smallest(tmp_path):
    events = [kernel("a", 1414456661827.962, 2.272), kernel("b", 1414456661601.577, 0.001)]
    (trace,) = read_kineto(written(tmp_path / "t.json", events))
    assert trace.start.tolist() == [226_385, 0]
    assert (trace.end - trace.start).tolist() == [2272, 1]


@pytest.mark.parametrize("cat", ["hip_runtime", "cuda_driver", "cuda_runtime", "xpu_runtime"])
def test_launches_of_every_vendor(tmp_path, cat):
    (trace,) = read_kineto(written(tmp_path / "t.json", [host("launch", 0, 1, cat=cat, correlation=1)]))
    assert trace.category.tolist() == [Category.RUNTIME]


def test_a_trace_is_told_by_its_content(tmp_path):
    path = written(tmp_path / "t.json.gz", EVENTS)
    assert looks_like_kineto(path, path.read_bytes()[:64])
    plain = json.dumps(document(EVENTS)).encode()
    assert looks_like_kineto(tmp_path / "x", plain[:512])
    assert not looks_like_kineto(tmp_path / "x", b"SQLite format 3\0")
    assert not looks_like_kineto(tmp_path / "x", b'{"benchmarks": []}')
    other = tmp_path / "o.gz"
    other.write_bytes(gzip.compress(b"hello"))
    assert not looks_like_kineto(other, other.read_bytes())


def test_reading_keeps_a_bounded_number_of_bytes_an_event(tmp_path):
    (trace,) = read_kineto(written(tmp_path / "t.json", [kernel("k", n, 1) for n in range(2000)]))
    size = sum(c.nbytes for name in trace.__slots__ if isinstance(c := getattr(trace, name), np.ndarray))
    assert size / len(trace) < 90


def test_two_processes_read_what_one_reads(tmp_path, monkeypatch):
    events = []
    for n in range(300):
        events += [
            host(f"op{n % 7}", 20 * n, 9, **{"Input Dims": [[n % 5]], "Concrete Inputs": []}),
            launch(20 * n + 1, n + 1),
        ]
        events.append(kernel(f"k{n % 11}", 20 * n + 4, 9, correlation=n + 1, stream=n % 3))
        if n > 200:
            events.append(
                kernel(
                    "ncclDevKernel", 20 * n, 1, **{"Collective name": "allreduce", "In msg nelems": n, "dtype": "Float"}
                )
            )
    lines = ",\n  ".join(json.dumps(event) for event in events)
    path = tmp_path / "t.json"
    path.write_text('{\n  "traceEvents": [\n  ' + lines + '\n  ],\n  "distributedInfo": {"rank": 4}\n}')
    (whole,) = read_kineto(path)
    monkeypatch.setattr(kineto_halves, "LARGE", 1)
    monkeypatch.setattr(kineto_halves.os, "cpu_count", lambda: 2)
    assert kineto_halves.middle(path)
    (both,) = read_kineto(path)
    for name in ("start", "end", "category", "correlation", "argument", "index", "size"):
        assert getattr(both, name).tolist() == getattr(whole, name).tolist()
    for name, table in (("name", "names"), ("place", "queues")):
        rows = whole.category == Category.KERNEL
        ours = [getattr(both, table)[n] for n in getattr(both, name)[rows]]
        assert ours == [getattr(whole, table)[n] for n in getattr(whole, name)[rows]]
    assert (both.rank, dict(both.messages), both.events) == (4, dict(whole.messages), whole.events)


def test_a_broken_second_half_gives_the_same_error(tmp_path, monkeypatch):
    lines = ",\n  ".join(json.dumps(kernel("k", n, 1)) for n in range(400))
    path = tmp_path / "t.json"
    path.write_text('{\n  "traceEvents": [\n  ' + lines + ",\n  {")
    monkeypatch.setattr(kineto_halves, "LARGE", 1)
    monkeypatch.setattr(kineto_halves.os, "cpu_count", lambda: 2)
    refusal(path, "trace-truncated")


FRAMES = ("module.py(1): forward", "nn.Module: Layer_0", "<checkpoint>: recompute_fn")


@pytest.mark.parametrize(("frames", "expected"), [(False, FRAMES[1:]), (True, FRAMES)])
def test_frames_of_python_are_read_where_call_stacks_are_wanted(tmp_path, frames, expected):
    events = [*(host(name, 0, 40 - n, cat="python_function") for n, name in enumerate(FRAMES)), *EVENTS]
    (trace,) = read_kineto(written(tmp_path / "t.json", events), frames=frames)
    rows = np.flatnonzero(trace.category == Category.PYTHON)
    assert tuple(trace.names[trace.name[row]] for row in rows) == expected
    assert trace.frames == len(FRAMES) - len(expected)
    assert trace.index[-1] == len(events) - 1
    assert trace.events == len(events)


def test_nothing_but_frames_is_refused(tmp_path):
    refused(written(tmp_path / "t.json", [host("run.py(1): main", 0, 9, cat="python_function")]), "trace-empty")


def test_a_stack_has_the_frames_that_the_report_goes_without(tmp_path, kineto):
    events = [host("run.py(1): main", 0, 90, cat="python_function"), *EVENTS]
    path = written(tmp_path / "t.json", events)
    for op in ("aten::mm", "1"):
        analysis = kineto.inspect([path], {"op": op})
        text = render_text(analysis.views["stack"]())
        assert "aten::mm, event 1" in text
        assert "run.py(1): main" in text
    assert "run.py(1): main" in render_text(analysis.views["rough"]())
