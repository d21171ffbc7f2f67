"""The parts of the GPU check that run by name, without a card: their projects run, and their rows say what came."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ci.gpu import longer
from pytest_perfgate.cli.output import write_json
from pytest_perfgate.core.judge.calibration import FORKED
from pytest_perfgate.model.plan import Plan
from pytest_perfgate.model.verdict import Effect, Outcome, Verdict
from pytest_perfgate.plugin.calibrating import NOT_FORKED
from tests.unit.core.judge.bench import limit


@pytest.fixture
def check() -> SimpleNamespace:
    return SimpleNamespace(plan=Plan(), ends=time.monotonic() + 3600)


def verdict(name: str, outcome: Outcome, power: str = "") -> tuple[str, Verdict]:
    evidence = (("power", power),) if power else ()
    return f"t.py::test_product[{name}]", Verdict(
        limit=limit("slowdown <= 3%"), outcome=outcome, effect=Effect.PASS, evidence=evidence
    )


LIMITED = "at the device's limit: 1500 MHz then, 1400 MHz now"


@pytest.mark.parametrize(
    ("changed", "unchanged", "power", "expected"),
    [
        (Outcome.REGRESSED, Outcome.PASSED, LIMITED, True),
        (Outcome.UNDECIDED, Outcome.PASSED, LIMITED, False),
        (Outcome.REGRESSED, Outcome.REGRESSED, LIMITED, False),
        (Outcome.REGRESSED, Outcome.PASSED, "", None),
    ],
)
def test_a_deeper_product_has_to_be_a_regression_at_the_power_limit(
    check, tmp_path: Path, monkeypatch, changed: Outcome, unchanged: Outcome, power: str, expected: bool | None
) -> None:
    monkeypatch.setattr(longer, "run_logged", lambda *arguments, **named: (1, ""))
    verdicts = [verdict("changed", changed, power), verdict("unchanged", unchanged)]
    monkeypatch.setattr(longer, "judged", lambda project: iter(verdicts))
    (row,) = longer.capped(check, tmp_path)
    assert row.get("held") is expected
    assert row.get("changed, power", "") == power
    text = (tmp_path / "capped" / "products" / "__init__.py").read_text()
    assert '"changed": 4304, "unchanged": 4096' in text


def test_a_suite_that_lacks_something_says_what(check, tmp_path: Path, monkeypatch) -> None:
    outputs = {"triton_kernels": (0, "5 passed"), "cuda_extension": (1, "1 failed"), "compiled_kernels": (None, "")}

    def output_of(command, log, left_s, **options):
        return outputs.get(options["cwd"].name, (5, "SKIPPED [1] t.py:9: CuPy is not installed\n1 skipped"))

    monkeypatch.setattr(longer, "run_logged", output_of)
    monkeypatch.setattr(longer.shutil, "which", lambda name: None)
    monkeypatch.setattr(longer, "NVCC", tmp_path / "nvcc")
    first, second, cupy, nvbench, last = longer.suites(check, tmp_path)
    assert (first["held"], second["held"], last["refused"]) == (True, False, "no time")
    assert (cupy["what"], cupy["why"]) == ("cupy_kernels", "SKIPPED [1] t.py:9: CuPy is not installed")
    assert "held" not in nvbench
    outputs["cuda_extension"] = (None, "")
    assert [row.get("refused") for row in longer.suites(check, tmp_path)] == [None, "no time"]


def test_a_build_that_takes_long_leaves_time_for_the_suites(check, tmp_path: Path, monkeypatch) -> None:
    limits = {}

    def output_of(command, log, left_s, **options):
        limits[log.name] = left_s
        return (0, "5 passed")

    monkeypatch.setattr(longer, "run_logged", output_of)
    monkeypatch.setattr(longer.shutil, "which", lambda name: "nvcc")
    list(longer.suites(check, tmp_path))
    builds = [left_s for name, left_s in limits.items() if name.endswith(".build.txt")]
    assert builds == [longer.BUILD_S]
    assert min(left_s for name, left_s in limits.items() if not name.endswith(".build.txt")) > longer.BUILD_S


def test_pairs_of_forks_are_shown_beside_fresh_ones(check, tmp_path: Path, monkeypatch, capsys) -> None:
    forks = [{"test": "t", "fresh": 0.003, "forked": 0.005}]
    write_json({"rounds": 15, "power": [{"by": 0.05}], "forks": forks, "tests": [{"test": "t"}]})
    refused = f"perfgate: {NOT_FORKED}fresh interpreter: 2 threads run\n"
    facts = capsys.readouterr().out
    for forked, expected in ((15, True), (0, False)):
        output = f"perfgate: a line\n{'' if forked else refused}{facts}"
        monkeypatch.setattr(longer, "run_logged", lambda *arguments, output=output, **named: (0, output))
        monkeypatch.setattr(longer, "played", lambda project, phase, n=forked: n if phase == FORKED else 15)
        one, both = longer.forks(check, tmp_path)
        assert one["would be forked"] is False
        assert (both["bar"], both["fresh"], both["forked"], both["held"]) == ("forks", 15, forked, expected)
        assert both.get("why", "") == ("" if forked else "fresh interpreter: 2 threads run")
    monkeypatch.setattr(longer, "run_logged", lambda *arguments, **named: (0, facts))
    monkeypatch.setattr(longer, "played", lambda project, phase: 9)
    *_, few = longer.forks(check, tmp_path)
    assert (few["refused"], few["forked"], "bar" in few) == ("too few", 9, False), "their time was over"
    short = SimpleNamespace(plan=check.plan, ends=time.monotonic() + 60)
    assert [row["refused"] for row in longer.forks(short, tmp_path)] == ["no time"]
    error = '\n{"error": {"code": "calibration-wrong", "what": "2 rounds so far"}}\nperfgate: 2 rounds so far\n'
    monkeypatch.setattr(longer, "run_logged", lambda *arguments, **named: (2, f"perfgate: 3 cases\n{error}"))
    (row,) = longer.forks(check, tmp_path)
    assert (row["refused"], row["why"]) == ("calibration-wrong", "2 rounds so far")
    monkeypatch.setattr(longer, "run_logged", lambda *arguments, **named: (2, "ERROR: 3 rounds so far"))
    (row,) = longer.forks(check, tmp_path)
    assert (row["refused"], row["why"]) == ("exit code 2", "ERROR: 3 rounds so far")


LOOP = """
import pytest

