"""A history that cannot be read costs no measured time."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_perfgate.adapters.stores.history import SqliteHistory
from pytest_perfgate.app.accepted import Past
from pytest_perfgate.app.conclude import Ending, suite_notes
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import Sitting
from pytest_perfgate.model.plan import CaseKey, Mode, Outcome
from tests.unit.app.test_gate import KEY, Lines, accepted, captured, case, court, measured

ENDING = Ending(mode=Mode.FULL, started="2026-11-21T07:00:00", seconds=1.0, complete=True, filtered=False, root="/r")


def test_a_damaged_one_is_found_before_anything_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "history.db"
    bench = court(Lines(None), SqliteHistory(file), baselines=None)  # type: ignore[arg-type]
    bench.read_baselines([case()])
    file.write_text("garbage")
    with pytest.raises(PerfgateError, match="history-unreadable"):
        bench.read_baselines([case()])
    Past(None).probe()


def broken(key: CaseKey, device: str, last: int = 0) -> list[Sitting]:
    raise PerfgateError("history-unreadable", "database disk image is malformed", place="history.db")


def test_one_that_breaks_later_is_left_out_and_the_run_says_so() -> None:
    line = accepted(1e6)
    bench = court(Lines(line, line), SimpleNamespace(read=broken))  # type: ignore[arg-type]
    (report,) = bench.judge_result(captured(measured(1e6)))
    assert report.verdicts[0].outcome is Outcome.PASSED
    bench.tools.baselines.read_all = lambda device: {}  # type: ignore[union-attr]
    (note,) = [n for n in suite_notes(bench, {KEY.nodeid: case()}, [report], ENDING) if n.kind == "history"]
    assert "judged without the history: history.db: database disk image is malformed" in note.text
