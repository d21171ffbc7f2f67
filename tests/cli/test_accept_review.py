from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_perfgate.cli import main
from pytest_perfgate.model.plan import Outcome
from pytest_perfgate.model.verdict import Arms
from tests.cli.conftest import Place
from tests.reports import baseline, case, run

INTERRUPT = "interrupt"
pty = pytest.importorskip("pty")


@pytest.fixture
def project(place: Place) -> Place:
    place.baselines.write([baseline("test_slow", 1e6)])
    place.record(
        run(
            case("test_new", 5e5, spread=0.4), case("test_other", 5e5), case("test_slow", 1.2e6, 1e6, Outcome.REGRESSED)
        )
    )
    return place


def walked(root: Path, answers: list[str]) -> str:
    """What the terminal showed when these answers were typed, each after its question."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "import sys; from pytest_perfgate.cli import main; sys.exit(main(['review']))"]
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=root)
    os.close(theirs)
    shown, began, waiting, interrupted = b"", time.monotonic(), list(answers), False
    try:
        while time.monotonic() - began < 120:
            if not select.select([ours], [], [], 0.1)[0]:
                if interrupted:
                    child.send_signal(signal.SIGINT)  # one that comes just before a read is not seen by it
                continue
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
            if waiting and shown.endswith((b"? ", b"reason: ", b"[a/s/q/?] ", b"(may be empty): ")):
                answer = waiting.pop(0)
                if answer == INTERRUPT:
                    interrupted = True
                else:
                    os.write(ours, answer.encode())
        child.wait(60)
    finally:
        child.kill()
        child.wait()
        os.close(ours)
    return shown.decode()


def test_each_is_asked_and_written_at_the_end(project: Place) -> None:
    shown = walked(project.root, ["a\n", "\n", "what\n", "s\n", "a\n", "\n", "exact rounding\n"])
    assert "[1/3]  new" in shown
    assert shown.count("the smallest slowdown this run can detect is 40.0 %") == 1, "only test_new scattered"
    assert "this needs a reason" in shown
    assert "2 accepted, 1 skipped" in shown
    assert project.times() == {"test_new": 5e5, "test_slow": 1.2e6}
    assert project.baselines.read_all("NVIDIA-H200")["tests/test_k.py::test_slow"].why == "exact rounding"


def test_stopping_keeps_what_was_accepted(project: Place) -> None:
    assert "1 accepted, 2 skipped" in walked(project.root, ["a\n", "first\n", "q\n"])
    assert project.times() == {"test_new": 5e5, "test_slow": 1e6}


def test_the_end_of_input_is_no_reason_and_nothing_is_asked_twice(project: Place) -> None:
    shown = walked(project.root, ["y\n", "\n", "n\n", "y\n", "\x04"])
    assert "1 accepted, 2 skipped" in shown
    assert project.times() == {"test_new": 5e5, "test_slow": 1e6}
    assert "[1/2]  new" in walked(project.root, ["a\n", "\n", "q\n"]), "what was accepted is not asked again"
    assert set(project.times()) == {"test_new", "test_slow", "test_other"}


def test_an_interrupt_writes_nothing(project: Place) -> None:
    walked(project.root, ["a\n", "first\n", INTERRUPT])
    assert project.times() == {"test_slow": 1e6}


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_what_was_held_on_one_core_beside_a_revision_is_refused_as_accept_does(
    place: Place, more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    report = case("test_slow", 1.2e6, 1e6, Outcome.REGRESSED)
    assert report.measurement is not None
    measurement = replace(report.measurement, identity=replace(report.measurement.identity, affinity="1"))
    place.baselines.write([baseline("test_slow", 1e6)])
    place.record(run(replace(report, measurement=measurement, arms=Arms(base="c0ffee")), case("test_new", 5e5)))
    assert main(["review", *more, "--root", str(place.root)]) == main(
        ["accept", "--root", str(place.root), "--reason", "x"]
    )
    assert capsys.readouterr().err.count("[accept-pinned]") == 2
    assert place.times() == {"test_slow": 1e6}


def test_without_a_terminal(project: Place) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from pytest_perfgate.cli import main; sys.exit(main(['review']))"],
        cwd=project.root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        env={k: v for k, v in os.environ.items() if k != "CI"},
    )  # fmt: skip
    assert (done.returncode, "review-terminal" in done.stderr) == (2, True)
