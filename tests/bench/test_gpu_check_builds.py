"""The parts of the GPU check that run whole gates, without a card: the projects that they write, and their rows."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ci.gpu import builds, processes
from pytest_perfgate.model.plan import Plan

KERNELS = "tinykernels/__init__.py"
LOOPS = """
from types import SimpleNamespace

class Rows:
    def __getitem__(self, place):
        return range(place[1].stop)

def run(values, *given, out):
    for _ in range(len(values) >> 8):
        pass

torch = SimpleNamespace(
    cuda=SimpleNamespace(is_available=bool), ones=lambda *sizes, device: Rows(), mul=run, clamp=run
)
"""
"""Loops of Python in place of torch, whose import each process of a gate would pay."""


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The projects with loops for kernels, hardly any sampling, and a limit far from what either kernel does."""
    kernels = builds.FILES[KERNELS].replace("import torch", "from tinykernels.loops import torch")
    changed = {
        "pyproject.toml": builds.FILES["pyproject.toml"].replace('"200 ms"', '"4 ms"\nwarmup = "1 ms"\nrounds = 2'),
        KERNELS: kernels.replace("range(5)", "range(1)"),
        "tinykernels/loops.py": LOOPS,
        "test_tiny.py": builds.FILES["test_tiny.py"].replace("3%", "100%"),
    }
    monkeypatch.setattr(builds, "FILES", {**builds.FILES, **changed})
    monkeypatch.setattr(builds, "SLOWER", (builds.SLOWER[0], builds.SLOWER[1].replace("size + size // 4", "8 * size")))
    monkeypatch.setattr(builds, "MOST_S", 3600.0)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_perfgate.plugin")
    return SimpleNamespace(plan=Plan(), ends=time.monotonic() + 3600)


def test_two_builds_of_tiny_kernels_have_a_verdict_each(check: SimpleNamespace, tmp_path: Path) -> None:
    (row,) = builds.builds(check, tmp_path)
    assert (row["bar"], row["held"]) == ("builds", True)
    assert row[f"doubled-{builds.FIRST}"] == "regressed"
    assert row[f"clamped-{builds.FIRST}"] == "passed"


def test_runs_of_unchanged_kernels_are_counted(check: SimpleNamespace, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(builds, "RUNS", 1)
    without_builds = builds.FILES["pyproject.toml"] + 'confirmation = "interval"\n'  # the test above has two builds
    monkeypatch.setattr(builds, "FILES", {**builds.FILES, "pyproject.toml": without_builds})
    monkeypatch.setattr(builds, "ACCEPTED_RUNS", 2)
    accepted, run = builds.repeat(check, tmp_path)
    assert (accepted["what"], accepted["last"]) == ("2 runs accepted", "2 accepted")
    lines = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "repeat" / "baselines").rglob("*.yaml"))
    assert lines.count("runs: 2") == 2, "the second run counts too"
    assert builds.NOT_COMPARED not in run, "an edit that changes nothing is compared"
    assert sum(count for name, count in run.items() if name not in {"what", "s"}) == 2
    later = tmp_path / "later"
    later.mkdir()
    (tmp_path / "repeat").rename(later / "repeat")  # a later call unpacks it into a folder of its own
    went_on, second = builds.repeat(check, later)
    assert went_on["last"] == "in an earlier call", "what is accepted is not measured again"
    assert builds.NOT_COMPARED not in second
    assert sum(count for name, count in second.items() if name not in {"what", "s"}) == 2
    source = (later / "repeat" / KERNELS).read_text(encoding="utf-8")
    assert [line for line in source.splitlines() if line.startswith("RUN")] == ["RUN = 2"]


EXAMPLE = """
import pytest

def add(count):
    return sum(range(count))

@pytest.mark.parametrize("count", [20_000, 30_000])
def test_add(perfgate, count):
    perfgate(add, count)
"""
EXAMPLE_SETTINGS = """
[tool.perfgate]
devices = ["*"]
limits = ["slowdown <= 100%"]
budget = "4 ms"
warmup = "1 ms"
"""


def test_the_gate_measures_accepts_and_compares_with_itself(
    check: SimpleNamespace, tmp_path: Path, monkeypatch
) -> None:
    """Its rows come of what pytest and accept print: the durations that were announced, and the last line."""
    suite = tmp_path / "examples" / "torch_kernels"
    suite.mkdir(parents=True)
    (suite / "test_kernels.py").write_text(EXAMPLE, encoding="utf-8")
    (suite / "pyproject.toml").write_text(EXAMPLE_SETTINGS, encoding="utf-8")
    monkeypatch.setattr(processes, "ROOT", tmp_path)
    monkeypatch.setattr(processes, "accepted", lambda check, files: {"what": "baselines", "files": files})
    rows = list(processes.gate(check, tmp_path / "out"))
    by_what = {row["what"]: row for row in rows}
    assert [by_what[name]["exit"] for name in ("measured", "accepted", "held against itself")] == [0, 0, 0], rows
    assert by_what["measured"]["unbaselined"] == 2
    assert by_what["accepted"]["said"] == "2 accepted"
    verdicts = by_what["held against itself"].keys() - {"what", "exit", "s", "said", "bar", "held"}
    assert sum(by_what["held against itself"][name] for name in verdicts) == 2
    assert {"measured, as announced", "held against itself, as announced"} <= by_what.keys()
    assert [file.name for file in by_what["baselines"]["files"]] == ["test_kernels.py.yaml"]


