"""A test that reads a figure of a call without one is told what became of that call."""

from __future__ import annotations

import pytest

from pytest_perfgate.adapters.stores.records import Records
from tests.plugin.projects import Project

TESTS = """
    import os, pytest

    pytestmark = pytest.mark.perfgate("time <= 1s")

    def odd():
        raise ValueError("the queue is empty")

    @pytest.fixture
    def call(request):
        return int if getattr(request.config.option, "xmlpath", None) else odd

    def test_fails(perfgate, call):
        assert perfgate(call).time > 0

    def test_catches(perfgate, call):
        try:
            found = perfgate(call)
        except ValueError:
            return
        assert found.time > 0

    def test_calls_another(perfgate, call):
        perfgate(int, name="a" if call is odd else "b")
        assert perfgate(int, name="c").time > 0
        if call is int:
            assert perfgate(int, name="d").time > 0

    def test_records_zero(perfgate):
        assert perfgate.record([0.0]).time > 0
"""


def test_what_became_of_a_call_is_said_where_it_is_read(project: Project) -> None:
    project.write("test_it.py", TESTS)
    run = project.run("--perfgate=full")
    assert "why   the test failed while it was measured: ValueError: the queue is empty" in run.says("test_fails")
    assert "why   its call raised ValueError: the queue is empty, and the test caught" in run.says("test_catches")
    text = run.says("test_calls_another")
    assert "time of test_it.py::test_calls_another#d was not measured" in text
    assert "why   this call did not happen in the measuring process; these did: 'a', 'c'" in text
    assert "why   sample 1 of 1 reads 0.0 ns" in project.run("--perfgate=quick").says("test_records_zero")


def test_a_reason_that_an_earlier_test_has_shown_is_not_repeated(project: Project) -> None:
    tests = """
        import pytest
        from pytest_perfgate.model.errors import PerfgateError

        @pytest.mark.parametrize("n", [1, 2, 3])
        def test_fails(request, perfgate, n):
            if not getattr(request.config.option, "xmlpath", None):
                raise PerfgateError("timer-unsuited", "no queue", fix="make a queue")
    """
    project.write("test_it.py", tests)
    run = project.run("--perfgate=full", "--perfgate-policy=unmeasured=fail")
    assert "\n  why   the test failed while it was measured: no queue  [timer-unsuited]\n" in run.says("test_fails[1]")
    assert "\n  next  make a queue" in run.says("test_fails[1]")
    for later in ("test_fails[2]", "test_fails[3]"):
        assert "\n  why   the same reason as test_it.py::test_fails[1], which shows it" in run.says(later)
        assert "make a queue" not in run.says(later)
    assert "  also  2 more cases: test_fails[2], test_fails[3]" in project.run("--perfgate=full").text


def test_a_reason_that_only_an_expected_failure_has_shown_is_repeated(project: Project) -> None:
    """pytest prints nothing of a test that is expected to fail."""
    tests = """
        import pytest

        @pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.xfail), 2, 3])
        @pytest.mark.perfgate("dram <= 10%")
        def test_reads(perfgate, n):
            perfgate.record([1.0] * 30, unit="ms")
    """
    project.write("test_it.py", tests)
    run = project.run("--perfgate=full", "--perfgate-policy=unmeasured=fail")
    assert "the same reason" not in run.says("test_reads[2]")
    assert "the same reason as test_it.py::test_reads[2], which shows it" in run.says("test_reads[3]")


PARTS = hasattr(pytest, "Subtests")
"""Whether this pytest has the fixture ``subtests``."""

KINDS = """
    import unittest
    import pytest

    class TestOld(unittest.TestCase):
        @pytest.fixture(autouse=True)
        def fixtures(self, perfgate):
            self.perfgate = perfgate

        def test_passes(self):
            self.perfgate(int)

        def test_fails(self):
            self.perfgate(int)
            self.assertEqual(1, 2)

        def test_skips(self):
            self.skipTest("no board")

        @unittest.expectedFailure
        def test_expected(self):
            self.perfgate(int)
            self.assertEqual(1, 2)

    def test_part_is_skipped(perfgate, subtests):
        with subtests.test():
            pytest.skip("no board")
        perfgate(int)
"""


def test_a_test_of_unittest_and_a_skipped_subtest_are_judged_as_others(project: Project) -> None:
    """pytest shows what a test of unittest raised only in its report."""
    project.configure('limits = ["time <= 1s"]')
    project.write("test_it.py", KINDS if PARTS else KINDS.partition("    def test_part")[0])
    ends = {"test_passes": "passed", "test_fails": "failed", "test_skips": "skipped", "test_expected": "skipped"}
    for mode in ("quick", "full"):
        run = project.run(f"--perfgate={mode}", ci=True)
        assert {name: run.outcome(name) for name in ends} == ends, run.text
        assert "AssertionError: 1 != 2" in run.says("test_fails")
        cases = [case for case in Records(project.root).read().cases if case.measurement is not None]
        assert {case.worst.value for case in cases} == {"passed"}
        assert ("time <= 1s (skipped)" in run.text) == (mode == "full"), "quick mode has no row for it"
        assert {case.key.test_id for case in cases} == {
            "TestOld::test_passes",
            *(["test_part_is_skipped"] if PARTS else []),
        }


CHOOSY = """
    import sys, pytest

    if {unless}:
        pytest.skip("not asked for", allow_module_level=True)

    @pytest.mark.perfgate("time <= 1s")
    def test_asked_for(perfgate):
        perfgate(int)
"""


def test_a_file_that_looks_for_a_word_of_the_command_line_is_measured(project: Project) -> None:
    project.write("test_it.py", CHOOSY.format(unless='"test_it.py" not in sys.argv'))
    run = project.run("--perfgate=full", "test_it.py", ci=True)
    assert run.outcome("test_asked_for") == "passed", run.text
    assert Records(project.root).read().cases[0].worst.value == "passed"


def test_a_file_that_skips_itself_in_a_child_is_reported_with_its_reason(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        import sys

        def pytest_configure(config):
            sys.child = not getattr(config.option, "xmlpath", None)
    """,
    )
    project.write("test_it.py", CHOOSY.format(unless="sys.child"))
    run = project.run("--perfgate=full", ci=True)
    assert "test_it.py: Skipped: not asked for" in run.says("test_asked_for"), run.text
