"""The parts of the GPU check on a simulated card: their arithmetic and their verdicts."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ci.gpu import accumulated, parts, processes, recordings, states, truth
from ci.gpu.page import page
from pytest_perfgate.adapters.runtimes.cuda import CupyRuntime
from pytest_perfgate.model.device import Availability
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.measurement import SAMPLING
from tests.bench.simulated import FakeRecorder, SimulatedCheck, one_run
from tests.waits import ended, patient

ROOT = Path(__file__).resolve().parents[2]


# The check itself, on a simulated card: its arithmetic and its verdicts.


@pytest.fixture
def profiled(check, monkeypatch) -> None:
    """What a profiler reads of the simulated card."""
    monkeypatch.setattr(parts, "truths", lambda clocks: ({"copy 256 MB": 100_000.0}, ""))


def test_timers_are_held_against_kernel_records(check) -> None:
    rows = list(parts.agreement(check))
    assert (rows[0]["proved"], rows[1]["why"]) == (True, "no profiler here")
    (auto,) = [row for row in rows if row["what"] == "copy 256 MB" and row.get("timer") == "auto"]
    assert (auto["by"], auto["off"], "bar" in auto) == ("cupti", 0.0, False), "CUPTI against itself shows nothing"
    short = [row for row in rows if row["what"] == "short kernel"]
    assert {row["timer"]: row.get("refused") for row in short}["events"] == "timer-too-coarse"
    assert (short[-1]["best"], short[-1]["bar"], short[-1]["held"]) == ("graph", "short", True)


def test_the_records_of_a_profiler_are_the_truth_where_there_are_any(check, monkeypatch) -> None:
    assert not parts.shows_long({"timer": "auto", "by": "cupti"}, 100_000.0, named=False)
    assert parts.shows_long({"timer": "auto", "by": "events"}, 100_000.0, named=False)
    monkeypatch.setattr(parts, "truths", lambda clocks: ({"copy 256 MB": 102_000.0, "short kernel": 2_000.0}, ""))
    rows = list(parts.agreement(check))
    (auto,) = [row for row in rows if row["what"] == "copy 256 MB" and row.get("bar") == "long"]
    assert auto["held"] is False
    (short,) = [row for row in rows if row["what"] == "short kernel" and row.get("bar") == "short"]
    assert short["timer"] == "torch's profiler"
    assert short["held"] is True


def test_three_processes_of_the_profiler_show_how_far_off_one_may_be(check, monkeypatch) -> None:
    """The copy takes 100 us on the simulated card, 2 % off the middle of the profiler's processes."""
    for figures, expected in (([101_900.0, 102_000.0, 102_100.0], False), ([102_000.0, 103_000.0, 100_000.0], True)):
        remaining = iter(figures)
        monkeypatch.setattr(parts, "truths", lambda clocks, remaining=remaining: ({"copy 256 MB": next(remaining)}, ""))
        rows = [row for row in parts.agreement(check) if row["what"] == "copy 256 MB"]
        (auto,) = [row for row in rows if row.get("bar") == "long"]
        (apart,) = [row["its processes apart"] for row in rows if "its processes apart" in row]
        assert (auto["held"], apart) == (expected, max(figures) / min(figures) - 1)


def test_a_profiler_that_hangs_once_is_not_waited_for_again(check, monkeypatch) -> None:
    answers = [({}, f"{truth.HUNG} within 80 s")]
    monkeypatch.setattr(parts, "truths", lambda clocks: answers.pop())
    rows = list(parts.agreement(check))
    assert rows[1]["why"].startswith(truth.HUNG)
    assert {row["timer"] for row in rows if "ns" in row} >= {"cupti", "graph"}, "timers are still compared with CUPTI"


def test_without_a_proof_kernel_records_are_left_out(check, monkeypatch) -> None:
    monkeypatch.setattr(parts, "proof_failure", lambda: "the proof died of signal 11")
    rows = list(parts.agreement(check))
    assert rows[0]["why"] == "the proof died of signal 11"
    assert "cupti" not in {row.get("timer") for row in rows}
    assert {row["timer"] for row in rows if row["what"] == "short kernel" and "ns" in row} == {"graph", "auto"}


