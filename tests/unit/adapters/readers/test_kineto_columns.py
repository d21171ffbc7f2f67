"""Events that are not as PyTorch writes them: refused, or said beside every figure; none is missed in silence."""

from __future__ import annotations

import gzip
import json

import msgspec
import pytest

from pytest_perfgate.adapters.readers import kineto_columns
from pytest_perfgate.adapters.readers.kineto_text import Arguments
from pytest_perfgate.core.render.text import render_text
from pytest_perfgate.model.errors import PerfgateError
from tests.kineto_file import document, host, kernel, launch, written

KERNEL = kernel("gemm", 10, 20, correlation=1)
LAUNCHED = [host("aten::mm", 0, 9), launch(1, 1)]
KNOWN = ("Trace", "overhead", "cuda_sync", "cuda_event", "hardware_counters", "xpu_sync", "xpu_scope_profiler")
"""What a profiler writes that is no work, as PyTorch 2.15 names it."""
TEXT = json.dumps(document([*LAUNCHED, KERNEL])).encode()


def refused(kineto, path):
    with pytest.raises(PerfgateError) as error:
        kineto.inspect([path], {})
    return error.value


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({**KERNEL, "ph": "B"}, "1 of kernel (phase B)"),
        ({**KERNEL, "ph": "i"}, "1 of kernel (phase i)"),
        ({**KERNEL, "ph": "b"}, "1 of kernel (phase b)"),
        ({name: part for name, part in KERNEL.items() if name != "ph"}, "1 of kernel (phase missing)"),
        ({**host("aten::add", 20, 1), "ph": "E"}, "1 of cpu_op (phase E)"),
    ],
)
def test_work_that_is_not_one_event_is_no_gap(kineto, tmp_path, event, message):
    path = written(tmp_path / "t.json", [*LAUNCHED, kernel("other", 50, 5, correlation=1), event])
    error = refused(kineto, path)
    assert (error.code.name, message in error.what) == ("trace-foreign", True), error.text()


def test_unknown_categories_stand_beside_every_figure(kineto, tmp_path):
    strange = [{**kernel("nms", 40, 5), "cat": cat} for cat in ("npu_events", "npu_events", "")]
    analysis = kineto.inspect([written(tmp_path / "t.json", [*LAUNCHED, KERNEL, *strange])], {})
    note = "without the events of unknown categories: npu_events (2), no category (1)"
    assert analysis.window == f"whole trace; {note}"
    assert analysis.findings[0].trigger == "unknown=3"
    assert note in render_text(analysis.views["timeline"]())


def test_a_device_of_an_unknown_category_makes_no_program_of_the_host(kineto, tmp_path):
    events = [host("aten::mm", 0, 9), {**kernel("gemm", 10, 20), "cat": "hpu_op"}]
    metrics = kineto.inspect([written(tmp_path / "t.json", events)], {}).metrics
    assert not metrics.find("idle")
    assert "it may be in the events of unknown categories: hpu_op (1)" in metrics.missing("idle").why


def test_what_the_profiler_says_of_itself_is_not_missed(kineto, tmp_path):
    more = [host("span", 0, 99, cat=cat) for cat in KNOWN]
    assert kineto.inspect([written(tmp_path / "t.json", [*LAUNCHED, KERNEL, *more])], {}).window == "whole trace"


@pytest.mark.parametrize("name", [None, 17, ["a"], "", "missing"])
def test_a_kernel_without_a_name_counts(kineto, tmp_path, name):
    nameless = {**KERNEL, "name": name, "ts": 50}
    if name == "missing":
        del nameless["name"]
    metrics = kineto.inspect([written(tmp_path / "t.json", [*LAUNCHED, KERNEL, nameless])], {}).metrics
    assert metrics.find("kernel_count")[0].value == 2
    assert metrics.find("kernel_time", (("kernel", "(an event without a name)"),))[0].value == 20_000


