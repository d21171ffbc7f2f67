"""JUnit files of the command line's own gates, where no pytest runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_perfgate.model.limit import Effect
from pytest_perfgate.model.verdict import Verdict


def write_junit(path: Path, subject: str, verdicts: Sequence[Verdict]) -> None:
    """One test case a limit; a limit that could not be judged is an error, a broken one a failure."""
    from junit_xml import TestCase, TestSuite, to_xml_report_string

    cases = []
    for verdict in verdicts:
        case = TestCase(verdict.limit.text, classname=f"perfgate.{subject}", stdout=verdict.sentence)
        if verdict.effect is Effect.FAIL:
            said = f"{verdict.outcome.value.upper()}: {verdict.sentence}"
            add = case.add_failure_info if verdict.metric is not None else case.add_error_info
            add(message=said, output="\n".join(f"{name}: {text}" for name, text in verdict.evidence))
        cases.append(case)
    path.write_text(to_xml_report_string([TestSuite("perfgate", cases)]), encoding="utf-8")
