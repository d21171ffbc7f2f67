"""A part of a trace that something wrote over hides events: no such trace has figures."""

from __future__ import annotations

import gzip
import json
import random

import pytest

from pytest_perfgate.adapters.readers import kineto_text
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.wiring import built_ins

from .generated import document, host, kernel, launch

EVENTS = [
    event
    for n in range(60)
    for event in (
        host(f"aten::mm {n}", 100 * n, 9, note="a text that is skipped"),
        launch(100 * n + 1, n + 1),
        kernel(f"gemm {n}", 100 * n + 10, 20, correlation=n + 1),
    )
]
TEXT = json.dumps(document(EVENTS)).encode()


@pytest.fixture(scope="module")
def kineto():
    return next(one for one in built_ins.BuiltIns().pytest_perfgate_inspectors() if one.name == "kineto")


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


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "trace"])
@pytest.mark.parametrize("size", [5_000, 3_000_000])
def test_a_trace_is_told_however_long_its_metadata_is(kineto, tmp_path, name, size) -> None:
    whole = {"distributedInfo": {"groups": "x" * size}, **document(EVENTS)}
    data = json.dumps(whole).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert kineto.recognises(path, path.read_bytes()[:4096])
    assert kineto.inspect([path], {}).metrics.find("kernel_count")[0].value == 60


def test_other_json_is_no_trace_however_long_it_is(kineto, tmp_path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"rows": ["x" * 50] * 5_000}))
    assert not kineto.recognises(path, path.read_bytes()[:4096])
