"""``perfgate calibrate`` on rounds that are here already: table, picture, JSON, and what is too little."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pytest_perfgate.app.compare_arms import ROUND, phase_of
from pytest_perfgate.core.judge.calibration import INJECTED
from pytest_perfgate.model.device import Device
from pytest_perfgate.model.measurement import Identity, Samples, Stop
from pytest_perfgate.model.plan import CaseKey
from pytest_perfgate.model.protocol import Capture
from pytest_perfgate.model.verdict import PairedRound
from pytest_perfgate.wiring import read_values, write_values
from pytest_perfgate.wiring.devices import host_runtime
from tests.cli.conftest import Place

DEVICE = Device(key="host-x", name="x", kind="host")


def capture(nodeid: str, time: float) -> Capture:
    times = tuple(time * (1 + step / 200) for step in range(20))
    samples = Samples(durations=times, cpu=times, timer="host", stop=Stop.COUNT)
    identity = Identity(device="host-x")
    return Capture(key=CaseKey(nodeid=nodeid), samples=(samples,), device=DEVICE, identity=identity)


def rounds(root: Path, count: int) -> None:
    dice = random.Random(4)
    kinds = [(ROUND, 0.0), *((phase_of(by), by) for by in INJECTED)]
    made = [
        PairedRound(
            nodeid=nodeid,
            phase=phase,
            number=number,
            base=(capture(nodeid, 1e6 * dice.gauss(1, 0.003)),),
            head=(capture(nodeid, 1e6 * (1 + by) * dice.gauss(1, 0.003)),),
            seconds=0.5,
            share_s=1.5,
        )
        for phase, by in kinds
        for number in range(count)
        for nodeid in ("t.py::test_a", "t.py::test_b")
    ]
    (root / ".perfgate").mkdir(exist_ok=True)
    write_values(root / ".perfgate" / "calibration.bin", made)


def test_rounds_that_are_kept_are_judged_without_measuring(place: Place) -> None:
    rounds(place.root, 20)
    done = place.perfgate("calibrate", "--minutes", 0, "--suites", 20, "--svg", "power.svg")
    assert done.code == 0, done.err
    assert "of suites of this project's 2 tests" in done.out
    assert "Injected slowdowns that are confirmed" in done.out
    assert "smallest limit" in done.out
    drawn = (place.root / "power.svg").read_text()
    assert drawn.startswith("<svg")
    assert "limit +3 %" in drawn
    assert "one side kept busy" in drawn


def test_a_program_reads_it_too(place: Place) -> None:
    rounds(place.root, 15)
    data = json.loads(place.perfgate("calibrate", "--minutes", 0, "--suites", 10, "--json").out)
    assert data["alarms"]["count"] == 10
    assert data["alarms"]["low"] <= data["alarms"]["rate"] <= data["alarms"]["high"] < 1
    assert [one["test"] for one in data["tests"]] == ["t.py::test_a", "t.py::test_b"]
    assert [one["by"] for one in data["power"]] == list(INJECTED)
    assert data["seconds"] >= 2 * 5 * 1.5
    assert [one["by"] for one in data["injected"]] == list(INJECTED)
    assert [one["found"] for one in data["injected"]] == pytest.approx(INJECTED, abs=0.005)


def test_an_open_quote_is_a_mistake_in_the_command(place: Place) -> None:
    done = place.perfgate("calibrate", "--pytest", "-k 'gemm")
    assert done.code == 2
    assert "No closing quotation" in done.err


def test_too_few_rounds_are_said_and_kept(place: Place) -> None:
    rounds(place.root, 14)
    done = place.perfgate("calibrate", "--minutes", 0)
    assert done.code != 0
    assert "14 rounds so far, and 15 are the least to judge by" in done.err
    assert (place.root / ".perfgate" / "calibration.bin").is_file()


CALLS = """
    import hashlib
    import os
    from concurrent.futures import ThreadPoolExecutor

    import pytest

    DATA = b"x" * (1 << 20)

    def digest():
        return hashlib.sha256(DATA).digest()  # without the interpreter's lock

    @pytest.mark.perfgate("slowdown <= 50%")
    def test_alone(perfgate):
        perfgate(digest)

    @pytest.mark.perfgate("slowdown <= 50%")
    def test_in_a_pool(perfgate):
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:  # as many as any run of the test has
            list(pool.map(lambda _: digest(), range(2)))
            perfgate(lambda: list(pool.map(lambda _: digest(), range(2))))
            cores = [pool.submit(os.sched_getaffinity, 0).result() for _ in range(20)]
        assert min(map(len, cores)) > 1

    @pytest.mark.perfgate("slowdown <= 50%")
    def test_in_a_region(perfgate):
        for _ in range(5):
            with perfgate.region():
                assert len(os.sched_getaffinity(0)) > 1
                digest()

    @pytest.mark.perfgate("slowdown <= 50%")
    def test_after_a_call(perfgate):
        perfgate(digest)
        assert len(os.sched_getaffinity(0)) > 1
    """


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="threads of one call need two processors")
def test_a_calibration_leaves_no_record_and_pins_only_calls_of_one_thread(place: Place) -> None:
    (place.root / "test_calls.py").write_text(textwrap.dedent(CALLS), encoding="utf-8")
    (place.root / "pyproject.toml").write_text('[tool.perfgate]\ndevices = ["*"]\n', encoding="utf-8")
    (folder := place.root / "baselines" / host_runtime().device().key).mkdir(parents=True)
    line = "'test_gone': {time: 1us, commit: c28712127a29, who: a, when: 2026-05-02, why: b}"
    (folder / "test_calls.py.yaml").write_text(f"perfgate: 1\nbaselines:\n  {line}\n", encoding="utf-8")
    program = [sys.executable, "-c", "import sys; from pytest_perfgate.cli import main; sys.exit(main())"]
    options = ["calibrate", "--minutes", "0.05", "--scaled-only", "--pytest", "test_calls.py"]
    done = subprocess.run([*program, *options], cwd=place.root, capture_output=True, text=True, check=False)
    assert "are the least to judge by" in done.stderr
    assert "warn" not in done.stderr
    assert not (place.root / ".perfgate" / "records").exists()
    pinned: dict[str, set[bool]] = {}
    for one in read_values(place.root / ".perfgate" / "calibration.bin", PairedRound):
        name = one.nodeid.partition("::")[2]
        pinned.setdefault(name, set()).update(capture.identity.affinity.isdecimal() for capture in one.head)
    alone = {"test_alone": {True}, "test_after_a_call": {True}}
    assert pinned == {**alone, "test_in_a_pool": {False}, "test_in_a_region": {False}}