def test_how_a_proof_ended(monkeypatch, tmp_path) -> None:
    script = tmp_path / "proof.py"
    monkeypatch.setattr(truth, "SCRIPT", str(script))
    for text, why in (
        ("", ""),
        ("import os; os.kill(os.getpid(), 11)", "the proof died of signal 11"),
        ("raise SystemExit('not counted')", "not counted"),
        ("import sys; print('64 B: 0', file=sys.stderr); sys.exit('no')", "64 B: 0; no"),
    ):
        script.write_text(text)
        assert truth.proof_failure() == why


def test_where_the_proof_fails_sizes_of_buffers_are_looked_at() -> None:
    class Recorder:
        _size = 0

        def drain(self):
            if self._size < 64:
                raise OSError("no room")
            return [1] * 150

        def dropped(self):
            return 50

    assert truth.lost_in(Recorder(), 64, lambda: None) == "64 B: 150 of 200 came, 50 counted as lost"
    assert truth.lost_in(Recorder(), 8, lambda: None) == "8 B: OSError: no room"


@pytest.mark.usefixtures("profiled")
def test_a_timer_that_is_off_is_not_held(check) -> None:
    check.timers["auto"] = WrongTimer(check.timers["auto"])
    rows = list(parts.agreement(check))
    (copy,) = [row for row in rows if row["what"] == "copy 256 MB" and row.get("bar") == "long"]
    assert copy["held"] is False


@pytest.mark.usefixtures("profiled")
@pytest.mark.parametrize(
    ("note", "expected"),
    [("", False), ("up to 1.7 % longer than device records: a pause", False), ("up to 2.4 % longer", True)],
)
def test_a_timer_that_says_how_far_it_may_be_off_is_held_to_that(check, note, expected) -> None:
    check.timers["auto"] = WrongTimer(check.timers["auto"], note)
    rows = [row for row in parts.agreement(check) if row.get("bar") == "long"]
    assert {row["held"] for row in rows} == {expected}
    assert parts.allowance({"agreement": "its calls follow each other at once: 1 to 7 % off the records"}) == 0.07


def test_of_calls_below_two_microseconds_nothing_is_asked() -> None:
    rows = {"graph": {"off": 0.07}, "cupti": {"off": 0.05}}
    assert "bar" not in parts.judged("short kernel", rows, 1_090.0, named=True)
    assert parts.judged("add 16 MB", rows, 7_000.0, named=True)["held"] is False
    rows["cupti"] = {"refused": parts.NO_TIME}
    assert "bar" not in parts.judged("add 16 MB", rows, 7_000.0, named=True), "CUPTI might have held it"


def test_attention_that_is_once_taken_for_work_elsewhere_is_missed(check, monkeypatch) -> None:
    notes = iter(["work ran on another stream, out of sight", *[""] * 9])
    monkeypatch.setattr(
        check, "measured", lambda *arguments: {"what": "attention", "ns": 1.0, "problems": [next(notes)]}
    )
    row = parts.attention(check)
    assert (row["held"], row["taken for work elsewhere"]) == (False, 1)


class WrongTimer:
    """Reads two percent too much."""

    name = "events"

    def __init__(self, inner, note: str = "") -> None:
        self.inner, self.note = inner, note

    def measure(self, *arguments):
        samples = self.inner.measure(*arguments)
        others = (note for note in samples.notes if note[0] != "agreement")
        notes = (*others, *([("agreement", self.note)] if self.note else []))
        return replace(samples, durations=tuple(1.02 * d for d in samples.durations), notes=notes)


class FailingTimer:
    """Raises what a library raises."""

    name = "cupti"

    def availability(self, runtime):
        return Availability(name="cupti", usable=True)

    def measure(self, *arguments):
        raise ValueError("an illegal memory access was encountered")


def test_a_timer_that_raises_costs_its_own_lines_and_the_truth(check) -> None:
    check.timers["cupti"] = FailingTimer()
    rows = [row for row in parts.agreement(check) if row["what"] == "copy 256 MB"]
    assert [row.get("refused") for row in rows] == ["ValueError", None, None, None, None, "no truth"]
    assert not any("held" in row for row in rows)


def test_slowdowns_streams_and_products(check) -> None:
    by_what = {row["what"]: row for row in parts.slowdowns(check)}
    assert (by_what["+0 %"]["seen"], by_what["+2 %"]["seen"]) == (0, parts.TRIALS)
    assert by_what["+2 %"]["held"] is True
    first, second, third = parts.overlap(check)
    assert (first["held"], second["held"], third["held"]) == (True, True, True)
    assert (third["bar"], third["measured"]) == ("quiet", parts.ATTENTIONS)
    assert second["busy_ns"] <= second["ns"]
    rows = list(parts.ladder(check))
    assert len(rows) == 16
    assert all("ns" in row for row in rows)
    assert "| bf16 8192 |" in page({"device": "x", "facts": {}, "why": "", "parts": {"Products": rows}})


