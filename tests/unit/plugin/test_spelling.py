"""Half a character in a name: pytest leaves it in ids that it was told not to escape."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.project import Config
from pytest_perfgate.plugin.collect import Collector, insist_on_whole

OPTIONS = SimpleNamespace(
    perfgate_limit=[], perfgate_clocks="", perfgate_rounds=None, perfgate_capture=[], perfgate_against=None,
    perfgate_device="",
)  # fmt: skip


def collected(nodeid: str) -> Any:
    item: Any = SimpleNamespace(nodeid=nodeid, location=("test_it.py", 6, ""), iter_markers=lambda _name: iter(()))
    return Collector(Config(), OPTIONS, by_name()).case(item)


def test_an_id_that_no_file_can_hold_is_the_fault_of_its_test() -> None:
    assert collected("test_it.py::test_a[\U0001f600-ä/ ]").path == "test_it.py"
    for half in ("\ud83d", "\udcff"):
        with pytest.raises(PerfgateError) as refused:
            collected(f"test_it.py::test_a[a{half}b]")
        said = refused.value.text()
        assert said.encode(), "what is said of it can be written"
        assert f"holds half a character, {half!a}" in said
        assert "test_it.py:7" in said
        assert "pytest.param(..., id=" in said


def test_a_whole_text_is_handed_back() -> None:
    assert insist_on_whole("größe", "name=", "here", code="call-wrong", mend="") == "größe"
