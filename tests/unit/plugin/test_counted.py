"""The one line that counts a run."""

from __future__ import annotations

from pytest_perfgate.core.judge.family import family_limits
from pytest_perfgate.core.limits.grammar import parse_limit
from pytest_perfgate.core.metric_kinds import by_name
from pytest_perfgate.core.render.words import about
from pytest_perfgate.model.plan import Case, CaseKey, Plan
from pytest_perfgate.model.verdict import CaseReport
from pytest_perfgate.plugin.summary import counted


def test_a_case_that_a_mean_judges_is_not_without_a_limit() -> None:
    mean = parse_limit("geomean(slowdown) <= 5%", kinds=by_name(), source="marker", place="t.py:1")
    cases = [Case(nodeid=f"t.py::test_a[{n}]", limits=(mean,), plan=Plan()) for n in "12"]
    keys = [CaseKey(nodeid="t.py::test_a[1]"), CaseKey(nodeid="t.py::test_a[2]", name="fwd"), CaseKey(nodeid="t.py::b")]
    reports = [CaseReport(key=key, verdicts=()) for key in keys]
    assert counted("full", reports, 0, family_limits(cases)) == "full: 2 judged in a mean, 1 without a limit"
    assert counted("full", reports) == "full: 3 without a limit"


def test_an_estimate_of_a_moment_is_not_about_under() -> None:
    assert (about(0.2), about(70)) == ("under 1 s", "about 1 min 10 s")
