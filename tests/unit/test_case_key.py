from __future__ import annotations

import pytest

from pytest_perfgate.model.plan import parse_case_key


@pytest.mark.parametrize(
    ("text", "node", "name"),
    [
        ("tests/test_a.py::test_x", "tests/test_a.py::test_x", ""),
        ("tests/test_a.py::test_x#bwd", "tests/test_a.py::test_x", "bwd"),
        ("tests/test_a.py::TestK::test_x[a#b]", "tests/test_a.py::TestK::test_x[a#b]", ""),
        ("tests/test_a.py::test_x[a/b c#d]#fwd", "tests/test_a.py::test_x[a/b c#d]", "fwd"),
        ("tests/test_ü.py::test_x[µ]", "tests/test_ü.py::test_x[µ]", ""),
    ],
)
def test_keys_survive_being_written(text: str, node: str, name: str) -> None:
    key = parse_case_key(text)
    assert (key.nodeid, key.name) == (node, name)
    assert str(key) == text
    assert key.path == text.split("::", maxsplit=1)[0]
    assert f"{key.path}::{key.test}" == text