def test_a_name_moves_no_cursor(kineto, tmp_path):
    events = [*LAUNCHED, kernel("gemm\x1b[31m\nPASSED", 10, 20, correlation=1)]
    analysis = kineto.inspect([written(tmp_path / "t.json", events)], {})
    assert analysis.metrics.find("kernel_time", (("kernel", "gemm\ufffd[[]31m\ufffdPASSED"),))
    assert PerfgateError("trace-empty", "a\x1b[2Jb\nc").text().startswith("a\ufffd[2Jb  [trace-empty]\nc\n")


@pytest.mark.parametrize("spent", ["12 us", "NaN", "inf", None, -5])
def test_an_event_with_one_odd_field_keeps_the_others(kineto, tmp_path, spent):
    odd = {**KERNEL, "ts": 50, "dur": spent, "pid": {}}
    analysis = kineto.inspect([written(tmp_path / "t.json", [*LAUNCHED, KERNEL, odd])], {})
    assert "1 left out" in analysis.window
    assert "1 GPU duration cannot be read" in {finding.title for finding in analysis.findings}


BROKEN = {
    "junk behind": (TEXT + b"\n-- end", "trace-trailing", f"what follows at byte {len(TEXT) + 1:,}"),
    "a brace behind": (TEXT + b"}", "trace-trailing", f"what follows at byte {len(TEXT):,}"),
    "the end of a file of DOS behind": (TEXT + b"\r\n\x1a", "trace-trailing", "is no JSON"),
    "zeros behind": (TEXT + b"\0" * 9, "trace-trailing", "is no JSON"),
    "another": (TEXT + TEXT, "trace-two-documents", f"another document starts at byte {len(TEXT):,}"),
    "another, packed": (gzip.compress(TEXT) * 2, "trace-two-documents", f"starts at byte {len(TEXT):,}"),
    "lists": (json.dumps([KERNEL]).encode() * 2, "trace-two-documents", "another document starts"),
    "an event a line": (b"\n".join(json.dumps(e).encode() for e in [KERNEL] * 3), "trace-not-a-trace", "event a line"),
    "two lists": (TEXT[:-1] + b', "traceEvents": []}', "trace-malformed", "appears twice"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_stands_behind_a_trace_is_called_what_it_is(kineto, tmp_path, name):
    data, code, message = BROKEN[name]
    path = tmp_path / "t.json"
    path.write_bytes(data)
    error = refused(kineto, path)
    assert (error.code.name, message in error.what) == (code, True), error.text()


def test_a_checksum_tells_no_place(kineto, tmp_path):
    data = bytearray(gzip.compress(TEXT))
    path = tmp_path / "t.json.gz"
    for at, message in ((-6, "checksum does not fit"), (-2, "checksum does not fit"), (30, "between its bytes 0 and ")):
        bad = data.copy()
        bad[at] ^= 255
        path.write_bytes(bad)
        assert message in refused(kineto, path).what


def test_a_wide_text_in_a_gzip_is_unpacked_first(kineto, tmp_path):
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(TEXT.decode().encode("utf-16")))
    assert refused(kineto, path).fix.startswith("convert it: gzip -dc t.json.gz | iconv -f UTF-16 -t UTF-8 > ")


@pytest.mark.parametrize("count", [-1, 1e308, 1 << 64, True, "many"])
def test_a_message_has_no_size_if_its_count_cannot_be_one(count) -> None:
    fields = {"Collective name": "allreduce", "In msg nelems": count, "Out msg nelems": 10, "dtype": "Float"}
    recorded = kineto_columns.message(msgspec.convert(fields, Arguments))
    assert (recorded.sent, recorded.received) == (None, 40)


WIDTHS = {
    "Float8_e4m3fn": 1, "Float4_e2m1fn_x2": 1, "Byte": 1, "c10::BFloat16": 2, "torch.float16": 2, "Int": 4, "UInt32": 4,
    "int64": 8, "Double": 8, "ComplexFloat": 8, "ComplexDouble": 16, "Undefined": None, "": None,
}  # fmt: skip


@pytest.mark.parametrize("dtype", WIDTHS)
def test_a_message_is_as_large_as_its_dtype(dtype: str) -> None:
    fields = {"Collective name": "allreduce", "In msg nelems": 10, "dtype": dtype}
    width = WIDTHS[dtype]
    assert kineto_columns.message(msgspec.convert(fields, Arguments)).sent == (width and 10 * width)
