"""Finished rounds of two arms, kept while the disk takes them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_perfgate.model.verdict import PairedRound
from pytest_perfgate.plugin.arms import FinishedRounds
from pytest_perfgate.wiring import read_values

ROUNDS = [PairedRound(nodeid="t.py::test_a", phase="screen", number=0)]


def test_they_are_there_for_the_next_run(tmp_path: Path) -> None:
    session: Any = SimpleNamespace(resumable=False)
    said: list[str] = []
    FinishedRounds(tmp_path / "rounds" / "a.bin", session, said.append)(ROUNDS)
    assert read_values(tmp_path / "rounds" / "a.bin", PairedRound) == ROUNDS
    assert (session.resumable, said) == (True, [])


def test_a_disk_that_takes_none_is_said_once_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "rounds").write_text("a file where the folder would be")
    session: Any = SimpleNamespace(resumable=True)
    said: list[str] = []
    keep = FinishedRounds(tmp_path / "rounds" / "a.bin", session, said.append)
    keep(ROUNDS)
    keep(ROUNDS)
    assert session.resumable is False
    assert len(said) == 1
    assert said[0].startswith("finished rounds are not kept for a run that is cut short: it cannot be written")
