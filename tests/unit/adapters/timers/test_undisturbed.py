"""What watches every line or call is no part of a time, and goes on afterwards."""

from __future__ import annotations

import cProfile
import pstats
import sys

import pytest

from pytest_perfgate.adapters.timers.bench import Undisturbed


def test_what_traces_every_line_looks_away_and_is_put_back() -> None:
    def tracer(*_: object) -> None:
        return None

    before, seen = sys.gettrace(), []
    sys.settrace(tracer)
    try:
        with Undisturbed():
            seen.append(sys.gettrace())
        seen.append(sys.gettrace())
    finally:
        sys.settrace(before)
    assert seen == [None, tracer]


def inside() -> None:
    """Called while the profiler waits."""


def after() -> None:
    """Called when it has gone on."""


def test_a_profiler_waits_and_goes_on() -> None:
    """It stood in the way: what is put back was no function for Python 3.11, and 3.12 went on measuring it."""
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        with Undisturbed():
            inside()
        after()
    finally:
        profiler.disable()
    seen = {name for _, _, name in pstats.Stats(profiler).stats}
    assert "after" in seen
    assert "inside" not in seen


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with Python 3.12")
def test_what_monitors_calls_waits_and_goes_on() -> None:
    monitoring, tool, seen = sys.monitoring, 4, []
    monitoring.use_tool_id(tool, "of this test")
    try:
        monitoring.register_callback(tool, monitoring.events.PY_START, lambda code, _: seen.append(code.co_name))
        monitoring.set_events(tool, monitoring.events.PY_START)
        with Undisturbed():
            inside()
        after()
    finally:
        monitoring.free_tool_id(tool)
    assert "after" in seen
    assert "inside" not in seen
