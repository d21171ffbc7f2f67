"""Whose a process on a card is."""

from __future__ import annotations

import os

import pytest

from pytest_perfgate.adapters.system import processes
from pytest_perfgate.adapters.system.processes import others


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A process table: who is below whom, and who this process is."""

    def make(me: int, **parents: int) -> None:
        for name, above in parents.items():
            folder = tmp_path / name.removeprefix("p")
            folder.mkdir()
            (folder / "stat").write_text(f"{folder.name} (python) S {above} 0 0", encoding="utf-8")
        monkeypatch.setattr(processes, "PROC", tmp_path)
        monkeypatch.setattr(os, "getpid", lambda: me)

    return make


def test_a_run_below_a_shell(table) -> None:
    table(30, p1=0, p10=1, p20=10, p30=20, p31=30, p40=1)
    assert others((20, 30, 31, 10), root=20) == ((), ())
    assert others((1, 40), root=20) == ((1, 40), ())


@pytest.mark.parametrize("me", [1, 7])
def test_a_run_that_is_the_first_process_of_its_container(table, me) -> None:
    table(me, p1=0, p7=1, p8=7, p50=0)
    assert others((1, 7, 8), root=1) == ((), ())
    assert others((50,), root=1).foreign == (50,)


def test_numbers_of_elsewhere_are_told_and_not_foreign(table) -> None:
    table(7, p1=0, p7=1)
    assert others((7, 3999999, 3999998), root=7) == ((), (3999999, 3999998))