def test_verdicts_of_several_calls_are_added_up_until_there_are_a_hundred() -> None:
    run = {"what": builds.RUN, "s": 60.0, "passed": 19, "undecided": 1}
    *_, total = first = builds.continued((), [run, run, {"what": "run 3", "refused": "no time"}])
    assert (total["verdicts"], total["refused"], "held" in total) == (40, "too few", False)
    *rows, total = builds.continued(first, [run] * 3)
    assert [row["what"] for row in rows] == [builds.RUN] * 5
    assert (total["verdicts"], total["decided"], total["bar"], total["held"]) == (100, 0.95, "repeat", True)
    *_, total = builds.continued(rows, [{**run, "undecided": 0, builds.NOT_COMPARED: 1, "passed": 18, "moved": 1}])
    assert total["held"], "114 of 120"
    same = {"what": builds.RUN, "s": 9.0, builds.NOT_COMPARED: 20}
    *_, total = builds.continued((), [same] * 5)
    assert (total["decided"], total["held"]) == (0.0, False), "what compares nothing answers nothing"
    *_, total = builds.continued((), [{**run, "undecided": 0, "regressed": 1}])
    assert total["held"] is False, "one false regression is enough"


@pytest.mark.torch
def test_the_kernels_are_those_of_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    project = builds.write_project(tmp_path)
    builds.edit(project)
    monkeypatch.syspath_prepend(str(project))
    import tinykernels

    rows = tinykernels.inputs(80)
    tinykernels.doubled(rows, 80)
    assert rows[1].tolist() == [2.0] * 100 + [1.0] * 60, "a quarter more is done than was asked for"
    rows = tinykernels.inputs(80)
    rows[0] *= 3
    tinykernels.clamped(rows, 80)
    assert rows[1].tolist() == [1.0] * 160


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("perfgate: 4 tests, 3 rounds, about 41 s, a first guess; what", 41.0),
        ("perfgate: 38 tests, 3 rounds, about 1 min 10 s\n", 70.0),
        ("perfgate: round 2 of 3, test 1 of 4, about 24 s left: test_kernels.py::test_gemm[128]", 24.0),
        ("perfgate: round 1 of 3, test 1 of 4: test_kernels.py::test_gemm[128]", None),
        ("1 passed in 3 s", None),
    ],
)
def test_what_a_run_said_that_it_would_take(text: str, seconds: float | None) -> None:
    assert processes.foretold_s(text) == seconds


def test_what_a_run_announced_is_held_against_what_measuring_took() -> None:
    first = "perfgate: 4 tests, 3 rounds, about 19 s, a first guess"
    lines = ["perfgate: round 1 of 3, test 1 of 4: t", *(f"perfgate: round {n}, about {s} s left: t" for n, s in (
        ("2 of 3, test 1 of 4", 24), ("3 of 3, test 1 of 4", 9)))]  # fmt: skip
    heard = list(zip((1.0, 10.0, 30.0, 40.0, 55.0, 90.0), [first, *lines, ".", "4 passed"]))
    guess, second, third = processes.announced_s("measured", heard, learnt=False)
    assert ("bar" in guess, guess["came"]) == (False, 54.0)
    assert (second["bar"], second["came"], second["held"]) == ("costs", 25.0, True)
    assert (third["came"], third["held"]) == (15.0, False)
    (short,) = processes.announced_s("measured", [(1.0, first), (5.0, lines[0]), (25.0, ".")], learnt=False)
    assert short["came"] == 24.0, "a line of a round is not the end of measuring"
    learnt = [(1.0, "perfgate: 4 tests, 3 rounds, about 40 s"), *heard[1:]]
    assert next(processes.announced_s("again", learnt, learnt=True))["held"] is True


@pytest.mark.parametrize(("took", "expected"), [(61.0, False), (40.0, None)])
def test_work_that_was_ended_misses_a_bar_only_with_the_time_of_the_bar(took: float, expected: bool | None) -> None:
    row = processes.late({"what": "two builds", "refused": "no time", "s": took}, "builds", builds.MOST_S)
    assert row.get("held") is expected
    assert ("bar" in row) == (expected is False)
