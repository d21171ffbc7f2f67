from __future__ import annotations

import pytest

from pytest_perfgate.adapters.stores.environments import CeilingStore, parse_ceilings
from pytest_perfgate.model.device import Ceilings
from pytest_perfgate.model.errors import PerfgateError

FOUND = Ceilings(
    device="host-x", compute=(("fp32", 4.77e10),), bandwidth=3.67e9, cache_bytes=1e6, method="fastest sample on host",
    when="2026-01-02", facts=(("copy", "12 samples by host"),),
)  # fmt: skip


def test_what_was_written_is_read(tmp_path) -> None:
    store = CeilingStore(lambda device: tmp_path / device)
    assert store.read("host-x") is None
    path = store.write(FOUND)
    assert path.suffix != ".yaml"
    assert store.read("host-x") == FOUND


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"device": "x", "tflops": {"fp32": 0}}', '{"device": "x", "bandwidth_gbps": "4"}']
)
def test_what_does_not_read_is_an_error_with_its_place(text: str) -> None:
    with pytest.raises(PerfgateError, match="ceilings-unreadable") as caught:
        parse_ceilings(text, place="ceilings.json")
    assert str(caught.value).startswith("ceilings.json")
