"""What check, compare and run share: policies, and files for verdicts."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from pytest_perfgate.cli import run as run_command
from tests.cli.conftest import Place
from tests.reports import case, run

BEFORE = run(case("test_<b>one</b>", 1e6))
AFTER = run(case("test_<b>one</b>", 1.2e6), started="2026-06-02T10:00:00+00:00")


@pytest.fixture
def records(place: Place) -> tuple[Path, Path]:
    return place.record(BEFORE), place.record(AFTER)


@pytest.mark.parametrize(
    ("policy", "code", "effect"),
    [((), 4, "fail"), (("--policy", "unmeasured=warn"), 0, "warn"), (("--policy", "undecided=fail"), 4, "fail")],
)
def test_the_policy_says_what_not_measured_does(
    place: Place, records: tuple[Path, Path], policy: tuple[str, ...], code: int, effect: str
) -> None:
    done = place.perfgate("check", records[0], "overlap >= 50%", "time <= 2ms", "--json", *policy)
    assert done.code == code, done.err
    outcomes = [(v["outcome"], v["effect"]) for v in json.loads(done.out)["verdicts"]]
    assert outcomes == [("not measured", effect), ("passed", "pass")]


def test_no_policy_excuses_a_broken_limit(place: Place, records: tuple[Path, Path]) -> None:
    words = ("time <= 1us", "--policy", "unmeasured=warn", "--policy", "undecided=warn")
    assert place.perfgate("check", records[0], *words).code == 1
    assert place.perfgate("compare", *records, "slowdown <= 5%", "overlap >= 50%", *words[1:]).code == 1


@pytest.mark.parametrize("command", ["check", "compare", "run"])
@pytest.mark.parametrize("pair", ["unmesured=warn", "unmeasured=perhaps", "unmeasured"])
def test_a_policy_that_does_not_exist_is_refused(
    place: Place, records: tuple[Path, Path], command: str, pair: str
) -> None:
    done = place.perfgate(command, *records[: 1 + (command == "compare")], "time <= 1s", "--policy", pair)
    assert (done.code, "policy-unknown" in done.err) == (2, True), done.err
    assert "--policy" in done.err


def test_verdicts_as_a_page_and_as_markdown(place: Place, records: tuple[Path, Path]) -> None:
    words = ("time <= 1us", "overlap >= 50%", "--html", "out/v.html", "--markdown", "out/v.md")
    assert place.perfgate("check", records[0], *words).code == 1
    page, text = Path("out/v.html").read_text(encoding="utf-8"), Path("out/v.md").read_text(encoding="utf-8")
    assert "<b>one</b>" not in page
    assert "&lt;b&gt;one&lt;/b&gt;" in page
    assert "<script" not in page
    assert page.index("BROKEN") < page.index("NOT MEASURED")
    assert "1 broken, 1 not measured." in text
    assert "| BROKEN |" in text
    assert "overlap was not collected" in text


def test_a_comparison_without_limits_is_written_too(place: Place, records: tuple[Path, Path]) -> None:
    done = place.perfgate("compare", *records, "--markdown", "-", "--html", "c.html")
    assert done.code == 0
    assert done.out.count("# ") == 1
    assert "+20.0 %" in done.out
    assert "+20.0 %" in Path("c.html").read_text(encoding="utf-8")
    assert "Limits" not in done.out


def test_a_page_that_cannot_be_written_is_said(place: Place, records: tuple[Path, Path]) -> None:
    Path("file").write_text("")
    done = place.perfgate("check", records[0], "time <= 1s", "--html", "file/v.html")
    assert "delivery-failed" in done.err


def test_run_hands_policies_to_pytest(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    commands = []
    monkeypatch.setattr(run_command, "_status", lambda command, to_stderr: commands.append(command) or 0)
    assert (
        place.perfgate("run", "tests", "--policy", "undecided=fail", "--policy", "moved=fail", "-k", "gemm").code == 0
    )
    (command,) = commands
    at = command.index("pytest")
    assert command[at + 1 :] == [
        "-p",
        "perfgate",
        "--perfgate=full",
        "--perfgate-policy=undecided=fail",
        "--perfgate-policy=moved=fail",
        "tests",
        "-k",
        "gemm",
    ]
    parser = argparse.ArgumentParser()
    run_command.run_arguments(parser)
    assert "--policy" in parser.format_help()