def test_forty_trials_and_forty_products_settle_the_card_once(check) -> None:
    """Each wait for a card to settle takes a third of a second at least: 320 of them would take the part's time."""
    before = SAMPLING.loads
    rows = list(parts.slowdowns(check))
    assert SAMPLING.loads - before == 1 + len(rows)
    before = SAMPLING.loads
    processes.run_suite(check)
    assert SAMPLING.loads - before == 1


def test_a_part_whose_time_is_over_measures_nothing_more_and_misses_no_bar(check, monkeypatch) -> None:
    monkeypatch.setattr(parts, "truths", lambda clocks: ({"copy 256 MB": 100_000.0}, ""))
    check.ends = time.monotonic()
    for part in (parts.agreement, parts.ladder, states.power, parts.overlap):
        rows = list(part(check))
        assert parts.NO_TIME in [row.get("refused") for row in rows]
        assert not any("held" in row for row in rows)


def test_records_of_one_stream_alone_are_not_both(check, monkeypatch) -> None:
    """Busy time is never longer than its span, whatever CUPTI saw."""
    drained = FakeRecorder.drain
    monkeypatch.setattr(FakeRecorder, "drain", lambda self: [record for record in drained(self) if record.stream == 0])
    _, second, _ = parts.overlap(check)
    assert (second["kernels"], second["held"]) == ("1 a call on 1 streams", False)


def test_the_machine_and_the_cost_of_its_instruments(check) -> None:
    rows = {row["what"]: row for row in parts.machine(check)}
    assert rows["events"]["works"] is True
    assert rows["an empty pair of events"]["overhead_ns"] == 1_500
    cost = rows["host cost of a pair, beside the loop of do_bench"]
    assert cost["ours_ns"] > 0
    assert cost["held"] is (cost["ratio"] <= 1)


def test_what_cannot_be_looked_up_costs_itself_alone(check, monkeypatch) -> None:
    def lost():
        raise AttributeError("no such property in this release")

    monkeypatch.setattr(check.runtime, "event", lost)
    first, *others = parts.machine(check)
    assert (first["refused"], first["why"]) == ("AttributeError", "no such property in this release")
    assert "clocks" in [row["what"] for row in others]
    samples = SimpleNamespace(durations=(1.0,), overhead=0.0, batch=1, clock_hz=())
    monkeypatch.setattr(check.runtime, "device", lost)
    assert check._fraction(samples, {})["no peak"].startswith("AttributeError: no such")


