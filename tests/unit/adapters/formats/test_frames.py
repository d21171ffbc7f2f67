from __future__ import annotations

from pathlib import Path

import pytest

from pytest_perfgate.adapters.formats.files import COLUMNS, frames, run_frame
from pytest_perfgate.adapters.stores.records import render_record
from pytest_perfgate.core.render.report import run_document, verdict_table
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Analysis, Document, MetricSet
from pytest_perfgate.model.plan import Outcome
from tests.reports import case, run

pytest.importorskip("pandas")
REPORT = run(case("test_a", 1.2e6, 1e6, Outcome.REGRESSED), case("test_b", 1e6))


def test_one_row_a_verdict(tmp_path: Path) -> None:
    import pytest_perfgate

    (tmp_path / "r.json").write_bytes(render_record(REPORT))
    for source in (REPORT, tmp_path / "r.json", str(tmp_path / "r.json")):
        table = pytest_perfgate.frame(source)
        assert list(table.columns) == list(COLUMNS)
        assert list(table["outcome"]) == ["regressed", "passed"]
        assert table["time_ns"].sum() == 2.2e6


def test_nothing_is_an_empty_table() -> None:
    assert list(run_frame(run(), lambda _: run()).columns) == list(COLUMNS)


def test_tables_of_a_document() -> None:
    document = Document(title="x", blocks=(verdict_table(REPORT.cases), *run_document(run()).blocks[:1]))
    (table,) = frames(document).values()
    assert len(table) == 2


def test_a_view_that_is_not_there_is_an_error_with_those_that_are() -> None:
    analysis = Analysis(
        kind="toy", subject="x", metrics=MetricSet(), views={"table": lambda: Document(title="x", blocks=())}
    )
    with pytest.raises(PerfgateError, match="no view 'nope'") as error:
        frames(analysis, "nope")
    assert "one of: table" in error.value.text()
