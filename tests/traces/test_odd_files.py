"""Files that no profiler writes and people have all the same: marks, other encodings, depth bombs, full memory."""

from __future__ import annotations

import json

import pytest

from pytest_perfgate.adapters.readers import kineto as reader
from pytest_perfgate.adapters.readers.kineto import looks_like_kineto, read_kineto
from pytest_perfgate.core.analysis.operators import work_of
from pytest_perfgate.core.analysis.operators.call import parse_call
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.wiring import built_ins

from .generated import document, host, kernel, launch, written

EVENTS = [host("aten::mm", 0, 10), launch(2, 1), kernel("gemm", 5, 20, correlation=1)]
TEXT = json.dumps(document(EVENTS))


@pytest.fixture(scope="module")
def kineto():
    return next(i for i in built_ins.BuiltIns().pytest_perfgate_inspectors() if i.name == "kineto")


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
    monkeypatch.setattr("pytest_perfgate.app.inspections.kineto_trace.survey", full)
    with pytest.raises(PerfgateError, match="the memory is full"):
        kineto.inspect([path], {})


@pytest.mark.parametrize(
    "arguments",
    [
        (b"[5, {}]", b'["float", "float"]', b"[7]", b"[]"),
        (b"[]", b'["float", "float"]', b"[]", b"[]"),
        (b'[["a", "b"], [2, 2]]', b'["float", "float"]', b"", b"null"),
        (b"[[2, 2], [2, 2]]", b"[1, null]", b"[]", b"[3]"),
        (b"[[-1, 2], [2, 1e400]]", b'["float", "float"]', b"[]", b"[]"),
        (b"[" * 5000 + b"]" * 5000, b'["float"]', b"[]", b"[]"),
    ],
)
@pytest.mark.parametrize("name", ["aten::mm", "aten::add", "aten::cat", "aten::_foreach_add_", "aten::sum"])
def test_arguments_of_any_form_have_work_or_a_reason(name, arguments):
    call = parse_call(name, arguments)
    work, why = work_of(call)
    assert (work is None) == bool(why)
    assert len(call.dims) >= len(call.types)


def test_a_trace_with_odd_arguments_has_every_view(tmp_path, kineto):
    odd = {"Input Dims": [5, ["a"], {}], "Input type": ["float", 3, None], "Input Strides": 7, "Concrete Inputs": {}}
    events = [host("aten::mm", 0, 10, **odd), launch(2, 1), kernel("gemm", 5, 20, correlation=1)]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {})
    for name, view in analysis.views.items():
        if name != "replay":
            assert render_text(view()), name
    both = [tmp_path / "t.json"]
    assert render_text(kineto.compare(both, both, {}).views["report"]())


@pytest.mark.parametrize("shape", [["s0", 512], [-1, 512], [512.5, 512], [None, 512]])
def test_a_shape_that_is_no_numbers_has_no_rate_and_no_bytes(tmp_path, kineto, shape):
    told = {"Input Dims": [shape, [512, 512]], "Input type": ["float", "float"]}
    events = [
        host("aten::add", 0, 10, **told),
        launch(2, 1),
        kernel("add_kernel", 5, 20, correlation=1),
        host("nccl:all_reduce", 20, 10, **told),
        launch(22, 2),
        kernel("ncclDevKernel_AllReduce", 30, 20, correlation=2),
    ]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {})
    assert "arguments do not fit the model" in render_text(analysis.views["roofline"]())
    assert "not collected" in render_text(analysis.views["ranks"]())
    assert not [m for m in analysis.metrics.metrics if m.name in {"tflops", "comm_bytes"}]


@pytest.mark.parametrize(("given", "rank"), [({"rank": "2", "world_size": "4"}, 2), ({"rank": True}, None), ([], None)])
def test_a_rank_may_be_text_and_is_a_number(tmp_path, given, rank):
    (trace,) = read_kineto(written(tmp_path / "t.json", EVENTS, distributedInfo=given))
    assert trace.rank == rank
    assert trace.world == (4 if rank else None)


@pytest.mark.parametrize("more", [[], [launch(2, 1)]])
def test_kernels_that_took_no_time_are_no_figures(tmp_path, kineto, more):
    events = [*more, kernel("gemm", 5, 0, correlation=1), kernel("gemm", 50, 0, correlation=1)]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {})
    assert not analysis.metrics.metrics
    assert "no GPU activity" in render_text(analysis.views["report"]())


@pytest.mark.parametrize("stamp", [1e300, -1e17])
def test_time_stamps_past_the_resolution_of_their_floats_are_refused(tmp_path, stamp):
    path = written(tmp_path / "t.json", [{**event, "ts": stamp} for event in EVENTS])
    assert "larger than any clock" in refused(path, "trace-malformed")


def test_steps_that_are_recorded_as_operators_are_steps(tmp_path, kineto):
    events = [host("ProfilerStep#3", 0, 40), launch(2, 1), kernel("gemm", 5, 20, correlation=1)]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {"step": "3"})
    assert analysis.window == "ProfilerStep#3"


def test_ranks_written_as_text_are_ranks_apart(tmp_path):
    events = [{**event, "args": {**event["args"], "rank": rank}} for rank in ("0", "1") for event in EVENTS]
    traces = read_kineto(written(tmp_path / "t.json", events))
    assert [(trace.rank, len(trace)) for trace in traces] == [(0, 3), (1, 3)]


@pytest.mark.parametrize(("name", "read"), [("C:\\\\Users\\x", "C:\\Users\\x"), ("a\\qb", "a\\qb")])
def test_paths_and_absent_values_that_break_json_are_mended(tmp_path, name, read):
    path = tmp_path / "t.json"
    path.write_text(TEXT.replace('"gemm"', f'"{name}"').replace('"stream": 7', '"stream": 7, "blocks": N/A'))
    (trace,) = read_kineto(path)
    assert read in trace.names
    assert len(trace) == len(EVENTS)


@pytest.mark.parametrize("odd", [2**70, -(2**70), 1.5, "abc", [1], {}, True, None])
@pytest.mark.parametrize("name", ["device", "stream", "rank", "correlation", "External id", "bytes", "Group size"])
def test_an_argument_of_any_form_and_size_is_taken_or_left(tmp_path, kineto, name, odd):
    events = [
        *EVENTS,
        kernel("ncclDevKernel_AllReduce", 40, 5, **{"correlation": 2, "Collective name": "x", name: odd}),
    ]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {})
    assert analysis.metrics.metrics
    assert render_text(analysis.views["ranks"]())
