"""The parts of the check on the power limit and on checks of outputs, on a simulated card and torch's processor."""

from __future__ import annotations

import contextlib
import gzip
import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ci.gpu import recordings, states, truth
from tests.bench.simulated import SimulatedCheck


def products(check: SimulatedCheck, slower: float, limited: float | None = 0.4) -> list[dict]:
    """The part on a card whose product takes so much longer where it is deeper, at the limit for a part of the time."""
    plain = check.measured
    reported = {} if limited is None else {"at the power limit": limited}
    check.measured = lambda *call: {**plain(*call), **reported}
    check.torch.randn = lambda rows, columns, device: SimulatedMatrix(rows, columns)
    check.torch.mm = lambda a, b: check.runtime.kernel(190_000 * (1 + slower * (a.columns > 4096)))
    return list(states.power(check))


class SimulatedMatrix:
    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns

    def to(self, kind) -> SimulatedMatrix:
        return self


@pytest.mark.parametrize(("slower", "expected"), [(0.05, True), (0.01, False)])
def test_five_percent_of_a_product_has_to_be_seen_in_every_pair(slower: float, expected: bool) -> None:
    more, same = products(SimulatedCheck(), slower)
    assert (more["what"], more["bar"], more["held"]) == ("+5 %", "power", expected)
    assert more["median"] == pytest.approx(slower, rel=0.1)
    assert (same["what"], same["held"], same["pairs"]) == ("+0 %", True, states.PAIRS)
    assert same["warm-up s"] > 0
    assert more["at the power limit"] == 0.4


@pytest.mark.parametrize(("limited", "refused"), [(0.0, "below the limit"), (None, "not reported")])
def test_a_product_below_the_power_limit_shows_nothing_about_it(limited: float | None, refused: str) -> None:
    for row in products(SimulatedCheck(), 0.05, limited):
        assert (row["refused"], "bar" in row) == (refused, False)


def test_a_product_that_is_refused_is_said() -> None:
    check = SimulatedCheck()
    check.measured = lambda what, call, timer: {"what": what, "refused": "device-lost", "why": "gone"}
    assert [row["refused"] for row in states.power(check)] == ["device-lost"] * 2


def test_pairs_for_which_there_was_time_are_shown() -> None:
    check = SimulatedCheck()
    plain, calls = check.measured, iter(range(100))

    def measured(name, call, timer):
        return plain(name, call, timer) if next(calls) < 30 else {"what": name, "refused": "no time", "why": "over"}

    check.measured = measured
    check.torch.mm = lambda a, b: check.runtime.kernel(190_000)
    row = next(states.power(check))
    assert (row["refused"], row["pairs"], row["shifts"]) == ("no time", 2, "+0.00 %, +0.00 %")
    assert "bar" not in row


@pytest.mark.torch
def test_each_step_of_a_check_has_its_time() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    check = SimulatedCheck()
    check.runtime_module, check.timers["auto"] = lambda: torch, SleepingTimer
    rows = list(states.checks(check, numbers=1 << 10, device="cpu"))
    first, steps, (total, detection, share) = rows[0], rows[1:-3], rows[-3:]
    assert first["ms"] > 0
    assert [row["what"] for row in steps] == ["saved", "fingerprint", "unchanged", "fill", "holding", "restore"]
    assert total["bar"] == "checks"
    assert total["ms"] == pytest.approx(sum(row["ms"] for row in steps))
    assert total["held"] is (total["ms"] <= states.LEAST_MS)
    assert detection["refused"] == "not seen", "the processor copies nothing to itself"
    assert (share["bar"], share["problems"]) == ("share", [])
    assert share["sampling ms"] >= 50
    assert share["held"] is (share["ms"] <= 0.05 * share["sampling ms"])


class SleepingTimer:
    """Calls once, and takes its time."""

    @staticmethod
    def measure(call, plan, runtime) -> None:
        call()
        time.sleep(0.05)


@pytest.mark.parametrize(("size", "expected"), [(8, True), (2_000_000, False)])
def test_what_is_copied_to_the_host_is_added_up(size: int, expected: bool) -> None:
    copy = {"cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pageable)", "args": {"bytes": size}}
    inside = {"cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)", "args": {"bytes": 1 << 30}}
    row = states.to_host([copy, inside, copy, {"cat": "kernel", "name": "add"}, {"ph": "M"}])
    assert (row["bar"], row["copies"], row["bytes"], row["held"]) == ("brought", 2, 2 * size, expected)


def test_what_holds_no_bytes_is_refused() -> None:
    (row,) = states.checks(SimulatedCheck())
    assert row["refused"] == "no array"


class OnTheProcessor:
    """Torch itself, whose device is the processor."""

    def __init__(self, torch) -> None:
        self._torch = torch
        streams = {"Stream": object, "stream": lambda stream: contextlib.nullcontext(), "synchronize": lambda: None}
        self.cuda = SimpleNamespace(**streams)

    def __getattr__(self, name: str):
        return getattr(self._torch, name)

    def randn(self, *sizes, device):
        return self._torch.randn(*(min(size, 64) for size in sizes))

    def zeros(self, *sizes, device):
        return self._torch.zeros(*sizes)


@pytest.fixture
def processor() -> SimulatedCheck:
    check = SimulatedCheck()
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    check.runtime_module = lambda: OnTheProcessor(torch)
    return check


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:CUDA is not available")
def test_a_recording_is_a_trace_of_three_steps(processor: SimulatedCheck, tmp_path: Path) -> None:
    (path,) = recordings.trace(processor, tmp_path)
    names = {event.get("name") for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]}
    assert {"step 0", "step 1", "step 2"} <= names
    assert [one.name for one in tmp_path.iterdir()] == ["overlap.json.gz"]
    last = list(recordings.recordings(processor, tmp_path))[-1]
    assert last["what"] == "cubins"
    assert last["refused"], "this machine compiles no kernel for a card"


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:CUDA is not available")
def test_a_call_that_leaves_no_records_loses_its_own_figure(processor: SimulatedCheck, monkeypatch, capsys) -> None:
    monkeypatch.setattr(truth, "WARM_S", 0.0)
    truth.run_truth(processor)
    answer = json.loads(capsys.readouterr().out)
    assert answer["ns"] == {}
    assert "copy 256 MB: ValueError: 0 records of 40 calls" in answer["why"]
