"""However a writer indents and orders its events, they are read piece by piece and come out the same."""

from __future__ import annotations

import gzip
import json

import pytest

from pytest_perfgate.adapters.readers import kineto, kineto_text
from pytest_perfgate.adapters.readers import kineto as kineto_halves
from pytest_perfgate.adapters.readers.kineto import read_kineto
from pytest_perfgate.model.errors import PerfgateError

from .generated import document, host, kernel, launch

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
