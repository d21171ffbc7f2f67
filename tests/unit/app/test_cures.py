"""What a refusal says to do: the cure of this command, not of another."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_perfgate.app.accept import accept, check_complete, unused
from pytest_perfgate.cli.dispatch import dispatch
from pytest_perfgate.core.judge.suite import SKIPPED
from pytest_perfgate.model.errors import PerfgateError
from pytest_perfgate.model.plan import Effect, Outcome
from pytest_perfgate.model.verdict import SuiteNote
from tests.reports import baseline, case, run


@pytest.mark.parametrize(
    ("outcomes", "mend"),
    [
        ([Outcome.BROKEN], "see what failed: perfgate report"),
        ([Outcome.UNBASELINED], "perfgate accept --new, and run everything again"),
        ([Outcome.UNBASELINED, Outcome.BROKEN], "see what failed: perfgate report"),
    ],
)
def test_pruning_after_failed_cases_names_what_failed(outcomes: list[Outcome], mend: str) -> None:
    cases = (case(f"test_{n}", 1e6, None, outcome) for n, outcome in enumerate(outcomes))
    failed = (replace(c, verdicts=tuple(replace(v, effect=Effect.FAIL) for v in c.verdicts)) for c in cases)
    report = run(*failed)
    with pytest.raises(PerfgateError, match="of the last run failed") as caught:
        check_complete(report)
    assert caught.value.mend.startswith(mend)


def test_lines_of_a_test_that_was_skipped_are_not_pruned() -> None:
    lines = [baseline("test_a", 1e6), baseline("test_gpu", 1e6), baseline("test_gone", 1e6)]
    store: Any = SimpleNamespace(read_all=lambda _device: {str(line.key): line for line in lines})
    note = SuiteNote(kind=SKIPPED, effect=Effect.WARN, text="", names=(f"{lines[1].key.nodeid}: no 'cupy'",))
    assert unused(run(case("test_a", 1e6, 1e6), notes=(note,)), store) == (lines[2],)


def test_accepting_into_a_folder_that_takes_nothing_speaks_of_accepting() -> None:
    def write(lines: Any) -> Any:
        raise PerfgateError("file-unwritable", "it cannot be written: Permission denied", place="baselines/x.yaml")

    with pytest.raises(PerfgateError, match="Permission denied") as caught:
        accept((), SimpleNamespace(write=write))  # type: ignore[arg-type]
    assert "run perfgate accept again" in caught.value.mend
    assert "when the run ends" not in caught.value.why


def test_a_command_that_does_not_exist_is_told_to_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["acept", "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["next"] == "did you mean 'perfgate accept'?"
    assert "there is no command 'acept'" in err
    assert dispatch(["acept"]) == 2
    assert capsys.readouterr().out == ""
