"""What a person is told after a scrub."""

from __future__ import annotations

import pytest

from pytest_perfgate.app.profile import sentence
from pytest_perfgate.model.profiles import Scrubbed


@pytest.mark.parametrize(
    ("tables", "strings", "told"),
    [
        ((), 0, "b: there was no table of the environment"),
        (("T_ENV",), 1, "b: without T_ENV, and without 1 text that nothing in it points to"),
        ((), 2, "b: there was no table of the environment, and without 2 texts that nothing in it points to"),
    ],
)
def test_the_sentence_names_what_the_copy_lacks(tables, strings, told) -> None:
    assert sentence(Scrubbed(path="a", out="b", tables=tables, strings=strings)) == told