def test_records_of_a_trace_are_shared_out_among_calls() -> None:
    """A call of two kernels lasts from the first start to the last end, and not as long as both together."""
    work = [{"ph": "X", "cat": "kernel", "ts": 4.0 * at, "dur": 3.0 - at % 2} for at in range(8)]
    assert truth.per_call([*work, {"ph": "X", "cat": "cpu_op", "ts": 0, "dur": 9.0}, {"ph": "M"}], 4) == 6_000.0
    assert truth.per_call(work[1:], 4) == 6_000.0
    records = [{"ph": "X", "cat": "kernel", "ts": 9.0 * (at // 2), "dur": 5.0 + at % 2} for at in range(8)]
    assert truth.per_call(records, 4) == 6_000.0
    with pytest.raises(ValueError, match="3 records of 8 calls"):
        truth.per_call(work[:3], 8)


def test_a_suite_against_itself(check, monkeypatch) -> None:
    shift = iter([1.0, 1.0] * 5 + [1.0, 1.05] * 5)
    monkeypatch.setattr(processes, "suite", lambda clocks: one_run(next(shift)))
    *rounds, last = processes.same(check)
    assert (len(rounds), last["alarms"], last["held"]) == (5, 0, True)
    assert last["bound_95"] == pytest.approx(0.072, abs=0.001)
    *rounds, last = processes.same(check)
    assert (last["alarms"], last["held"], last["bound_95"]) == (40, False, None)
    check.ends = time.monotonic()
    monkeypatch.setattr(processes, "suite", lambda clocks: one_run(1.0))
    *rounds, last = processes.same(check)
    assert (len(rounds), last["refused"], last["why"]) == (1, "too few", "1 rounds of at least 3")
    assert "held" not in last


def test_a_process_of_the_suite_that_fails_costs_the_rounds_after_it(check, monkeypatch) -> None:
    runs = iter([one_run(1.0)] * 6)

    def suite(clocks: str) -> processes.Run:
        result = next(runs, None)
        if result is None:
            raise RuntimeError("a process of the suite ended with 1: no memory")
        return result

    monkeypatch.setattr(processes, "suite", suite)
    *_, failed, last = processes.same(check)
    assert failed["why"].endswith("no memory")
    assert (last["rounds"], last["held"]) == (3, True)
    *_, failed, last = processes.same(check)
    assert (last["refused"], "held" in last) == ("too few", False)


def test_a_program_whose_time_is_over_is_ended_with_all_that_it_started(tmp_path, monkeypatch) -> None:
    log, marked = tmp_path / "log.txt", tmp_path / "pid"
    patient(monkeypatch, lambda: marked.exists() and marked.read_text())
    text = "import subprocess, sys; print('begun', flush=True); p = subprocess.Popen([sys.executable, '-c', 'input()'],"
    text += f" stdin=subprocess.PIPE); open({str(marked)!r}, 'w').write(str(p.pid)); p.wait()"
    assert processes.run_logged([sys.executable, "-c", "print('well')"], log, 60.0) == (0, "well\n")
    code, output = processes.run_logged([sys.executable, "-c", text], log, 1.0)
    assert code is None
    assert output.startswith("begun\n")
    assert "took longer than the 1 s that were left" in output
    assert ended(int(marked.read_text()))


def test_where_a_pair_of_events_is_slow_slowdowns_are_seen_by_a_graph(check) -> None:
    check.runtime.event_gap_ns = 20_000.0
    call = lambda: check.torch.cuda._sleep(190_000)  # noqa: E731 - as the check has it
    assert parts.fitting(check, call, check.plan).name == "graph"
    check = SimulatedCheck("observe")
    call = lambda: check.torch.cuda._sleep(190_000)  # noqa: E731 - as the check has it
    assert parts.fitting(check, call, check.plan).name == "events"


def test_false_alarms_are_counted_over_all_runs_of_a_folder_and_a_device(tmp_path: Path) -> None:
    judged = [{"what": "round 1"}, {"what": "A/A", "cases": 40, "alarms": 0}]
    first = accumulated.with_suites(accumulated.counts_of_folder(tmp_path, "H200"), judged)
    assert first == {"runs": 1, "cases": 40, "alarms": 0}
    (tmp_path / "gpu-check.json").write_text(json.dumps({"device": "H200", "accumulated": first}))
    second = accumulated.with_suites(accumulated.counts_of_folder(tmp_path, "H200"), judged)
    assert accumulated.bound_row(second)["bound_95"] == pytest.approx(1 - 0.05 ** (1 / 80), abs=1e-4)
    assert accumulated.with_suites(second, [{"what": "A/A", "refused": "no time"}]) == second
    assert accumulated.counts_of_folder(tmp_path, "another")["cases"] == 0
    (tmp_path / "gpu-check.json").write_text("{")
    assert accumulated.counts_of_folder(tmp_path, "H200")["cases"] == 0


def test_recordings_that_cannot_be_made_say_why(check, tmp_path, monkeypatch) -> None:
    def broken(check, folder):
        raise OSError("no profiler here")

    def large(check, folder):
        path = folder / "large.cubin"
        path.write_bytes(bytes(recordings.LARGEST + 1))
        yield path

    monkeypatch.setattr(recordings, "trace", broken)
    monkeypatch.setattr(recordings, "cubins", large)
    first, second = recordings.recordings(check, tmp_path)
    assert (first["refused"], first["why"]) == ("OSError", "no profiler here")
    assert second["held"] is False


def test_a_library_that_a_timer_refuses_has_the_code_of_the_refusal(check, monkeypatch) -> None:
    def copy():
        raise PerfgateError("timer-too-coarse", "a call takes 300 ns")

    monkeypatch.setattr(CupyRuntime, "availability", lambda self: Availability(name="cupy", usable=True))
    monkeypatch.setattr(processes, "cupy_copy", copy)
    first, second = (row for row in processes.libraries(check) if row["what"] == "cupy")
    assert (first["refused"], first["why"]) == ("timer-too-coarse", "a call takes 300 ns")
    assert second["timer"] == "graph"
