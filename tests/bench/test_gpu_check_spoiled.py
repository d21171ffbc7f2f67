"""What the GPU check makes of rows that the card spoiled, and of a part that may not lock."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from ci.gpu import parts, processes
from ci.gpu.card import spoiled
from ci.gpu.page import bars, failed, page, unshown
from pytest_perfgate.adapters.devices import clock_watch, clocks
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.metric import Problem
from tests.bench import simulated
from tests.bench.simulated import one_run


def test_rows_that_the_card_spoiled_are_neither_held_nor_missed(check, monkeypatch) -> None:
    class Watch:
        @staticmethod
        def problems():
            return (Problem(code="throttled", what="power brake"), Problem(code="work-escaped", what="elsewhere"))

        @staticmethod
        def clock_hz():
            return ()

        facts = clock_hz

        @staticmethod
        def watts():
            return None

        capped = watts

    policies = []

    class Clocks:
        @contextlib.contextmanager
        def hold(self, device, plan):
            policies.append(plan.clocks.value)
            yield Watch

    monkeypatch.setattr(parts.wired, "clocks", Clocks)
    rows = list(parts.slowdowns(check))
    assert [row["what"] for row in rows if row.get("invalid") == ["power brake"]] == ["+2 %", "+0 %"]
    rows += list(parts.agreement(check))
    assert not [row for row in rows if "held" in row]
    result = {"device": "x", "facts": {}, "why": "", "parts": {"P": rows}}
    assert bars(result)["seen"] == "invalid (2)"
    assert {"seen", "long", "short"} <= set(unshown(result))
    assert not failed(result)
    assert "invalid." in page(result)
    assert set(policies) == {"observe"}


def test_what_a_watch_finds_spoils_a_row_and_work_that_escapes_a_timer_does_not() -> None:
    sources = Path(clock_watch.__file__).read_text() + Path(clocks.__file__).read_text()
    codes = set(re.findall(r'Problem\(code="([a-z-]+)"', sources))
    assert [code for code in codes if not spoiled([Problem(code=code, what=code)])] == []
    assert spoiled([Problem(code="work-escaped", what="elsewhere")]) == []


def test_the_suite_says_what_spoiled_it_and_such_rounds_do_not_count(check, monkeypatch, capsys) -> None:
    processes.run_suite(check)
    monkeypatch.setattr(
        processes.subprocess, "run",
        lambda *arguments, **named: SimpleNamespace(returncode=0, stdout=capsys.readouterr().out),
    )  # fmt: skip
    result = processes.suite("observe")
    assert (len(result.medians), result.problems) == (processes.CASES, [])
    spoilt = iter([one_run(1.0, "power brake"), one_run(1.0)] * 3 + [one_run(1.0)] * 4)
    monkeypatch.setattr(processes, "suite", lambda clocks: next(spoilt))
    *rounds, last = processes.same(check)
    assert ["invalid" in row for row in rounds] == [True] * 3 + [False] * 2
    assert (last["bar"], last["invalid"], "held" in last) == ("same", ["power brake"] * 3, False)


def test_a_part_that_may_not_lock_says_so() -> None:
    def refused():
        yield {"what": "first"}
        raise PerfgateError("clocks-denied", "no permission")

    first, last = simulated.script().with_error(refused())
    assert (first["what"], last["refused"], last["why"]) == ("first", "clocks-denied", "no permission")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["simulated-off/test_kernels.py.yaml"], True),
        (["host-intel-2/test_kernels.py.yaml"], False),
        (["simulated-off/test_kernels.py.yaml", "host-intel-2/test_kernels.py.yaml"], False),
        ([], False),
    ],
)
def test_a_gate_that_measured_the_processor_is_no_gate_of_this_card(files, expected) -> None:
    row = processes.accepted(simulated.SimulatedCheck(), [Path(name) for name in files])
    assert (row["bar"], row["held"], row["files"]) == ("gate", expected, files)
