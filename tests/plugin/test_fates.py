"""A test that reads a figure of a call without one is told what became of that call."""

from __future__ import annotations

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
    assert "why   the test failed while it was measured: call: ValueError: the queue is empty" in run.says("test_fails")
    assert "why   its call raised ValueError: the queue is empty, and the test caught" in run.says("test_catches")
    text = run.says("test_calls_another")
    assert "time of test_it.py::test_calls_another#d was not measured" in text
    assert "why   this call did not happen in the measuring process; these did: 'a', 'c'" in text
    assert "why   sample 1 of 1 reads 0.0 ns" in project.run("--perfgate=quick").says("test_records_zero")