def test_loop(perfgate):
    perfgate(lambda: sum(range(1000)))
"""


@pytest.fixture
def plugin(monkeypatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_perfgate.plugin")


@pytest.mark.usefixtures("plugin")
def test_a_calibration_that_has_time_for_a_round_says_how_many_are_asked_for(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(longer, "FILES", {"pyproject.toml": longer.FILES["pyproject.toml"]})
    monkeypatch.setattr(longer, "SOFTMAX", LOOP)
    monkeypatch.setattr(longer, "JUDGING_S", 600.0)
    (row,) = longer.forks(SimpleNamespace(plan=Plan(), ends=time.monotonic() + 600.5), tmp_path)
    assert row["refused"] == "calibration-wrong", (row, (tmp_path / "forks.txt").read_text())
    assert row["why"] == "1 round so far, and 15 are the least to judge by"
    assert longer.played(tmp_path / "forks", longer.ROUND) == 1


@pytest.mark.usefixtures("plugin")
def test_a_suite_that_needs_a_program_is_skipped_with_its_reason(check, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(longer, "SUITES", ("nvbench",))
    monkeypatch.delenv("NVBENCH", raising=False)
    (row,) = longer.suites(check, tmp_path)
    assert (row["refused"], "NVBENCH" in row["why"]) == ("skipped", True), row


@pytest.mark.slow
@pytest.mark.torch
def test_the_project_of_products_runs_on_the_processor(tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_perfgate.plugin")
    files = {name: text.replace("4096", "64").replace("200 ms", "4 ms") for name, text in longer.FILES.items()}
    project = longer.write_project(tmp_path / "one", {**files, "test_softmax.py": longer.SOFTMAX.replace("4096", "64")})
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--perfgate=quick"]
    code, output = longer.run_logged(
        command, tmp_path / "one.txt", 120.0, cwd=project, env=longer.surroundings(tmp_path)
    )
    assert (code, "3 passed" in output) == (0, True), output
